"""Estimates of sigma^2, L and b(F) from data, with standard errors; none of them is a bound.

Noise. Let N(i) be the nearest neighbour of row i among the rows of its pattern, and r the residuals of a model fitted
to other rows. Given all features, with noise that is independent between rows,

    E (r_i - r_N(i))^2 / 2 = (sigma_i^2 + sigma_N(i)^2) / 2 + (h_i - h_N(i))^2 / 2,     h = f* - that model.

The mean over rows estimates sigma^2 = E Var(Y | X, M). It is too large by half the squared change of h between
neighbours, for any model, and consistent if h is continuous within patterns (Devroye, Schaefer, Gyorfi and Walk, 2003;
Evans and Jones, 2008, on similar estimates without missing values). With many features neighbours are distant, and the
excess may dominate the estimate. Rows connected in the graph of neighbours share noise, those in different components
do not: the standard error of the mean is computed from the sums over components. Theorem 1 of the paper needs the
supremum of Var(Y | X, M), which is larger unless the noise has the same variance everywhere.

Range. sup |f*| cannot be determined from data: an f* that is large on a rare event looks like noise. If the noise has
median 0, P(|Y| > s) >= P(|f*| > s) / 2 for every s, hence |f*| is above the (1 - a/2)-quantile of |Y| with probability
at most a.

Bias. b(F) = min_{f in F} E (f* - f)^2 = (risk of the best f in F) - sigma^2. Its estimate is the cross-fitted risk of
least squares in F, without a penalty and truncated to [-L, L] as in Theorem 1 of the paper, minus

* that of the fully adaptive class on the same rows, whose risk is sigma^2 under Assumption 2.1 of the paper, up to its
  estimation error: the estimate is too small by that error, and too large by the estimation error of F;
* without the assumption, the estimate of sigma^2 above: the estimate is too small by the excess of that one, and too
  large by the estimation error of F.

Its standard error is that of the mean over rows given the fits. It does not include the errors above, so value +-
standard error is not an interval for b(F); the difference can also be negative.
"""

import math
import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, clone
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

from admiss.adaptivity import Adaptivity, FullyAdaptive, Static
from admiss.bounds.counts import ClassLike, class_name, dense, read_class
from admiss.bounds.setting import read_share
from admiss.estimator.cross_validation import Split, make_folds
from admiss.estimator.scaling import observed_moments, observed_scale
from admiss.estimator.validation import is_number, positive_integer, read_features, read_regression_target
from admiss.linear.estimators import AdaptiveRegressor
from admiss.patterns import PatternTable
from formulations.arrays import BoolArray, FloatArray, IntArray

NO_INTERVAL = "value ± standard error is not an interval for b(F), and the value can be negative"


@dataclass(frozen=True)
class Estimate:
    """A number estimated from data.

    Attributes
    ----------
    value, standard_error : float
    note : str
        What is estimated, and in which direction the estimate errs.

    Examples
    --------
    >>> print(Estimate(0.25, 0.012, "variance of the noise"))
    0.25 ± 0.012, an estimate and not a bound: variance of the noise
    """

    value: float
    standard_error: float
    note: str

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.standard_error:.2g}, an estimate and not a bound: {self.note}"


def estimate_noise(X: Any, y: Any, *, model: Any = None, cv: Any = 2, random_state: Any = None) -> Estimate:
    """Estimate sigma^2 = E Var(Y | X, M), from above, by nearest neighbours within patterns.

    Parameters
    ----------
    X : array or data frame of shape (n, d)
        Features, NaN where missing.
    y : array of shape (n,)
        Target.
    model : regressor that accepts NaN, optional
        Its predictions are subtracted from y first; ``AdaptiveRegressor("affine")`` by default. Any choice is valid; a
        better one leaves less to the neighbours.
    cv : int, splitter or iterable of (train, test)
        Folds: the model of a fold is fitted to the other rows, and neighbours are searched within the fold.
    random_state : int, RandomState or None
        Seed of the folds and of ties between neighbours.

    Returns
    -------
    Estimate
        Rows that are alone with their pattern in their fold are left out; the note reports their number.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (2000, 2))
    >>> y = X @ [1, 2] + 0.5 * rng.normal(size=2000)
    >>> X[rng.uniform(size=2000) < 0.3, 0] = np.nan  # what x0 explained is noise there: 0.25 + 0.3 / 3 = 0.35
    >>> noise = estimate_noise(X, y, random_state=0)
    >>> abs(noise.value - 0.35) < 2 * noise.standard_error
    True
    >>> noise.note
    'mean noise variance by nearest neighbours within patterns, from above; Theorem 1 needs its supremum'
    """
    rng = check_random_state(random_state)
    X, y = _read(X, y)
    terms = _neighbour_differences(X, y, model, _folds(X, y, cv, rng), rng)
    value, error = terms.mean()
    note = "mean noise variance by nearest neighbours within patterns, from above; Theorem 1 needs its supremum"
    alone = len(y) - len(terms.rows)
    if alone:
        note += f"; {alone:,} of {len(y):,} rows are alone with their pattern in their fold and left out"
    return Estimate(value, error, note)


