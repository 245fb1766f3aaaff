"""Every public estimator with parameters over their whole range, and with parameters that make no sense."""

from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from admiss import (
    AdaptiveClassifier,
    AdaptiveClassifierCV,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    AdaptiveStackClassifier,
    AdaptiveStackRegressor,
    ExpectedFeatures,
    ExpectedFeaturesClassifier,
    ExpectedFeaturesRegressor,
    FiniteClassifier,
    FiniteClassifierCV,
    FiniteRegressor,
    FiniteRegressorCV,
    JointImputeClassifier,
    JointImputeRegressor,
)
from admiss.adaptivity import (
    BinnedAffine,
    ConditionalMean,
    FrequentPatterns,
    FusedPatterns,
    LowRankAffine,
    MissingnessAvoiding,
    Polynomial,
    SharedPatterns,
)
from admiss.baselines import ChainedEquations, CompleteFeatures, TunedClassifier, TunedRegressor, baseline
from admiss.partition import BoxPartition, Greedy, OptimalTree, PatternGroups, SplitAssignTree
from formulations.losses import Huber, Quantile
from tests.odd_inputs.rows import odd, pick

Draw = np.random.Generator
TAME_PENALTIES = (1e-3, 0.03, 1.0, 1.0, 30.0, 1e3)
EXTREME_PENALTIES = (0.0, 0, 5e-324, 1e-300, 1e-14, 1e-9, 1e9, 1e14, 1e155, 1e300, np.float32(0.5), 2**70, True)
CLASSES = ("static", "affine_intercept", "affine_intercept", "affine", "affine", "polynomial", "fully_adaptive")
LOSSES = ("absolute", "huber", "quantile", Quantile(0.9), Huber(0.1))
EXTREME_LOSSES = (Quantile(1e-9), Quantile(1 - 1e-9), Huber(1e-300), Huber(1e-9), Huber(1e9), Huber(1e100))
NONSENSE = (
    None, -1, -1.5, 0, np.nan, np.inf, -np.inf, True, "nonsense", "", b"auto", [], [1.0], (), {}, object, 1j, 10**400,
    np.array([1.0, 2.0]), np.array("auto"), 0.5, 3, 1e300, 1e-300, [None], ["nonsense"], [-1.0], [np.nan], lambda x: x,
    Greedy(), "auto", "squared", "logistic", 2.5, 10**9,
)  # fmt: skip


def _penalty(rng: Draw, wild: bool) -> Any:
    tame, extreme = pick(rng, TAME_PENALTIES), pick(rng, EXTREME_PENALTIES)
    return extreme if odd(rng, wild, 0.3) else tame


def _adaptivity(rng: Draw, wild: bool) -> Any:
    options: tuple[Any, ...] = (
        *CLASSES * 2,
        "conditional_mean",
        ConditionalMean("censored"),
        ConditionalMean(prior=pick(rng, (0.0, 1e-300, 1e300, 5.0)) if wild else 5.0),
        Polynomial(int(rng.integers(0, 4))),
        Polynomial(3, max_columns=20) if wild else Polynomial(1),
        "low_rank_affine",
        LowRankAffine(_penalty(rng, wild)),
        "fused_patterns",
        FusedPatterns(_penalty(rng, wild), max_patterns=3 if odd(rng, wild, 0.1) else 1000),
        SharedPatterns(max_columns=pick(rng, (0, 5, 1000))),
        FrequentPatterns(pick(rng, (None, 1, 4))),
        MissingnessAvoiding(_penalty(rng, wild), indicators=pick(rng, (True, False))),
        BinnedAffine(pick(rng, (1, 2, 8))),
    )
    return pick(rng, options)


def _linear(rng: Draw, wild: bool, classes: bool) -> Any:
    model = (AdaptiveClassifier if classes else AdaptiveRegressor)(_adaptivity(rng, wild), _penalty(rng, wild))
    model.set_params(
        l1_ratio=pick(rng, (0.0, 0.0, 0.5, 1.0, 1e-9)),
        adaptive_penalty=_penalty(rng, wild) if odd(rng, wild, 0.3) else pick(rng, (1.0, 1.0, 0.25)),
        penalty_weights=pick(rng, ("count", "count", "count", "authors")),
        scale=pick(rng, (True, True, True, False)),
        fit_intercept=pick(rng, (True, True, True, False)),
        solver=pick(rng, ("auto", "auto", "auto", "auto", "cvxpy", "CLARABEL")),
        on_unseen_pattern=pick(rng, ("nearest", "nearest", "warn")),
    )
    _set_center(rng, model)
    if not classes:
        model.set_params(loss=_loss(rng, wild))
    else:
        model.set_params(class_weight=_class_weight(rng, wild))
    return model


def _set_center(rng: Draw, model: Any) -> None:
    center = pick(rng, (True, True, True, False))
    if "center" in model.get_params(deep=False):
        model.set_params(center=center)


def _loss(rng: Draw, wild: bool) -> Any:
    common, extreme = pick(rng, ("squared",) * 9 + LOSSES), pick(rng, EXTREME_LOSSES)
    return extreme if odd(rng, wild, 0.08) else common


