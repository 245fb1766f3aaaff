"""Imputation of missing values by random forests, following missForest (Stekhoven and Buhlmann, 2012).

    start with the means of numbers and the most frequent levels of categories
    repeat
        for each variable with missing values, in increasing order of their number
            fit a forest to the rows that have it; predictors are all other variables, as imputed so far
            predict the variable where it is missing
    until the change is no longer smaller than in the previous iteration, neither for numbers nor for categories;
    the result is the matrix of the previous iteration

    change of numbers      sum of (new - old)^2, in units of the standard deviations of the observed values
    change of categories   number of missing categories whose level changes

Forests are as in missForest: 100 trees on bootstrap samples, floor(sqrt(d)) columns tried at a split, nodes of up to 5
rows not split in regression. There a category is one of the d columns, here each of its indicators is. Numbers are
standardised meanwhile, which does not affect splits but makes changes comparable across units.

Above 10^6 cells (rows times columns) the defaults are smaller: 10^8 / cells trees, but at least 10, on up to 10,000
rows each, and at most 5 iterations instead of 10. ``full_matrix`` caches its result on disk.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.utils import check_random_state

from admiss.datasets.paper.dataset import Dataset
from admiss.datasets.paper.storage import cached
from admiss.estimator.scaling import observed_moments, observed_scale
from admiss.estimator.validation import positive_integer, read_features
from admiss.terminal.progress import counter
from formulations.arrays import BoolArray, FloatArray, IntArray

# Part of the key of a cached matrix: change it with anything that changes the values.
ALGORITHM = "forest 1"
# Trees in memory at a time; with a thousand levels a single tree takes tens of megabytes.
TREES_AT_ONCE = 10


class ForestSize(NamedTuple):
    """Trees per forest, maximum number of iterations, and maximum number of rows drawn for a tree."""

    n_trees: int
    max_iterations: int
    max_rows: int


def forest_size(
    n: int, d: int, n_trees: int | None = None, max_iterations: int | None = None, max_rows: int | None = None
) -> ForestSize:
    """The given sizes, with None replaced by the default for a matrix of n rows and d columns.

    Examples
    --------
    >>> forest_size(300, 20)
    ForestSize(n_trees=100, max_iterations=10, max_rows=300)
    >>> forest_size(20_000, 200, max_iterations=2)
    ForestSize(n_trees=25, max_iterations=2, max_rows=10000)
    """
    defaults = ForestSize(100, 10, n) if n * d <= 10**6 else ForestSize(max(10, 10**8 // (n * d)), 5, min(n, 10_000))
    sizes = {"n_trees": n_trees, "max_iterations": max_iterations, "max_rows": max_rows}
    return defaults._replace(
        **{name: positive_integer(name, value) for name, value in sizes.items() if value is not None}
    )


def impute_forest(
    X: Any,
    variables: Sequence[Hashable] | None = None,
    *,
    n_trees: int | None = None,
    max_iterations: int | None = None,
    max_rows: int | None = None,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
) -> FloatArray:
    """Impute missing values by random forests; observed values are unchanged.

    Parameters
    ----------
    X : array of shape (n, d)
        Numbers and indicators of levels, NaN where missing.
    variables : sequence of d labels, optional
        Columns with the same label are the indicators of one categorical variable: 0 or 1, and missing together. A
        column with a unique label is a number, as is every column by default.
    n_trees, max_iterations, max_rows : int, optional
        Trees per forest, maximum number of iterations, and maximum number of rows drawn for a tree; see the module for
        the defaults.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Threads; the result does not depend on their number.

    Examples
    --------
    >>> x = np.arange(60.0)
    >>> X = np.column_stack([x, 2 * x, x % 7])
    >>> X[30, 1] = np.nan
    >>> bool(55 < impute_forest(X)[30, 1] < 65)
    True
    """
    X = check_matrix(X)
    groups = _columns_of_variables(variables, X.shape[1])
    size = forest_size(len(X), X.shape[1], n_trees, max_iterations, max_rows)
    centre, scale = _units(X, groups)
    Z = (X - centre) / scale
    incomplete = sorted((v for v in (_incomplete(Z, c) for c in groups) if v), key=lambda v: v.is_missing.sum())
    for variable in incomplete:
        Z[variable.cells] = variable.start
    to_predict = [v for v in incomplete if v.varies and len(v.columns) < X.shape[1]]
    _iterate(Z, to_predict, size, check_random_state(random_state), n_jobs)
    # Averages lie within the range of the observed values, even after rounding.
    filled = np.clip(centre + scale * Z, np.nanmin(X, axis=0), np.nanmax(X, axis=0))
    return np.where(np.isnan(X), filled, X)


def check_matrix(X: Any) -> FloatArray:
    """X as floats; a column without an observed value is an error."""
    X = read_features(BaseEstimator(), X, reset=True)
    empty = np.flatnonzero(np.isnan(X).all(axis=0))
    if len(empty):
        raise ValueError(f"Column {empty[0]} of X has no observed value to learn from: leave it out.")
    return X


def _columns_of_variables(variables: Sequence[Hashable] | None, d: int) -> list[IntArray]:
    """The columns of each variable, ordered by their first column."""
    if variables is None:
        return [np.array([j]) for j in range(d)]
    if len(variables) != d:
        raise ValueError(f"variables must have one label for each of the {d} columns of X, not {len(variables)}.")
    columns: dict[Hashable, list[int]] = {}
    for j, label in enumerate(variables):
        columns.setdefault(label, []).append(j)
    return [np.array(group) for group in columns.values()]


def _units(X: FloatArray, groups: list[IntArray]) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of numbers; 0 and 1 for indicators, which are not scaled."""
    mean, deviation, magnitude, _ = observed_moments(X, np.ones(len(X)))
    scale, _ = observed_scale(deviation, magnitude)
    indicators = np.concatenate([group for group in groups if len(group) > 1] or [np.array([], dtype=int)])
    mean[indicators], scale[indicators] = 0.0, 1.0
    return mean, scale


