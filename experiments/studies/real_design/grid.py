"""The study on real features (Section 4.3 and Appendix D of the paper).

Real features with generated targets (missing at random, not at random, adversarially), and with their real targets.
"tree" signals are drawn only at paper scale, and excluded from the averages that are compared with the paper.

    smoke     two small sets, linear signals
    laptop    all sets with one split, k_missing in {0, 5, 10 or the maximum}, at most 5,000 rows, reduced grids
    paper     ten splits, k_missing from 0 to 10, all rows, the authors' grids

Adaptive models, on features centred at their observed means, and the joint search are those of the text. mice completes
training and test rows together, as in the authors' code.
"""

from typing import Any

from admiss.baselines import GRIDS
from admiss.study import Method, Product, Study
from experiments.scales import SCALES
from experiments.studies.columns import METRICS, with_selected_depth
from experiments.studies.methods.families import (
    AUTHORS_PENALTIES,
    BEST_ADAPTIVE,
    KINDS,
    REDUCED,
    adaptive_methods,
    best_of,
    joint_methods,
    native_methods,
    tuned_methods,
)
from experiments.studies.real_design.instances import SIGNALS, real_target_instances, semi_synthetic_instances

# For sets with a hundred features: affine models have thousands of columns, leaves with indicators twice the features,
# and forests would try too many features at each split.
PENALTIES = {"l1_ratios": [0.5], "adaptive_penalties": [0.25, 1, 4]}
LEAVES = {"ridges": [0.5, 5, 50, 500], "leaf_models": ["static"]}
FEW_FEATURES = {**REDUCED, "forest": {**REDUCED["forest"], "max_features": ["sqrt"]}}


def _methods(grids: dict[str, Any], penalties: dict[str, Any], leaves: dict[str, Any]) -> list[Method]:
    return [
        *adaptive_methods("text", penalties, leaves, centre=True),
        *tuned_methods("Mean", "mean", grids),
        *tuned_methods("mice", "together", grids),
        *native_methods(grids)[1:],
        *tuned_methods("Complete features", "complete_features", grids),
        *joint_methods("text", grids),
    ]


def products(scale: str) -> list[Product]:
    """The grid of a scale."""
    if scale == "paper":
        grids, methods = GRIDS["authors"], _methods(GRIDS["authors"], AUTHORS_PENALTIES, {})
    else:
        grids, methods = FEW_FEATURES, _methods(FEW_FEATURES, PENALTIES, LEAVES)
    signals = {"smoke": SIGNALS[:1], "laptop": SIGNALS, "paper": (*SIGNALS, "tree")}[scale]
    return [
        Product(real_target_instances(scale), methods),
        Product(semi_synthetic_instances(scale, signals), [*methods, *tuned_methods("Oracle", "oracle", grids)]),
    ]


STUDY = Study(
    name="real-design",
    scales=SCALES,
    title="Real features",
    description="Real data sets: generated targets under three designs of missingness, and real targets.",
    products=products,
    best=(
        BEST_ADAPTIVE,
        # the paper recommends the better of these two
        best_of("Joint", ("linear", "xgboost")),
        *(best_of(prefix, tuple(KINDS)) for prefix in ("Mean", "mice", "Complete features", "Oracle")),
    ),
    metrics=METRICS,
    derived=with_selected_depth,
    settings=("kind", "design", "signal", "task", "k_missing", "dataset"),
)
