"""Real features with a generated target (Section 4.1 of the paper, Appendix B.2, "Synthetic signal Y").

    X_full    the features, missing values imputed by forests, standardised to mean 0 and variance 1 over all rows
    M         the missing values of the source

    mar       Y = f(x_A) + noise             A: k features, of which k_missing are missing in some rows
    nmar      Y = f(x_A, m_B) + noise        B: those k_missing features
    am        Y as in mar; the patterns are then permuted over the rows to maximise the sum of all missing values

Signals f and the scale of the noise are those of ``admiss.datasets.generated``. The text of the paper does not mention
standardising, but the authors' code does it: units of real features differ by orders of magnitude, and one feature
would dominate f. Indicators of missing stay 0 and 1.

The adversary of ``am`` sums standardised values as well. In raw units the feature with the largest unit alone would
decide, and categories would not count, since the indicators of a category are missing together and sum to 1 in every
row. So a value is high relative to other values of its feature, and a level is high if it is rare. The formula in the
paper moves y along with the pattern; here y stays with its x, as in the paper's description of the setting.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from admiss.datasets.generated import SyntheticData, add_noise, check_signal, draw_signal, split_rows
from admiss.datasets.mechanisms.composed import reallocated
from admiss.datasets.paper.dataset import Dataset, Origin
from admiss.datasets.paper.encodings import load_dataset
from admiss.datasets.paper.forest_imputation import check_matrix, full_matrix
from admiss.datasets.paper.storage import cached
from admiss.estimator.scaling import observed_moments, observed_scale, standardised
from admiss.estimator.validation import feature_names, positive_integer, read_features
from formulations.arrays import FloatArray, IntArray
from formulations.linear_solver import highs_version

DESIGNS = ("mar", "nmar", "am")
# Part of the key of cached patterns: change it with anything that changes them.
REALLOCATION = "reallocation 1"


@dataclass(frozen=True, kw_only=True)
class SemiSyntheticData(SyntheticData):
    """Training and test rows of real features with a generated target.

    Attributes
    ----------
    X_train, X_test, y_train, y_test, X_full_train, X_full_test, signal_train, signal_test, ceiling
        As in :class:`~admiss.datasets.SyntheticData`.
    feature_names : list of str
        Names of the columns of X.
    active : int array of shape (k,)
        Columns used by the signal.
    active_indicators : int array
        Columns whose missingness indicators are used by the signal.
    """

    feature_names: list[str]
    active: IntArray
    active_indicators: IntArray


def semi_synthetic(
    dataset: str | Dataset | Any,
    design: str = "mar",
    signal: str = "linear",
    k: int = 10,
    k_missing: int | None = None,
    snr: float = 2.0,
    test_fraction: float = 0.3,
    random_state: int | np.random.RandomState | None = None,
    *,
    X_full: FloatArray | None = None,
) -> SemiSyntheticData:
    """Training and test rows of a real data set with a target drawn from its features.

    Parameters
    ----------
    dataset : str, Dataset or array of shape (n, d)
        A name of ``list_datasets()``, a data set, or numbers with NaN for missing values. If a category is missing, all
        its indicators are missing.
    design : {"mar", "nmar", "am"}
        The target depends on the values only ("mar"), on the missingness as well ("nmar"), or on the values only with
        the patterns reallocated ("am"), which takes up to a minute for 25,000 rows.
    signal : {"linear", "nn", "tree"}
    k : int
        Number of features used by the signal, at most all of them. Constant features are never used.
    k_missing : int, optional
        How many of these are missing in some rows; by default as many as possible.
    snr : float
        Var(f) / Var(noise).
    test_fraction : float
        Share of test rows, drawn at random.
    random_state : int, RandomState or None
        Draws features, signal, noise and test rows.
    X_full : array of shape (n, d), optional
        The features with imputed missing values; by default ``full_matrix(dataset)``, which is computed once for all
        signals and designs and stored in the cache folder.

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> X_full = rng.normal(size=(100, 4))
    >>> X = np.where(rng.uniform(size=X_full.shape) < [0.3, 0.3, 0, 0], np.nan, X_full)
    >>> data = semi_synthetic(X, design="nmar", k=3, k_missing=1, random_state=0, X_full=X_full)
    >>> data.X_train.shape, data.X_test.shape, data.active.tolist(), data.active_indicators.tolist()
    ((70, 4), (30, 4), [1, 2, 3], [1])
    """
    check_signal(signal, snr)
    if design not in DESIGNS:
        raise ValueError(f"Unknown design {design!r}: choose one of {', '.join(map(repr, DESIGNS))}.")
    source = _source(dataset).without_missing_levels()
    X = check_matrix(source.X)
    M = np.isnan(X)
    n_test = _count_test_rows(len(X), test_fraction)
    rng = check_random_state(random_state)

    hidden, shown = _draw_features(X, k, k_missing, rng)
    active = np.sort(np.append(hidden, shown))
    indicators = hidden if design == "nmar" else hidden[:0]
    full = full_matrix(source) if X_full is None else _checked_full(X_full, X)
    Z, _, _ = standardised(full, np.ones(len(full)))
    f = draw_signal(signal, np.hstack([Z[:, active], M[:, indicators]]), rng)
    y, ceiling = add_noise(f, snr, rng)
    rows = rng.permutation(len(X))
    if design == "am":  # cached, as all signals share these patterns
        M = cached("reallocated", [REALLOCATION, highs_version()], [Z, M], M, lambda: reallocated(Z, M))
    parts = split_rows(rows[n_test:], rows[:n_test], X=np.where(M, np.nan, full), X_full=full, y=y, signal=f)
    names = source.feature_names
    return SemiSyntheticData(**parts, ceiling=ceiling, feature_names=names, active=active, active_indicators=indicators)


def _source(dataset: str | Dataset | Any) -> Dataset:
    if isinstance(dataset, str):
        return load_dataset(dataset)
    if isinstance(dataset, Dataset):
        return dataset
    reader = BaseEstimator()
    X = check_matrix(read_features(reader, dataset, reset=True))
    origin = tuple(Origin(name, "number") for name in feature_names(reader))
    return Dataset(name="the array", X=X, origin=origin, y=None, task=None, target=None)


def _count_test_rows(n: int, test_fraction: float) -> int:
    if not 0 < test_fraction < 1 or not 1 <= round(test_fraction * n) < n:
        raise ValueError(
            f"test_fraction must be between 0 and 1 and leave training and test rows, not {test_fraction!r} of {n}."
        )
    return round(test_fraction * n)


def _draw_features(
    X: FloatArray, k: int, k_missing: int | None, rng: np.random.RandomState
) -> tuple[IntArray, IntArray]:
    """Features of the signal: those missing in some rows, and those never missing."""
    k = positive_integer("k", k)
    can_be_missing = np.isnan(X).any(axis=0)
    _, deviation, magnitude, _ = observed_moments(X, np.ones(len(X)))
    varies = ~observed_scale(deviation, magnitude)[1]
    if not varies.any():
        raise ValueError("Every feature is constant over its observed values: a signal needs one that varies.")
    candidates = np.flatnonzero(varies & can_be_missing), np.flatnonzero(varies & ~can_be_missing)
    k = min(k, int(varies.sum()))
    low, high = max(0, k - len(candidates[1])), min(k, len(candidates[0]))
    if k_missing is None:
        k_missing = high
    if not isinstance(k_missing, int | np.integer) or not low <= k_missing <= high:
        raise ValueError(
            f"k_missing must be a whole number from {low} to {high}, not {k_missing!r}: of the features that vary, "
            f"{len(candidates[0])} are missing in some rows and {len(candidates[1])} in none, and the signal uses {k}."
        )
    hidden, shown = (
        np.sort(rng.choice(features, size, replace=False))
        for features, size in zip(candidates, (k_missing, k - k_missing), strict=True)
    )
    return hidden, shown


def _checked_full(X_full: Any, X: FloatArray) -> FloatArray:
    full = np.array(X_full, dtype=float)
    if full.shape != X.shape or not np.isfinite(full).all() or not (np.isnan(X) | (full == X)).all():
        raise ValueError(
            f"X_full must be a finite matrix of shape {X.shape} that equals the features wherever they are observed."
        )
    return full
