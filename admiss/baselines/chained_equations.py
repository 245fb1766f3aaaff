"""Imputation by chained equations with predictive mean matching.

This is the default of mice for numeric columns (van Buuren and Groothuis-Oudshoorn, 2011; van Buuren, *Flexible
Imputation of Missing Data*, algorithms 3.1 and 3.3; matching of type 1):

    start with random draws from the observed values of each column
    repeat n_sweeps times, for each column j with missing values, from left to right
        draw a regression of x_j on the other columns as currently filled in, from the rows with observed x_j
        each row without x_j gets that of one of the n_donors rows with the nearest predictions, drawn at random

The last two lines are predictive mean matching:

    V      = (A' A + kappa I)^-1,  gamma = V A' x         x the observed values of the column; A the other columns in
                                                          the same rows, centred and of norm 1
    sigma* = |x - mean(x) - A gamma| / sqrt(g)            g from chi-square with n - 1 - |columns of A| degrees of
                                                          freedom, at least 1
    gamma* = gamma + sigma* V^1/2 z                       z from N(0, I)
    mean*  = mean(x) + sigma* z_0 / sqrt(n)               z_0 from N(0, 1)

A row a without the column gets the value of one of n_donors rows o, drawn at random among those with the smallest
distances | mean(x) + A_o gamma - mean* - a'gamma* |.

Imputed values are thus always observed values of the column. Differences from mice: columns are standardised before the
ridge kappa is added, so units and origins do not matter and the mean is not shrunk; columns that are constant in the
rows with observed x_j are ignored, but nearly collinear ones are not removed (the ridge keeps the regression finite);
among equal predictions the donor is drawn anew for each row.

New rows are filled in with the regressions and donors of the completed training rows. Their random numbers are a
function of the row and a seed: a row gets the same values whatever other rows come with it.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.notices import warn_set_to_zero
from admiss.estimator.scaling import observed_moments, observed_scale
from admiss.estimator.validation import (
    AllowsMissing,
    feature_names,
    read_features,
    read_random_state,
    require_integer,
    unchanged_on_error,
)
from admiss.terminal.progress import progress
from formulations.arrays import BoolArray, FloatArray
from formulations.jit import compiled

# The ridge of mice, added to the diagonal of the correlations.
KAPPA = 1e-5


class ChainedEquations(OneToOneFeatureMixin, TransformerMixin, AllowsMissing, BaseEstimator):
    """One completion by chained equations with predictive mean matching, like mice without the target.

    ``fit_transform`` returns the training rows as completed by the last sweep. ``transform`` fills in rows one by one
    given that completion, without learning from them; on the training rows its draws differ from those of
    ``fit_transform``. Equal rows are filled in equally by ``transform``.

    A column that is never observed in training is 0 in every row, with a warning.

    Parameters
    ----------
    n_donors : int
        Number of rows with the nearest predictions among which one is drawn; all observed rows if they are fewer.
    n_sweeps : int
        Rounds over the columns.
    random_state : int, RandomState or None
        Seed of the draws.

    Attributes
    ----------
    matchings_ : dict of Matching
        Regression and donors of each column with observed values in training.
    units_ : object
        Means and scales of the columns.
    seed_ : int
        Seed of the random numbers of new rows.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> x = np.arange(40.0)
    >>> X = np.column_stack([x, 100 - x])
    >>> X[20, 1] = np.nan
    >>> imputer = ChainedEquations(random_state=0)
    >>> bool(abs(imputer.fit_transform(X)[20, 1] - 80) <= 3)
    True
    >>> bool(abs(imputer.transform([[np.nan, 90.0]])[0, 0] - 10) <= 3)
    True
    """

    def __init__(
        self, n_donors: int = 5, n_sweeps: int = 5, random_state: int | np.random.RandomState | None = None
    ) -> None:
        self.n_donors = n_donors
        self.n_sweeps = n_sweeps
        self.random_state = random_state

    def _check_parameters(self) -> None:
        for name in ("n_donors", "n_sweeps"):
            require_integer(self, name, 1, 100_000)  # more would change nothing, or never end

    def fit(self, X: Any, y: Any = None) -> Self:
        """Complete the training rows, and store regressions and donors of that completion; y is ignored."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Fit, and return the completed training rows; y is ignored."""
        self._check_parameters()
        with unchanged_on_error(self):
            X = read_features(self, X, reset=True)
            rng = read_random_state(self.random_state)
            observed = ~np.isnan(X)
            warn_set_to_zero(feature_names(self), np.flatnonzero(~observed.any(axis=0)))
            completed = _complete(X, self.n_donors, self.n_sweeps, rng)
            self.units_ = _Units.of(X)
            Z = self.units_.standardise(completed)
            self.matchings_: dict[int, Matching] = {
                j: match(Z, completed[:, j], observed[:, j], j, rng)
                for j in np.flatnonzero(observed.any(axis=0)).tolist()
            }
            self.seed_ = int(rng.randint(2**31 - 1))
        return completed

    def transform(self, X: Any) -> FloatArray:
        """Fill in the missing values of new rows."""
        check_is_fitted(self)
        self._check_parameters()
        X = _only_columns(read_features(self, X, reset=False), self.matchings_)
        M = np.isnan(X)
        rows = {j: np.flatnonzero(M[:, j]) for j in np.flatnonzero(M.any(axis=0)).tolist()}
        keys = _row_keys(X, self.seed_)
        for j, U in rows.items():
            values = self.matchings_[j].values
            X[U, j] = values[(_uniforms(keys[U], 0, j) * len(values)).astype(int)]
        Z = self.units_.standardise(X)
        for sweep in range(self.n_sweeps):
            for j, U in rows.items():
                chance = _uniforms(keys[U], 2 * sweep + 1, j), _uniforms(keys[U], 2 * sweep + 2, j)
                X[U, j] = self.matchings_[j].draw(Z[U], self.n_donors, *chance)
                Z[U, j] = self.units_.standardise(X[U, j], j)
        return X


