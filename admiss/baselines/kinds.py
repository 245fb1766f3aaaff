"""Kinds of predictors, and how one fit gives the predictions at many hyper-parameters.

Parameters are *nested* if the fit at the largest value contains those at all others, which are read off it. All other
parameters are crossed, one fit each. Comparison with a separate fit with the same ``random_state``:

=================================== ================================================================================
number of trees, boosting rounds    equal to the last digit: the first trees or rounds of a larger fit
lambda of a linear predictor        equal up to the tolerance of the solver: a point of a path
depth, all features in every split  equal up to rounding if no two splits of a node are equally good
depth, fewer ``max_features``       another draw from the same distribution
=================================== ================================================================================

A tree cut at some depth predicts the value of the node reached there. Trees grow depth first, and a node draws the
order in which it examines the features from one stream of random numbers, of which a deeper tree has used more before
it reaches that node. The order decides ties and, with fewer ``max_features``, which features are examined. The draws of
different nodes are independent, so the truncated tree has the distribution of a tree grown to that depth.

The linear predictor is, on complete rows a_i standardised, with the squared or the logistic loss,

    minimise over (w, b)  (1/S) sum_i s_i l(y_i, a_i'w + b) + (lambda / S) sum_j [ alpha |w_j| + (1 - alpha) w_j^2 / 2 ]

that is ``AdaptiveRegressor("static")`` or ``AdaptiveClassifier("static")``, with more than two classes one against the
rest.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from xgboost import XGBClassifier, XGBRegressor
from xgboost.core import XGBoostError

from admiss.baselines.grids import Grid
from admiss.estimator.labels import class_probabilities
from admiss.estimator.scaling import standardised
from admiss.estimator.validation import seeded
from admiss.joint.predictor import class_weights_by_code
from admiss.linear.estimators import AdaptiveClassifier, AdaptiveRegressor
from admiss.linear.folds import SMALLEST_ALPHA
from admiss.linear.grid_paths import PATH_TOLERANCE, UNFINISHED
from formulations.arrays import FloatArray, IntArray
from formulations.erm.logistic_path import logistic_path
from formulations.erm.quadratic_path import quadratic_path

Parameters = dict[str, Any]
Outputs = Iterator[tuple[Parameters, FloatArray]]


@dataclass(frozen=True)
class TrainingRows:
    """Rows: y are numbers, or codes 0 .. K - 1 of ``classes``, which are None in regression."""

    X: FloatArray
    y: FloatArray | IntArray
    s: FloatArray | None
    classes: Any = None

    @property
    def n_classes(self) -> int:
        """K, 0 in regression."""
        return 0 if self.classes is None else len(self.classes)

    @property
    def weights(self) -> FloatArray:
        """The weights, ones by default."""
        return np.ones(len(self.y)) if self.s is None else self.s

    def take(self, selected: IntArray) -> "TrainingRows":
        """Some of the rows."""
        return replace(self, X=self.X[selected], y=self.y[selected], s=None if self.s is None else self.s[selected])

    def targets(self) -> list[FloatArray]:
        """The target of a regression, or -1 and 1 for each binary problem of a classification."""
        if not self.n_classes:
            return [np.asarray(self.y, dtype=float)]
        positive = [1] if self.n_classes == 2 else range(self.n_classes)
        return [np.where(self.y == k, 1.0, -1.0) for k in positive]


@dataclass(frozen=True)
class Kind:
    """A kind of predictors, given by functions from parameters to estimators."""

    regressor: Callable[..., Any]
    classifier: Callable[..., Any]
    # Parameters that are read off, the outer one first.
    nested: tuple[str, ...]
    # Parameters not allowed in a grid; some would invalidate the reading.
    refused: tuple[str, ...]

    def make(self, rows: TrainingRows, parameters: Parameters, seed: int) -> Any:
        """Unfitted estimator for such rows with given parameters."""
        if not rows.n_classes:
            return seeded(self.regressor(**parameters), seed)
        return seeded(class_weights_by_code(self.classifier(**parameters), rows.classes), seed)

    def check(self, name: str, grid: Grid, is_classifier: bool) -> None:
        """Refuse parameters that the kind does not have, or that invalidate the reading."""
        known = (self.classifier if is_classifier else self.regressor)().get_params()
        for parameter in grid:
            if parameter not in known:
                raise ValueError(f"The predictor {name!r} has no parameter {parameter!r}: leave it out of the grid.")
            if parameter in self.refused:
                raise ValueError(f"The parameter {parameter!r} of {name!r} cannot be tuned: leave it out of the grid.")
        self.check_values(grid)

    def check_values(self, grid: Grid) -> None:
        """Refuse invalid values of nested parameters."""
        for parameter in self.nested:
            values = grid.get(parameter, [])
            limits = [value for value in values if value is not None or parameter != "max_depth"]
            if any(isinstance(value, bool) or not isinstance(value, Integral) or value < 1 for value in limits):
                raise ValueError(f"The grid of {parameter!r} must hold positive integers, not {values}.")

    def cells(self, grid: Grid, rows: TrainingRows) -> list[tuple[Parameters, Grid]]:
        """Combinations of crossed parameters, one fit each, with the nested parameters read off each fit."""
        crossed = {name: values for name, values in grid.items() if name not in self.nested}
        nested = {name: _ordered(grid[name]) for name in self.nested if name in grid}
        return [(dict(zip(crossed, values, strict=True)), nested) for values in product(*crossed.values())]

    def held_out(self, parameters: Parameters, nested: Grid, train: TrainingRows, X: FloatArray, seed: int) -> Outputs:
        """Outputs for held-out rows at all values of nested parameters, from one fit."""
        largest = {name: values[-1] for name, values in nested.items()}
        model = fit_predictor(self.make(train, {**parameters, **largest}, seed), train)
        return self.read(model, X, nested) if nested else Kind.read(self, model, X, nested)

    def read(self, model: Any, X: FloatArray, nested: Grid) -> Outputs:
        """Outputs at all values of nested parameters, here none, from the fit at their largest values."""
        yield {}, _predict(model)(X)


def fit_predictor(model: Any, rows: TrainingRows) -> Any:
    """Fit a predictor. A column without values, which histograms cannot bin, is constant for them."""
    X = rows.X
    if isinstance(model, HistGradientBoostingRegressor | HistGradientBoostingClassifier):
        X = np.where(np.isnan(X).all(axis=0), 0.0, X)
    try:
        return model.fit(X, rows.y, sample_weight=rows.s)
    except XGBoostError as error:
        raise ValueError(
            "XGBoost refuses these rows: it computes in single precision, so use other units for X, y and the weights."
        ) from error


def _ordered(values: list[Any]) -> list[Any]:
    """Distinct values in increasing order; None (no limit) comes last."""
    return sorted(set(values), key=lambda value: np.inf if value is None else value)


def _predict(model: Any) -> Callable[..., FloatArray]:
    """Probabilities of a classifier, predictions of a regressor."""
    return getattr(model, "predict_proba", model.predict)


class _Trees(Kind):
    """A tree cut at some depths, or the first trees of a forest cut there."""

    def read(self, model: Any, X: FloatArray, nested: Grid) -> Outputs:
        trees = getattr(model, "estimators_", [model])
        depths = nested.get("max_depth", [None])
        # scikit-learn compares in single precision; infinity is beyond every threshold
        with np.errstate(over="ignore"):
            single = X.astype(np.float32)
        totals = np.zeros((len(depths), len(X), trees[0].tree_.value.shape[2]))
        for count, tree in enumerate(trees, start=1):
            path = tree.tree_.decision_path(single)  # the nodes of each row, from the root to its leaf
            lengths = np.diff(path.indptr) - 1
            for total, depth in zip(totals, depths, strict=True):
                steps = lengths if depth is None else np.minimum(lengths, depth)
                total += tree.tree_.value[path.indices[path.indptr[:-1] + steps], 0]
            if count not in nested.get("n_estimators", [len(trees)]):
                continue
            for depth, total in zip(depths, totals, strict=True):
                mean = total / count
                cell = {"n_estimators": count, "max_depth": depth}
                yield {name: cell[name] for name in nested}, mean if hasattr(model, "classes_") else mean[:, 0]


class _XGBoost(Kind):
    """The first rounds of XGBoost."""

    def read(self, model: Any, X: FloatArray, nested: Grid) -> Outputs:
        for rounds in nested["n_estimators"]:
            yield {"n_estimators": rounds}, _predict(model)(X, iteration_range=(0, rounds))


class _Histograms(Kind):
    """The first rounds of boosting with histograms."""

    def read(self, model: Any, X: FloatArray, nested: Grid) -> Outputs:
        staged = getattr(model, "staged_predict_proba", model.staged_predict)
        for rounds, outputs in enumerate(staged(X), start=1):
            if rounds in nested["max_iter"]:
                yield {"max_iter": rounds}, outputs


class _Linear(Kind):
    """Linear predictors: lambda is read off a path."""

    def cells(self, grid: Grid, rows: TrainingRows) -> list[tuple[Parameters, Grid]]:
        """Decreasing lambdas: the order of a path, and the simplest model first."""
        cells = []
        for parameters, nested in super().cells(grid, rows):
            alpha = parameters.setdefault("l1_ratio", 0.5)
            cells.append((parameters, {"lam": nested["lam"][::-1] if nested else path_lambdas(rows, alpha)}))
        return cells

    def held_out(self, parameters: Parameters, nested: Grid, train: TrainingRows, X: FloatArray, seed: int) -> Outputs:
        """The outputs along one path."""
        outputs = path_outputs(train, parameters["l1_ratio"], nested["lam"], X)
        return (({"lam": lam}, output) for lam, output in zip(nested["lam"], outputs, strict=True))

    def check_values(self, grid: Grid) -> None:
        """Refuse invalid penalties."""
        if any(not _is_number(lam) or not 0 < float(lam) < np.inf for lam in grid.get("lam", [])):
            raise ValueError(f"The grid of 'lam' must hold positive numbers, not {grid['lam']}.")
        if any(not _is_number(alpha) or not 0 <= float(alpha) <= 1 for alpha in grid.get("l1_ratio", [])):
            raise ValueError(f"The grid of 'l1_ratio' must hold numbers from 0 to 1, not {grid['l1_ratio']}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def path_lambdas(rows: TrainingRows, l1_ratio: float, n_lambdas: int = 100) -> list[float]:
    """Decreasing geometric lambdas of glmnet's range, from the smallest at which all coefficients are 0.

    Examples
    --------
    >>> rows = TrainingRows(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 3.0, 5.0, 7.0]), None)
    >>> path_outputs(rows, 1.0, path_lambdas(rows, 1.0, 3), np.array([[4.0]])).round(2).ravel().tolist()
    [4.0, 8.95, 9.0]
    """
    s = rows.weights
    A, _, _ = standardised(rows.X, s)
    q = s / s.sum()
    # at the optimal intercept the squared loss has derivative 2 (mean of y - y), the logistic loss a quarter of that
    factor = 0.5 if rows.n_classes else 2.0
    slopes = [factor * np.abs(A.T @ (q * (target - q @ target))).max() for target in rows.targets()]
    largest = max(slopes) * s.sum() / max(l1_ratio, SMALLEST_ALPHA) or 1.0
    share = 1e-2 if len(A) < A.shape[1] else 1e-4
    return np.geomspace(largest, share * largest, n_lambdas).tolist()


def path_outputs(rows: TrainingRows, l1_ratio: float, lambdas: list[float], X: FloatArray) -> FloatArray:
    """Predictions for X, or probabilities, of models fitted to complete rows at decreasing lambdas, one after another.

    They are NaN if a fit does not meet the optimality conditions.
    """
    s = rows.weights
    A, mean, scale = standardised(rows.X, s)
    q = s / s.sum()
    v1 = np.full(A.shape[1], l1_ratio / s.sum())
    v2 = np.full(A.shape[1], (1.0 - l1_ratio) / s.sum())
    grid = np.asarray(lambdas, dtype=float)
    weights, intercepts = [], []
    for target in rows.targets():
        if rows.n_classes:
            l1 = np.insert(v1, 0, 0.0)
            l2 = np.insert(v2, 0, 0.0)
            path = logistic_path(np.insert(A, 0, 1.0, axis=1), 1, target, q, l1, l2, grid, PATH_TOLERANCE)
            w = path.w[:, 1:]
            b = path.w[:, 0]
            violation = path.violation
        else:
            centre = float(q @ target)
            w, violation = quadratic_path(2.0 * (A.T * q) @ A, 2.0 * A.T @ (q * (target - centre)), v1, v2, grid)
            b = np.full(len(grid), centre)
        weights.append(np.where(violation[:, None] > UNFINISHED, np.nan, w))
        intercepts.append(b)
    scores = np.einsum("tlj,ij->lit", np.array(weights), (X - mean) / scale, optimize=True)
    scores += np.array(intercepts).T[:, None, :]
    if not rows.n_classes:
        return scores[:, :, 0]
    return np.stack([class_probabilities(z[:, 0] if z.shape[1] == 1 else z) for z in scores])


_NEVER = ("random_state", "n_jobs", "verbose", "warm_start")
# With the last two a truncated tree is not the tree of that depth.
_NOT_OF_TREES = (*_NEVER, "ccp_alpha", "max_leaf_nodes")

KINDS: dict[str, Kind] = {
    "linear": _Linear(
        partial(AdaptiveRegressor, "static", max_extrapolation=np.inf),  # as an elastic net
        partial(AdaptiveClassifier, "static"),
        ("lam",),
        tuple(set(AdaptiveRegressor().get_params()) - {"lam", "l1_ratio"}),
    ),
    "tree": _Trees(DecisionTreeRegressor, DecisionTreeClassifier, ("max_depth",), _NOT_OF_TREES),
    "forest": _Trees(
        partial(RandomForestRegressor, n_jobs=1),
        partial(RandomForestClassifier, n_jobs=1),
        ("n_estimators", "max_depth"),
        _NOT_OF_TREES,
    ),
    "xgboost": _XGBoost(
        partial(XGBRegressor, n_jobs=1),
        partial(XGBClassifier, n_jobs=1),
        ("n_estimators",),
        (*_NEVER, "booster", "early_stopping_rounds", "callbacks", "objective", "missing"),
    ),
    "hist_boosting": _Histograms(
        partial(HistGradientBoostingRegressor, early_stopping=False),
        partial(HistGradientBoostingClassifier, early_stopping=False),
        ("max_iter",),
        (*_NEVER, "loss", "early_stopping"),
    ),
}
