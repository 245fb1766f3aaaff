"""Kinds of predictors, and how their nested hyper-parameters are read off one fit.

A kind has estimators, the names of their nested parameters, for which the fit at the largest value contains all others,
and a function that reads the predictions at each value off that fit. All other parameters are crossed, one fit each.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
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

from admiss.baselines.tuning.grids import Grid
from admiss.baselines.tuning.nested.boosting import histogram_rounds, xgboost_rounds
from admiss.baselines.tuning.nested.linear import fit_linear_path, path_lambdas
from admiss.baselines.tuning.nested.trees import growing_forest
from admiss.linear.estimators import AdaptiveClassifier, AdaptiveRegressor
from formulations.arrays import FloatArray, IntArray

Parameters = dict[str, Any]
Outputs = Iterator[tuple[Parameters, FloatArray]]


@dataclass(frozen=True)
class Rows:
    """Training rows: y are numbers, or codes 0 .. K - 1 of classes that all occur; K is 0 in regression.

    ``classes`` are the labels of the codes; class weights are given by label.
    """

    X: FloatArray
    y: FloatArray | IntArray
    s: FloatArray | None
    n_classes: int
    classes: Any = ()

    @property
    def weights(self) -> FloatArray:
        """The weights, ones by default."""
        return np.ones(len(self.y)) if self.s is None else self.s


@dataclass(frozen=True)
class Kind:
    """A kind of predictors.

    Attributes
    ----------
    regressor, classifier : callables
        From parameters to estimators.
    nested : tuple of str
        Parameters that are read off, the outer one first.
    read : callable
        From the fit at their largest values, rows and a grid of nested parameters to the outputs of each cell.
    fixed : dict
        Fixed parameters.
    refused : tuple of str
        Parameters not allowed in a grid; some would invalidate the reading.
    takes_nan : bool
        Whether the predictor accepts missing values.
    """

    regressor: Callable[..., Any]
    classifier: Callable[..., Any]
    nested: tuple[str, ...]
    read: Callable[[Any, FloatArray, Grid], Outputs]
    fixed: Parameters = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    takes_nan: bool = True

    def make(self, rows: Rows, parameters: Parameters, seed: int) -> Any:
        """Unfitted estimator for such rows with given parameters."""
        by_label = parameters.get("class_weight")
        if isinstance(by_label, Mapping):
            by_code = {code: by_label[label] for code, label in enumerate(rows.classes) if label in by_label}
            parameters = {**parameters, "class_weight": by_code}
        estimator = (self.classifier if rows.n_classes else self.regressor)(**self.fixed, **parameters)
        return estimator.set_params(random_state=seed) if "random_state" in estimator.get_params() else estimator

    def check(self, name: str, grid: Grid, is_classifier: bool) -> None:
        """Refuse parameters that the kind does not have, or that invalidate the reading."""
        known = (self.classifier if is_classifier else self.regressor)().get_params()
        for parameter in grid:
            if parameter not in known:
                raise ValueError(f"The predictor {name!r} has no parameter {parameter!r}: leave it out of the grid.")
            if parameter in self.refused or parameter in self.fixed:
                raise ValueError(f"The parameter {parameter!r} of {name!r} cannot be tuned: leave it out of the grid.")
        self.check_values(grid)

    def check_values(self, grid: Grid) -> None:
        """Refuse invalid values of nested parameters."""
        for parameter in self.nested:
            values = grid.get(parameter, [])
            limits = [value for value in values if value is not None or parameter != "max_depth"]
            if any(isinstance(value, bool) or not isinstance(value, Integral) or value < 1 for value in limits):
                raise ValueError(f"The grid of {parameter!r} must hold positive integers, not {values}.")

    def cells(self, grid: Grid, rows: Rows) -> list[tuple[Parameters, Grid]]:
        """Combinations of crossed parameters, one fit each, with the nested parameters read off each fit."""
        crossed = [name for name in grid if name not in self.nested]
        nested = {name: _ordered(grid[name]) for name in self.nested if name in grid}
        return [(dict(zip(crossed, values, strict=True)), nested) for values in product(*(grid[c] for c in crossed))]

    def held_out(self, parameters: Parameters, nested: Grid, train: Rows, X: FloatArray, seed: int) -> Outputs:
        """Outputs for held-out rows at all values of nested parameters, from one fit."""
        largest = {name: values[-1] for name, values in nested.items()}
        model = self.make(train, {**parameters, **largest}, seed)
        return self.read(fit_predictor(model, train), X, nested)


def fit_predictor(model: Any, rows: Rows) -> Any:
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


class _LinearKind(Kind):
    """Linear predictors: lambda is read off a path."""

    def make(self, rows: Rows, parameters: Parameters, seed: int) -> Any:
        """As usual; an elastic net does not limit its predictions."""
        estimator = super().make(rows, parameters, seed)
        return estimator if rows.n_classes else estimator.set_params(max_extrapolation=np.inf)

    def cells(self, grid: Grid, rows: Rows) -> list[tuple[Parameters, Grid]]:
        cells = []
        for parameters, nested in super().cells(grid, rows):
            alpha = parameters.setdefault("l1_ratio", 0.5)
            # decreasing lambdas: the order of a path, and the simplest model first
            lambdas = (
                nested["lam"][::-1] if nested else path_lambdas(rows.X, rows.y, rows.weights, rows.n_classes, alpha)
            )
            cells.append((parameters, {"lam": lambdas}))
        return cells

    def held_out(self, parameters: Parameters, nested: Grid, train: Rows, X: FloatArray, seed: int) -> Outputs:
        path = fit_linear_path(train.X, train.y, train.weights, train.n_classes, parameters["l1_ratio"], nested["lam"])
        return self.read(path, X, nested)

    def check_values(self, grid: Grid) -> None:
        if any(not _is_number(lam) or not 0 < float(lam) < np.inf for lam in grid.get("lam", [])):
            raise ValueError(f"The grid of 'lam' must hold positive numbers, not {grid['lam']}.")
        if any(not _is_number(alpha) or not 0 <= float(alpha) <= 1 for alpha in grid.get("l1_ratio", [])):
            raise ValueError(f"The grid of 'l1_ratio' must hold numbers from 0 to 1, not {grid['l1_ratio']}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _read_path(path: Any, X: FloatArray, nested: Grid) -> Outputs:
    for lam, outputs in zip(nested["lam"], path.outputs(X), strict=True):
        yield {"lam": lam}, outputs


def _read_tree(tree: Any, X: FloatArray, nested: Grid) -> Outputs:
    if not nested:
        yield {}, tree.predict_proba(X) if hasattr(tree, "classes_") else tree.predict(X)
        return
    for _, by_depth in growing_forest([tree], X, nested["max_depth"], [1]):
        for depth, outputs in zip(nested["max_depth"], by_depth, strict=True):
            yield {"max_depth": depth}, outputs


def _read_forest(forest: Any, X: FloatArray, nested: Grid) -> Outputs:
    counts, depths = nested.get("n_estimators", [forest.n_estimators]), nested.get("max_depth", [None])
    for count, by_depth in growing_forest(forest.estimators_, X, depths, counts):
        for depth, outputs in zip(depths, by_depth, strict=True):
            cell = {"n_estimators": count, "max_depth": depth}
            yield {name: cell[name] for name in nested}, outputs


def _read_rounds(parameter: str, rounds: Callable[..., Iterator[tuple[int, FloatArray]]]) -> Any:
    def read(model: Any, X: FloatArray, nested: Grid) -> Outputs:
        default = model.n_iter_ if parameter == "max_iter" else model.get_booster().num_boosted_rounds()
        for count, outputs in rounds(model, X, nested.get(parameter, [default])):
            yield {parameter: count} if nested else {}, outputs

    return read


_NEVER = ("random_state", "n_jobs", "verbose", "warm_start")
# With these a truncated tree is not the tree of that depth.
_NO_DEPTH = ("ccp_alpha", "max_leaf_nodes")

KINDS: dict[str, Kind] = {
    "linear": _LinearKind(
        AdaptiveRegressor,
        AdaptiveClassifier,
        ("lam",),
        _read_path,
        {"adaptivity": "static"},
        refused=tuple(set(AdaptiveRegressor().get_params()) - {"lam", "l1_ratio"}),
        takes_nan=False,
    ),
    "tree": Kind(
        DecisionTreeRegressor,
        DecisionTreeClassifier,
        ("max_depth",),
        _read_tree,
        refused=(*_NEVER, *_NO_DEPTH),
    ),
    "forest": Kind(
        RandomForestRegressor,
        RandomForestClassifier,
        ("n_estimators", "max_depth"),
        _read_forest,
        {"n_jobs": 1},
        refused=(*_NEVER, *_NO_DEPTH),
    ),
    "xgboost": Kind(
        XGBRegressor,
        XGBClassifier,
        ("n_estimators",),
        _read_rounds("n_estimators", xgboost_rounds),
        {"n_jobs": 1},
        refused=(*_NEVER, "booster", "early_stopping_rounds", "callbacks", "objective", "missing"),
    ),
    "hist_boosting": Kind(
        HistGradientBoostingRegressor,
        HistGradientBoostingClassifier,
        ("max_iter",),
        _read_rounds("max_iter", histogram_rounds),
        {"early_stopping": False},
        refused=(*_NEVER, "loss"),
    ),
}