def complete_transductive(
    X_train: Any,
    X_test: Any,
    *,
    n_donors: int = 5,
    n_sweeps: int = 5,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Completed training rows, and test rows completed together with them.

    The training rows are completed first. Then chained equations run on the completed training rows and the test rows
    together: test rows learn from each other, and imputed training values count as observed. This is the authors'
    procedure; ``ChainedEquations`` does not learn from test rows.

    Parameters
    ----------
    X_train, X_test : arrays of shape (n, d) and (n_test, d)
        Features, NaN where missing.
    n_donors, n_sweeps, random_state
        As in :class:`ChainedEquations`.

    Returns
    -------
    pair of arrays
        Both without missing values.

    Examples
    --------
    >>> x = np.arange(40.0)
    >>> train, test = complete_transductive(np.column_stack([x, -x]), [[7.0, np.nan]], random_state=0)
    >>> train.shape, bool(abs(test[0, 1] + 7) <= 3)
    ((40, 2), True)
    """
    reader = ChainedEquations(n_donors, n_sweeps)
    reader._check_parameters()
    X_train = read_features(reader, X_train, reset=True)
    seen = np.flatnonzero(~np.isnan(X_train).all(axis=0))
    X_test = _only_columns(read_features(reader, X_test, reset=False), seen)
    warn_set_to_zero(feature_names(reader), sorted(set(range(X_train.shape[1])) - set(seen.tolist())))
    rng = read_random_state(random_state)
    train = _complete(X_train, n_donors, n_sweeps, rng)
    both = _complete(np.vstack([train, X_test]), n_donors, n_sweeps, rng)
    return train, both[len(train) :]


def _only_columns(X: FloatArray, retained: Any) -> FloatArray:
    """A copy of X with 0 in all other columns."""
    copy = np.zeros(X.shape)
    columns = np.array(sorted(retained), dtype=int)
    copy[:, columns] = X[:, columns]
    return copy


def _complete(X: FloatArray, n_donors: int, n_sweeps: int, rng: np.random.RandomState) -> FloatArray:
    """A completion of X; columns without observed values are 0."""
    units = _Units.of(X)
    observed = ~np.isnan(X)
    X = _only_columns(X, np.flatnonzero(observed.any(axis=0)))
    incomplete = np.flatnonzero(np.isnan(X).any(axis=0)).tolist()
    for j in incomplete:
        values = X[observed[:, j], j]
        X[~observed[:, j], j] = values[rng.randint(len(values), size=len(X) - len(values))]
    Z = units.standardise(X)
    for j in progress(incomplete * n_sweeps, len(incomplete) * n_sweeps, "chained equations, columns"):
        U = np.flatnonzero(~observed[:, j])
        matching = match(Z, X[:, j], observed[:, j], j, rng)
        X[U, j] = matching.draw(Z[U], n_donors, rng.uniform(size=len(U)), rng.uniform(size=len(U)))
        Z[U, j] = units.standardise(X[U, j], j)
    return X


@dataclass(frozen=True)
class Matching:
    """Imputation of a column: a drawn regression, and the donors in the order of their predictions."""

    # Drawn coefficients of the standardised columns; 0 for the column itself.
    coefficients: FloatArray
    intercept: float
    # Predictions of the donors by the point estimate, ascending, and the observed values of these donors.
    predictions: FloatArray
    values: FloatArray

    def draw(self, Z: FloatArray, n_donors: int, chance: FloatArray, tie_chance: FloatArray) -> FloatArray:
        """A donor's value for each standardised row, given two random numbers in [0, 1) per row."""
        targets = _predictions(Z, self.coefficients, self.intercept)
        rank = (chance * min(n_donors, len(self.values))).astype(np.int64)
        return self.values[_nearest(self.predictions, targets, rank, tie_chance)]


def match(Z: FloatArray, x: FloatArray, observed: BoolArray, j: int, rng: np.random.RandomState) -> Matching:
    """Regress column j on the others in the rows where it is observed, and draw from the posterior."""
    Z_observed = Z[observed]
    n = len(Z_observed)
    centre = Z_observed.mean(axis=0)
    A = Z_observed - centre
    target = A[:, j].copy()
    square = np.einsum("ij,ij->j", A, A)
    square[j] = 0.0
    varies = square > 1e-12 * n  # of a variance of 1: less is rounding
    inverse_norm = np.where(varies, 1.0 / np.sqrt(np.where(varies, square, 1.0)), 0.0)
    A *= inverse_norm
    C = A.T @ A
    C[np.diag_indices_from(C)] += KAPPA
    L = cholesky(C, lower=True, check_finite=False)
    gamma = _backward(L, solve_triangular(L, A.T @ target, lower=True, check_finite=False))
    residual = target - A @ gamma
    degrees = max(n - 1 - int(varies.sum()), 1)
    sigma = np.sqrt(residual @ residual / rng.chisquare(degrees))
    drawn = gamma + sigma * _backward(L, rng.normal(size=len(L)))
    drawn_mean = centre[j] + sigma * rng.normal() / np.sqrt(n)

    estimate, coefficients = inverse_norm * gamma, inverse_norm * drawn
    predictions = _predictions(Z_observed, estimate, centre[j] - centre @ estimate)
    order = np.argsort(predictions, kind="stable")
    return Matching(coefficients, drawn_mean - centre @ coefficients, predictions[order], x[observed][order])


def _backward(L: FloatArray, b: FloatArray) -> FloatArray:
    """Solution of L'x = b; for b from N(0, I) a draw from N(0, (L L')^-1)."""
    return solve_triangular(L, b, lower=True, trans="T", check_finite=False)


@compiled
def _predictions(Z, coefficients, intercept):  # type: ignore[no-untyped-def]
    """Predictions row by row, which makes those of equal rows equal to the last bit, as BLAS does not."""
    predictions = np.empty(len(Z))
    for i in range(len(Z)):
        total = intercept
        for j in range(len(coefficients)):
            total += Z[i, j] * coefficients[j]
        predictions[i] = total
    return predictions


@compiled
def _nearest(predictions, targets, rank, tie_chance):  # type: ignore[no-untyped-def]
    """For each target the index of the prediction of a rank (0 the nearest) among ascending predictions.

    One of equal predictions is drawn, as if they were in random order; of two at the same distance on both sides the
    larger comes first.
    """
    n = len(predictions)
    donors = np.empty(len(targets), dtype=np.int64)
    for i in range(len(targets)):
        target = targets[i]
        right = np.searchsorted(predictions, target)
        left = right - 1
        index = right
        for _ in range(rank[i] + 1):
            if right >= n or (left >= 0 and target - predictions[left] < predictions[right] - target):
                index, left = left, left - 1
            else:
                index, right = right, right + 1
        first = np.searchsorted(predictions, predictions[index], side="left")
        last = np.searchsorted(predictions, predictions[index], side="right")
        donors[i] = first + int(tie_chance[i] * (last - first))
    return donors


@dataclass(frozen=True)
class _Units:
    """Means and standard deviations of the observed values."""

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, X: FloatArray) -> "_Units":
        mean, deviation, size, _ = observed_moments(X, np.ones(len(X)))
        return cls(np.nan_to_num(mean), observed_scale(np.nan_to_num(deviation), size)[0])

    def standardise(self, values: FloatArray, column: int | slice = slice(None)) -> FloatArray:
        """Standardised values of a column, or of all; divided before the subtraction, which might overflow."""
        return values / self.scale[column] - (self.mean / self.scale)[column]


def _row_keys(X: FloatArray, seed: int) -> NDArray[np.uint64]:
    """One integer per row, a hash of the seed and the bits of the row; all zeros are equal, and so are all NaN."""
    bits = np.ascontiguousarray(np.where(np.isnan(X), np.nan, X + 0.0)).view(np.uint64)
    keys = _scrambled(np.full(len(X), seed, dtype=np.uint64))
    for j in range(X.shape[1]):
        keys = _scrambled(keys ^ bits[:, j])
    return keys


def _uniforms(keys: NDArray[np.uint64], step: int, column: int) -> FloatArray:
    """A random number in [0, 1) for each key, different for each step and column."""
    scrambled = _scrambled(_scrambled(keys + np.uint64(step)) + np.uint64(column))
    return (scrambled >> np.uint64(11)).astype(float) * 2.0**-53


def _scrambled(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Integers whose bits all depend on all given bits: a step of the generator SplitMix64."""
    keys = keys + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