@dataclass(frozen=True)
class _Incomplete:
    """A variable with missing values.

    ``target`` holds its observed values: numbers, or for a category indices into ``levels``, the distinct observed rows
    of its indicators.
    """

    columns: IntArray
    is_missing: BoolArray
    target: FloatArray | IntArray
    levels: FloatArray | None

    @property
    def cells(self) -> tuple[IntArray, ...]:
        return np.ix_(np.flatnonzero(self.is_missing), self.columns)

    @property
    def varies(self) -> bool:
        return bool(self.target.max() > self.target.min())

    @property
    def start(self) -> float | FloatArray:
        return 0.0 if self.levels is None else self.levels[np.bincount(self.target).argmax()]


def _incomplete(Z: FloatArray, columns: IntArray) -> _Incomplete | None:
    """The variable in these columns of a standardised matrix, or None if it is complete."""
    M = np.isnan(Z[:, columns])
    is_missing = M[:, 0]
    if len(columns) == 1:
        observed = Z[~is_missing, columns[0]]
        return _Incomplete(columns, is_missing, observed, None) if is_missing.any() else None
    indicators = Z[np.ix_(~is_missing, columns)]
    if (M != M[:, :1]).any() or not np.isin(indicators, (0, 1)).all() or (indicators.sum(axis=1) > 1).any():
        raise ValueError(
            f"Columns {', '.join(map(str, columns[:5]))} of X share a label but are not the indicators of one "
            "category: they must be missing together, and otherwise 0 or 1 with at most one 1 in a row."
        )
    levels, target = np.unique(indicators, axis=0, return_inverse=True)
    return _Incomplete(columns, is_missing, target.ravel(), levels) if is_missing.any() else None


def _iterate(
    Z: FloatArray, variables: list[_Incomplete], size: ForestSize, rng: np.random.RandomState, n_jobs: int | None
) -> None:
    """Update the missing cells of Z until the changes no longer decrease."""
    previous_change: dict[str, float] = {}
    with counter("filling in missing values") as report:
        for iteration in range(size.max_iterations):
            before = Z.copy()
            for done, variable in enumerate(variables, start=1):
                Z[variable.cells] = _predict(Z, variable, size, rng, n_jobs)
                report(iteration * len(variables) + done, size.max_iterations * len(variables))
            change = _change(before, Z, variables)
            if not any(change[kind] < previous_change.get(kind, np.inf) for kind in change):
                Z[:] = before
                return
            previous_change = change