def _class_weight(rng: Draw, wild: bool) -> Any:
    strange = pick(rng, ({0: 0.0, 1: 1.0}, {0: 1e300, 1: 1.0}, {"none": 1.0}, {0: -1.0, 1: 1.0}, "even", {0: np.nan}))
    common = pick(rng, (None, None, None, "balanced"))
    return strange if odd(rng, wild, 0.1) else common


def _limits(rng: Draw, wild: bool) -> dict[str, Any]:
    return {
        "max_depth": pick(rng, (1, 2, 2, 3, None)),
        "max_leaves": pick(rng, (None, None, 1, 2, 3, 5)),
        "min_rows": pick(rng, (1, 1, 1, 2, 5, 39 if wild else 4, None)),
    }


def _partitioner(rng: Draw, wild: bool, loss: Any) -> Any:
    limits, time_limit = _limits(rng, wild), pick(rng, (0, 1e-9, 1e-300)) if odd(rng, wild, 0.1) else None
    split = {"split_features": pick(rng, ([0], [0, 1], ["column 0"], [], [7], [0, 0], ["none"]))}
    if odd(rng, wild, 0.1):
        limits |= split
    kind = pick(rng, ("greedy", "greedy", "tree", "tree", "tree", "boxes", "groups", "groups", "assign", None))
    if kind is None:
        return None
    if kind == "greedy":
        return Greedy(**limits, min_improvement=pick(rng, (0.0, 0.0, 0.0, 0.01, 0.999)))
    if kind == "tree":
        return OptimalTree(**limits, method=pick(rng, ("dp", "dp", "mio", "both")), time_limit=time_limit)
    if kind == "boxes":
        return BoxPartition(**limits | {"max_depth": pick(rng, (1, 2))}, time_limit=time_limit)
    if kind == "groups" and (loss == "squared" or wild):
        return PatternGroups(pick(rng, (1, 2, 3)), limits["min_rows"], time_limit=0.3 if time_limit is None else 0.0)
    if kind == "assign" and (loss == "absolute" or odd(rng, wild, 0.2)):
        return SplitAssignTree(**limits | {"max_depth": 1}, time_limit=0.5 if time_limit is None else time_limit)
    return OptimalTree(**limits)


def _finite(rng: Draw, wild: bool, classes: bool) -> Any:
    loss = "logistic" if classes else _loss(rng, wild)
    partitioner, ridge = _partitioner(rng, wild, loss), _penalty(rng, wild)
    if isinstance(partitioner, SplitAssignTree) and loss == "absolute":
        ridge = 0.0
    model = (FiniteClassifier if classes else FiniteRegressor)(partitioner, ridge)
    model.set_params(
        leaf_model=pick(rng, ("affine_intercept", "static")),
        loss=loss,
        ridge_scale=pick(rng, ("leaf", "leaf", "sample")),
        scale=pick(rng, (True, True, True, False)),
        on_unseen_pattern=pick(rng, ("nearest", "nearest", "warn")),
    )
    _set_center(rng, model)
    if classes:
        return model.set_params(class_weight=_class_weight(rng, wild))
    return model.set_params(truncate=pick(rng, (True, False)))


def _folds(rng: Draw) -> Any:
    return pick(rng, (2, 2, 2, 3, KFold(2)))


def _linear_cv(rng: Draw, wild: bool, classes: bool) -> Any:
    finite = _finite_cv(rng, wild, classes).set_params(loss="logistic" if classes else "squared")
    candidates: tuple[Any, ...] = (*CLASSES, ["static", "affine"], "conditional_mean", ["affine_intercept", finite])
    model = (AdaptiveClassifierCV if classes else AdaptiveRegressorCV)(
        pick(rng, candidates),
        l1_ratios=pick(rng, ([0.0], [0.5], [0.0, 1.0], [1e-9])),
        n_lambdas=pick(rng, (1, 3, 5)),
        eps=pick(rng, ("auto", "auto", "glmnet", 0.1, 1e-9 if wild else 1e-3)),
        adaptive_penalties=pick(rng, ([1.0], [1.0], [0.25, 4.0], [0.0] if wild else [1.0])),
        penalty_weights=pick(rng, ("count", "count", "authors")),
        scale=pick(rng, (True, True, True, False)),
        fit_intercept=pick(rng, (True, True, True, False)),
        stop_early=pick(rng, (False, True)),
        cv=_folds(rng),
        random_state=0,
    )
    _set_center(rng, model)
    return model.set_params(class_weight=_class_weight(rng, wild)) if classes else model


