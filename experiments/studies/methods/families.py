"""The methods of the paper by family, with their grids of hyper-parameters."""

from collections.abc import Sequence
from typing import Any

from admiss.baselines import GRIDS
from admiss.study import Best, Method
from experiments.studies.methods.adaptive import adaptive, finite
from experiments.studies.methods.joint import joint
from experiments.studies.methods.tuned import tuned

KINDS = {"linear": "linear", "tree": "tree", "forest": "forest", "xgboost": "XGBoost"}

# The study ``grids`` compares these grids with those of the authors.
REDUCED: dict[str, dict[str, Any]] = {
    "linear": {"l1_ratio": [0.1, 0.5, 1.0]},
    "tree": GRIDS["authors"]["tree"],
    "forest": {"n_estimators": [40], "max_depth": [5, 10, 20], "max_features": [1 / 3]},
    "xgboost": {
        "n_estimators": [10],
        "learning_rate": [0.3],
        "max_depth": [3, 6],
        "min_child_weight": [1, 5],
        "gamma": [0.0],
    },
}
# Trees of the final forest after tuning with the reduced grid.
TREES = 100
PENALTIES = {"l1_ratios": [0.1, 0.5, 1.0], "adaptive_penalties": [1, 4, 12]}
TEXT_PENALTIES = {"l1_ratios": [0.0, 0.5, 1.0], "adaptive_penalties": [0.25, 1, 4]}
AUTHORS_PENALTIES = {"l1_ratios": GRIDS["authors"]["linear"]["l1_ratio"], "adaptive_penalties": [1, 2, 4, 6, 8, 12]}


def adaptive_methods(
    protocol: str, penalties: dict[str, Any], leaves: dict[str, Any] | None = None, **shared: Any
) -> list[Method]:
    """Adaptive linear regression by level of adaptivity; ``shared`` go to all methods, ``leaves`` to the finite one."""
    options = {**penalties, **({"penalty_weights": "authors"} if protocol == "authors" else {}), **shared}
    return [
        Method("Affine intercept", adaptive, {"adaptivity": "affine_intercept", **options}),
        Method("Affine", adaptive, {"adaptivity": "affine", **options}),
        Method("Finite", finite, {"protocol": protocol, **(leaves or {}), **shared}),
    ]


def joint_methods(protocol: str, grids: dict[str, Any]) -> list[Method]:
    """Joint impute-then-regress by predictor."""
    return [
        Method(
            f"Joint - {name}", joint, {"kind": kind, "grid": grids[kind], "protocol": protocol, **_trees(kind, grids)}
        )
        for kind, name in KINDS.items()
    ]


def tuned_methods(prefix: str, imputer: str, grids: dict[str, Any]) -> list[Method]:
    """Impute-then-regress by predictor."""
    return [_tuned_method(f"{prefix} - {name}", imputer, kind, grids) for kind, name in KINDS.items()]


def _tuned_method(name: str, imputer: str, kind: str, grids: dict[str, Any]) -> Method:
    return Method(name, tuned, {"imputer": imputer, "kind": kind, "grid": grids[kind], **_trees(kind, grids)})


def _trees(kind: str, grids: dict[str, Any]) -> dict[str, Any]:
    return {"trees": TREES} if kind == "forest" and max(grids[kind]["n_estimators"]) < TREES else {}


def native_methods(grids: dict[str, Any]) -> list[Method]:
    """Predictors that handle missing values themselves."""
    names = {"tree": "CART MIA", "forest": "RF MIA", "xgboost": "XGBoost"}
    return [_tuned_method(name, "native", kind, grids) for kind, name in names.items()]


def best_of(prefix: str, kinds: Sequence[str]) -> Best:
    """The choice of the best predictor in cross-validation."""
    return Best(f"{prefix} - best", tuple(f"{prefix} - {KINDS[kind]}" for kind in kinds))


BEST_ADAPTIVE = Best("Adaptive LR - best", ("Affine intercept", "Affine", "Finite"))
# Choices on generated data, where the authors' best joint model excludes XGBoost.
BEST_ON_GENERATED = (
    BEST_ADAPTIVE,
    best_of("Joint", ("linear", "tree", "forest")),
    best_of("Mean", tuple(KINDS)),
    best_of("mice", tuple(KINDS)),
)