@dataclass(frozen=True)
class _RowTerms:
    """Values of rows whose mean is an estimate; rows of different groups are independent given the features."""

    rows: IntArray
    values: FloatArray
    groups: IntArray

    def mean(self) -> tuple[float, float]:
        """The mean and its standard error, from the sums over groups."""
        names, group = np.unique(self.groups, return_inverse=True)
        if len(names) < 10:  # too few sums for their variance
            raise ValueError(
                f"Only {len(self.rows)} rows have a neighbour of the same pattern in their fold, in {len(names)} "
                "groups that do not overlap; at least 10 are needed: use more rows or fewer features."
            )
        sums = np.bincount(group, self.values - self.values.mean())
        error = np.sqrt(len(sums) / (len(sums) - 1) * np.sum(sums**2)) / len(self.values)
        return float(self.values.mean()), float(error)


def _neighbour_differences(
    X: FloatArray, y: FloatArray, model: Any, folds: list[Split], rng: np.random.RandomState
) -> _RowTerms:
    """Half the squared difference of residuals to the nearest neighbour, for every row that has one."""
    model = AdaptiveRegressor("affine") if model is None else model
    mean, deviation, size, _ = observed_moments(X, np.ones(len(y)))
    Z = np.nan_to_num((X - mean) / observed_scale(deviation, size)[0])
    neighbour = np.full(len(y), -1)
    residual = np.full(len(y), np.nan)
    for fold in folds:
        held_out = fold[1]
        residual[held_out] = y[held_out] - _predict_held_out(model, X, y, fold)
        codes = PatternTable.of(np.isnan(X[held_out])).codes
        for code in range(codes.max() + 1):
            rows = held_out[codes == code]
            if len(rows) > 1:
                # ties, in standard deviations: otherwise all rows with equal features could share one neighbour
                points = np.column_stack([Z[rows], 1e-6 * rng.normal(size=len(rows))])
                nearest = NearestNeighbors(n_neighbors=1).fit(points).kneighbors(return_distance=False)[:, 0]
                neighbour[rows] = rows[nearest]
    rows = np.flatnonzero(neighbour >= 0)
    links = sparse.coo_array((np.ones(len(rows)), (rows, neighbour[rows])), shape=(len(y), len(y)))
    _, groups = connected_components(links, directed=False)
    return _RowTerms(rows, (residual[rows] - residual[neighbour[rows]]) ** 2 / 2, groups[rows])


def _predict_held_out(model: Any, X: FloatArray, y: FloatArray, fold: Split) -> FloatArray:
    """Predictions for the held-out rows of a fold."""
    train, held_out = fold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about features that are never missing, or never observed, without this fold
        return np.asarray(clone(model).fit(X[train], y[train]).predict(X[held_out]))