def _finite_cv(rng: Draw, wild: bool, classes: bool) -> Any:
    ridges = [_penalty(rng, wild) for _ in range(2)]
    model = (FiniteClassifierCV if classes else FiniteRegressorCV)(
        pick(rng, (None, Greedy(min_rows=1), OptimalTree(min_rows=1), Greedy(min_rows=3))),
        max_depths=pick(rng, ([1], [1, 2], [])),
        max_leaves=pick(rng, (None, None, None, [2], [1, 3])),
        ridges=ridges,
        leaf_models=pick(rng, (["static"], ["affine_intercept"], ["static", "affine_intercept"])),
        ridge_scale=pick(rng, ("leaf", "sample")),
        one_standard_error=pick(rng, (True, False)),
        scale=pick(rng, (True, True, False)),
        cv=_folds(rng),
        random_state=0,
    )
    _set_center(rng, model)
    if classes:
        return model.set_params(class_weight=_class_weight(rng, wild))
    return model.set_params(
        loss=pick(rng, ("squared",) * 12 + ("absolute", "huber")), truncate=pick(rng, (True, False))
    )


def _joint(rng: Draw, wild: bool, classes: bool) -> Any:
    algorithm = pick(rng, ("auto", "paper"))
    if classes:
        options = (None, LogisticRegression(C=0.5), DecisionTreeClassifier(max_depth=2, random_state=0))
        return JointImputeClassifier(pick(rng, options), algorithm, pick(rng, ("log_loss", "auc")), 0)
    options = (None, Ridge(), Ridge(1e-12), LinearRegression(), DecisionTreeRegressor(max_depth=2, random_state=0))
    return JointImputeRegressor(pick(rng, options), algorithm, 0)


def _expected(rng: Draw, wild: bool, classes: bool) -> Any:
    law, prior = pick(rng, ("gaussian", "censored")), _penalty(rng, wild)
    relu = law == "gaussian" and pick(rng, (False, False, True))
    if pick(rng, (False, False, True)):
        return ExpectedFeatures(pick(rng, (0, 3)), law, prior, relu, random_state=0)
    model = ExpectedFeaturesClassifier if classes else ExpectedFeaturesRegressor
    return model(pick(rng, (0, 0, 4)), law, prior, relu, cv=pick(rng, (None, None, 2)), random_state=0)


def _stack(rng: Draw, wild: bool, classes: bool) -> Any:
    path = {"n_lambdas": 3, "l1_ratios": [0.0], "adaptive_penalties": [1.0], "cv": 2}
    own = ("own", (AdaptiveClassifierCV if classes else AdaptiveRegressorCV)("affine_intercept", **path))
    candidates = pick(rng, ([own], ["conditional_mean", own], ["conditional_mean", "conditional_mean_censored"]))
    stack = AdaptiveStackClassifier if classes else AdaptiveStackRegressor
    return stack(candidates, shrinkage=_penalty(rng, wild), cv=2, random_state=0)


GRIDS: dict[str, dict[str, list[Any]]] = {
    "linear": {"l1_ratio": [0.5], "lam": [0.1, 1.0]},
    "tree": {"max_depth": [1, 3]},
    "forest": {"n_estimators": [2], "max_depth": [2]},
    "xgboost": {"n_estimators": [2], "max_depth": [2]},
    "hist_boosting": {"max_iter": [2], "min_samples_leaf": [2]},
}


def _baseline(rng: Draw, wild: bool, classes: bool) -> Any:
    kind = pick(rng, ("linear", "linear", "tree", "tree", "forest", "xgboost", "hist_boosting"))
    options = {"grid": GRIDS[kind], "cv": 2, "random_state": 0}
    if pick(rng, (True, False)):
        name = pick(rng, ("mean", "mice", "mean_indicators", "complete_features", "iterative"))
        return baseline(name, kind, task="classification" if classes else "regression", **options)
    imputer = SimpleImputer(keep_empty_features=True) if kind == "linear" else None
    return (TunedClassifier if classes else TunedRegressor)(kind, imputer, **options)


def _imputer(rng: Draw, wild: bool, classes: bool) -> Any:
    chained = ChainedEquations(pick(rng, (1, 5)), pick(rng, (1, 2)), random_state=0)
    return pick(rng, (chained, chained, CompleteFeatures()))


FAMILIES = (
    *[_linear] * 10, *[_linear_cv] * 4, *[_finite] * 10, *[_finite_cv] * 4, *[_joint] * 2, *[_expected] * 3, _stack,
    *[_baseline] * 2, _imputer,
)  # fmt: skip


def make_model(rng: Draw, wild: bool, classes: bool) -> Any:
    """An estimator for the task, or a transformer."""
    return pick(rng, FAMILIES)(rng, wild, classes)


def spoil(rng: Draw, model: Any) -> tuple[str, Any]:
    """Set one parameter, also of a part of the estimator, to a value that may make no sense."""
    names = sorted(name for name in model.get_params() if name not in ("n_jobs", "imputer", "estimator"))
    if not names:
        return "", None
    name, value = pick(rng, names), pick(rng, NONSENSE)
    model.set_params(**{name: value})
    return name, value


def is_deterministic(model: Any) -> bool:
    """Whether two fits take the same steps: none of them draws a seed, or stops when time runs out."""
    if model.get_params(deep=False).get("random_state", 0) is None:
        return False
    return not any(name.endswith("time_limit") and value for name, value in model.get_params().items())