def _change(before: FloatArray, after: FloatArray, variables: list[_Incomplete]) -> dict[str, float]:
    """The change of numbers and of categories, for the kinds that occur."""
    change: dict[str, float] = {}
    for v in variables:
        difference = after[v.cells] - before[v.cells]
        if v.levels is None:
            kind, amount = "number", (difference**2).sum()
        else:
            kind, amount = "category", difference.any(axis=1).sum()
        change[kind] = change.get(kind, 0.0) + float(amount)
    return change


def _predict(
    Z: FloatArray, variable: _Incomplete, size: ForestSize, rng: np.random.RandomState, n_jobs: int | None
) -> FloatArray:
    """Predictions of the missing cells of a variable by a forest on all others."""
    others = np.delete(Z, variable.columns, axis=1).astype(np.float32)
    known, unknown = others[~variable.is_missing], others[variable.is_missing]
    settings = {
        "max_features": min(isqrt(Z.shape[1]), others.shape[1]),
        "max_samples": min(size.max_rows, len(known)),
        "n_jobs": n_jobs,
    }
    total: Any = 0.0
    for start in range(0, size.n_trees, TREES_AT_ONCE):
        trees = min(TREES_AT_ONCE, size.n_trees - start)
        seed = rng.randint(np.iinfo(np.int32).max)
        if variable.levels is None:
            # nodes of up to 5 rows are leaves: nodesize 5 of randomForest in R
            forest = RandomForestRegressor(trees, min_samples_split=6, random_state=seed, **settings)
        else:
            forest = RandomForestClassifier(trees, random_state=seed, **settings)
        # Summed tree by tree: a forest sums in the order in which its threads finish, which affects the last digits.
        for tree in forest.fit(known, variable.target).estimators_:
            total = total + (tree.predict(unknown) if variable.levels is None else tree.predict_proba(unknown))
    if variable.levels is None:
        return (total / size.n_trees)[:, None]
    return variable.levels[total.argmax(axis=1)]


def full_matrix(
    dataset: Dataset,
    *,
    n_trees: int | None = None,
    max_iterations: int | None = None,
    max_rows: int | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> FloatArray:
    """The matrix of ``dataset.without_missing_levels()`` with missing values imputed by ``impute_forest``.

    Imputed values are stored in the cache folder and read from there the next time. A damaged file is replaced; a
    warning is issued if none can be written.

    Parameters
    ----------
    dataset : Dataset
    n_trees, max_iterations, max_rows, random_state, n_jobs
        As in ``impute_forest``; ``random_state`` is an int, which makes the result reproducible.
    """
    if not isinstance(random_state, int | np.integer):
        raise ValueError(f"random_state of the imputation must be a whole number, not {random_state!r}.")
    if dataset.encoding == "authors":
        raise ValueError(
            f"{dataset.name} is in the authors' encoding, where categories can be partly missing: load it as 'clean'."
        )
    plain = dataset.without_missing_levels()
    X = check_matrix(plain.X)
    missing = np.isnan(X)
    if not missing.any():
        return X.copy()
    size = forest_size(len(X), X.shape[1], n_trees, max_iterations, max_rows)
    # Indicators are grouped by variable; every number is a variable by itself.
    variables = [o.variable if o.kind == "level" else j for j, o in enumerate(plain.origin)]
    groups = [group.tolist() for group in _columns_of_variables(variables, X.shape[1])]
    depends_on = [ALGORITHM, sklearn.__version__, groups, tuple(size), int(random_state)]
    full = X.copy()
    full[missing] = cached(
        "imputed",
        depends_on,
        [X],
        X[missing],
        lambda: impute_forest(X, variables, **size._asdict(), random_state=random_state, n_jobs=n_jobs)[missing],
    )
    return full