def _read(X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
    reader = BaseEstimator()
    X = read_features(reader, X, reset=True)
    return X, read_regression_target(reader, y, len(X))


def _folds(X: FloatArray, y: FloatArray, cv: Any, rng: np.random.RandomState) -> list[Split]:
    folds = make_folds(X, y, None, np.ones(len(y)), cv, rng)
    times = np.bincount(np.concatenate([held_out for _, held_out in folds]), minlength=len(y))
    if np.any(times != 1):
        raise ValueError("cv must hold out every row exactly once, as KFold does: use a number of folds.")
    return folds


def estimate_range(y: Any, *, share: float = 0.01, centre: float = 0.0) -> Estimate:
    """Estimate L by a level that |f*| exceeds in at most a given share of rows, if the noise has median 0.

    Parameters
    ----------
    y : array of shape (n,)
        Target.
    share : float
        The value is the (1 - share / 2)-quantile of |y - centre|; 5 or more of the n values must be above it.
    centre : float
        Constant subtracted from y: the level is then one of |f* - centre|. Theorem 1 of the paper truncates around 0,
        so L must be at least value + |centre|.

    Returns
    -------
    Estimate
        The standard error is half the distance between the quantiles one binomial standard error above and below the
        level.

    Examples
    --------
    >>> level = estimate_range(np.linspace(-1, 1, 4001), share=0.02)
    >>> round(level.value, 3), round(level.standard_error, 3)
    (0.99, 0.002)
    >>> level.note
    '|f*| is larger in at most 2% of rows if the noise has median 0; sup |f*| itself cannot be determined from data'
    """
    read_share("share", share)
    if isinstance(centre, bool) or not isinstance(centre, Real) or not math.isfinite(centre):
        raise ValueError(f"centre must be a finite number, not {centre!r}.")
    y = read_regression_target(BaseEstimator(), y, len(y))
    n, above = len(y), share / 2
    if n * above < 5 * (1 - 1e-9):
        larger = f"a share of {10 / n:.3g} or more, or " if n > 10 else ""
        raise ValueError(
            f"Fewer than 5 of {n:,} values are above their {1 - above:.4g}-quantile, too few to estimate it: use "
            f"{larger}{math.ceil(10 / share):,} rows or more."
        )
    sizes = np.abs(y - centre)
    spread = math.sqrt(above * (1 - above) / n)
    value, low, high = np.quantile(sizes, 1 - above + np.array([0.0, -spread, spread])).tolist()
    what = "|f* - centre|" if centre else "|f*|"
    note = f"{what} is larger in at most {100 * share:.3g}% of rows if the noise has median 0"
    note += f"; sup {what} itself cannot be determined from data"
    if centre:
        note += f"; truncation is around 0, hence L >= value + |centre| = {value + abs(centre):.4g}"
    return Estimate(value, (high - low) / 2, note)


def estimate_bias(
    X: Any,
    y: Any,
    adaptivity: ClassLike,
    *,
    assumption: bool = True,
    L: float | None = None,
    rows_per_coefficient: int = 5,
    cv: Any = 5,
    random_state: Any = None,
) -> Estimate:
    """Estimate b(F), the squared distance of f* from a class.

    Parameters
    ----------
    X, y
        As in :func:`estimate_noise`.
    adaptivity : str, ("polynomial", t) or Adaptivity
        The class F.
    assumption : bool
        Whether Assumption 2.1 of the paper holds: f* is linear within every pattern. The risk of F is then compared
        with that of the fully adaptive class, otherwise with `estimate_noise`.
    L : float, optional
        Predictions are truncated to [-L, L]; the largest |y| by default.
    rows_per_coefficient : int
        Positive. Under the assumption, patterns with fewer rows per coefficient of their own linear model are left out,
        and the note reports the number of their rows; it is an error if they contain more than half of the rows.
    cv : int, splitter or iterable of (train, test)
        Folds of the cross-fitting.
    random_state : int, RandomState or None
        Seed of the folds.

    Returns
    -------
    Estimate
        The standard error is that of the mean of paired differences over rows, given the fits: value +- standard error
        is not an interval for b(F). A negative value means that the bias is small relative to the estimation errors.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1.0, 1.0], (2000, 2))
    >>> missing = rng.uniform(size=2000) < 0.5
    >>> y = np.where(missing, -X[:, 0], X[:, 0]) + 0.1 * rng.normal(size=2000)
    >>> X[missing, 1] = np.nan
    >>> [round(estimate_bias(X, y, F, random_state=0).value, 1) for F in ("static", "affine")]
    [1.0, 0.0]
    """
    if L is not None and not (is_number(L) and L > 0 and L is not True):
        raise ValueError(f"L must be a positive number, or None for the largest |y|, not {L!r}.")
    positive_integer("rows_per_coefficient", rows_per_coefficient)
    rng = check_random_state(random_state)
    X, y = _read(X, y)
    adaptivity = read_class(adaptivity, X.shape[1])
    if not assumption:
        return _bias_above_noise(X, y, adaptivity, L, cv, rng)
    retained, p = _rich_patterns(np.isnan(X), rows_per_coefficient)
    left_out = len(y) - int(retained.sum())
    X, y = X[retained], y[retained]
    folds = _folds(X, y, cv, rng)
    own, full = (_losses(X, y, F, L, folds) for F in (adaptivity, FullyAdaptive()))
    difference = own - full
    too_small = full.mean() * p / np.mean([len(train) for train, _ in folds])
    note = (
        f"risk of the class {class_name(adaptivity)} above the fully adaptive class, which has risk sigma^2 under "
        f"Assumption 2.1; the {p:,} coefficients of the latter make it too small by about {too_small:.2g}; "
        f"{NO_INTERVAL}"
    )
    if left_out:
        note += f"; {left_out:,} of {left_out + len(y):,} rows, of patterns with too few of them, are left out"
    return Estimate(float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(y))), note)


def _rich_patterns(M: BoolArray, rows_per_coefficient: int) -> tuple[BoolArray, int]:
    """The rows of patterns with enough rows, and the number of coefficients of the linear models of these patterns."""
    table = PatternTable.of(M)
    coefficients = 1 + np.sum(~table.patterns, axis=1)
    rich = table.counts >= rows_per_coefficient * coefficients
    retained = rich[table.codes]
    if 2 * retained.sum() < len(M):
        raise ValueError(
            f"{np.sum(~rich):,} of {len(rich):,} patterns, with {np.sum(~retained):,} of {len(M):,} rows, have fewer "
            f"than {rows_per_coefficient} rows per coefficient of their own linear model: the fully adaptive class "
            f"cannot be estimated. Use assumption=False, more rows or fewer features."
        )
    return retained, int(coefficients[rich].sum())


def _losses(X: FloatArray, y: FloatArray, adaptivity: Adaptivity, L: float | None, folds: list[Split]) -> FloatArray:
    """Squared errors of truncated least squares on held-out rows."""
    level = np.abs(y).max() if L is None else L
    losses = np.full(len(y), np.nan)
    for train, held_out in folds:
        predicted = _least_squares(adaptivity, X[train], y[train], X[held_out])
        losses[held_out] = (y[held_out] - np.clip(predicted, -level, level)) ** 2
    return losses


def _least_squares(adaptivity: Adaptivity, X: FloatArray, y: FloatArray, new: FloatArray) -> FloatArray:
    """Predictions for new rows; the solution of smallest norm, as indicators of a category are collinear with 1."""
    if type(adaptivity) is FullyAdaptive:  # separate problems
        table = PatternTable.of(np.isnan(X))
        predicted = np.zeros(len(new))
        for k, pattern in enumerate(table.patterns):
            rows = (np.isnan(new) == pattern).all(axis=1)
            predicted[rows] = _least_squares(Static(), X[table.codes == k], y[table.codes == k], new[rows])
        return predicted
    M = np.isnan(X)
    fitted = adaptivity.fit(X, M)
    A, B = (dense(fitted.columns(rows, np.isnan(rows))) for rows in (X, new))
    norm = np.sqrt((A**2).sum(axis=0))
    norm[norm == 0] = 1.0
    return np.asarray(B / norm @ np.linalg.lstsq(A / norm, y, rcond=1e-10)[0])


def _bias_above_noise(
    X: FloatArray, y: FloatArray, adaptivity: Adaptivity, L: float | None, cv: Any, rng: np.random.RandomState
) -> Estimate:
    """The cross-fitted risk minus the estimate of the noise, over the rows with a neighbour."""
    losses = _losses(X, y, adaptivity, L, _folds(X, y, cv, rng))
    noise = _neighbour_differences(X, y, None, _folds(X, y, 2, rng), rng)
    value, error = _RowTerms(noise.rows, losses[noise.rows] - noise.values, noise.groups).mean()
    note = (
        f"risk of the class {class_name(adaptivity)} above an estimate of sigma^2 that errs from above; {NO_INTERVAL}"
    )
    if len(noise.rows) < len(y):
        note += f"; {len(y) - len(noise.rows):,} of {len(y):,} rows have no neighbour and are left out"
    return Estimate(value, error, note)
