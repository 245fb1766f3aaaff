"""Partition problems: rows whose missingness patterns a tree of given depth divides.

    GeneratedPatterns    values missing completely at random, censored, or with interacting patterns; 10 features
    RealPatterns         the rows of a data set, with its own target, or with a linear one drawn from its features

A draw of rows depends on the replicate and not on the depth: depths are compared on the same rows. Real features are
standardised by the observed training values, which makes 0 the mean and lets a ridge treat all features alike. Columns
that are missing in the same rows, such as the indicators of one category, are one feature to split on.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from admiss.datasets import Dataset, make_interacting, make_synthetic, semi_synthetic
from admiss.estimator.scaling import observed_moments, observed_scale
from admiss.patterns import PatternTable

# The same rows as in the study real-design: both share the cached imputed matrices.
from experiments.studies.real_design.instances import some_rows
from formulations.arrays import BoolArray, FloatArray

TEST_SHARE = 0.3
# For leaves of real data: 2 (d + 1) rows would allow no split of many sets.
LEAST_ROWS = 20


@dataclass(frozen=True)
class PartitionRows:
    """Training and test rows with the limits of the trees.

    Attributes
    ----------
    X_train, X_test : arrays of shape (rows, d)
        Features, NaN where missing.
    y_train, y_test : arrays of shape (rows,)
    max_depth : int
        Largest number of splits on the way to a leaf.
    min_rows : int
        Smallest number of rows in a leaf.
    split_features : list of int
        Features that may be split on.
    """

    X_train: FloatArray
    y_train: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    max_depth: int
    min_rows: int
    split_features: list[int]

    @property
    def facts(self) -> dict[str, Any]:
        """Sizes, to add to the scores."""
        M = np.isnan(self.X_train)
        n, d = M.shape
        patterns = len(PatternTable.of(M).patterns)
        return {"n_train": n, "d": d, "missing": float(M.mean()), "patterns": patterns}


@dataclass(frozen=True)
class GeneratedPatterns:
    """Generated rows with 10 features.

    Attributes
    ----------
    source : {"mcar", "censoring", "mcar, nn", "interacting"}
        Mechanism, with a linear signal unless "nn" is given; or weights that depend on two indicators.
    n : int
        Training rows.
    missing_fraction : float
    max_depth : int
    tuned : bool
        Whether cross-validation selects depth (up to ``max_depth``), ridge and leaf model.
    replicate : int
        The seed of the rows.

    Examples
    --------
    >>> rows = GeneratedPatterns("mcar", 200, 0.3, 2, False, 0).make()
    >>> rows.X_train.shape, rows.min_rows, rows.split_features[-1]
    ((200, 10), 22, 9)
    """

    source: str
    n: int
    missing_fraction: float
    max_depth: int
    tuned: bool
    replicate: int

    def make(self) -> PartitionRows:
        """Draw the rows."""
        common: dict[str, Any] = {
            "n": self.n,
            "missing_fraction": self.missing_fraction,
            "random_state": self.replicate,
        }
        if self.source == "interacting":
            data = make_interacting(**common)
        else:
            mechanism, _, signal = self.source.partition(", ")
            data = make_synthetic(mechanism=mechanism, signal=signal or "linear", **common)
        d = data.X_train.shape[1]
        return PartitionRows(
            data.X_train, data.y_train, data.X_test, data.y_test, self.max_depth, 2 * (d + 1), list(range(d))
        )


@dataclass(frozen=True)
class RealPatterns:
    """Rows of a data set of the paper, 70 % of them for training.

    Attributes
    ----------
    dataset : str
        A name of ``list_datasets()``.
    source : {"real target", "mar", "am"}
        The numeric target of the data set; or a target linear in ten features, drawn with the patterns as they are, or
        before the patterns are reallocated to hide large values.
    max_rows : int
        Largest number of rows; the same rows for all replicates.
    max_depth, tuned
        As in :class:`GeneratedPatterns`.
    replicate : int
        Seed of the test rows, and of a drawn target.
    """

    dataset: str
    source: str
    max_rows: int
    max_depth: int
    tuned: bool
    replicate: int

    def make(self) -> PartitionRows:
        """Read the rows, and draw the target if necessary."""
        data = some_rows(self.dataset, self.max_rows).without_missing_levels()
        if self.source == "real target":
            X_train, y_train, X_test, y_test = _split(data, self.replicate)
        else:
            drawn = semi_synthetic(data, self.source, "linear", test_fraction=TEST_SHARE, random_state=self.replicate)
            X_train, y_train, X_test, y_test = drawn.X_train, drawn.y_train, drawn.X_test, drawn.y_test
        X_train, X_test = _standardised(X_train, X_test)
        features = distinct_columns(np.isnan(np.vstack([X_train, X_test])))
        return PartitionRows(X_train, y_train, X_test, y_test, self.max_depth, LEAST_ROWS, features)


def _split(data: Dataset, seed: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Training and test rows among those with a target."""
    if data.y is None or data.task != "regression":
        raise ValueError(f"{data.name} has no numeric target: use the sources 'mar' and 'am'.")
    y = np.asarray(data.y, dtype=float)
    rows = np.random.RandomState(seed).permutation(np.flatnonzero(np.isfinite(y)))
    test, train = np.split(rows, [round(TEST_SHARE * len(rows))])
    return data.X[train], y[train], data.X[test], y[test]


def _standardised(X_train: FloatArray, X_test: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Standardise both by the observed means and deviations of the first; a constant feature is only centred."""
    mean, deviation, magnitude, _ = observed_moments(X_train, np.ones(len(X_train)))
    scale, _ = observed_scale(deviation, magnitude)
    return (X_train - mean) / scale, (X_test - mean) / scale


def distinct_columns(M: BoolArray) -> list[int]:
    """The first of each group of equal columns, in their order.

    Examples
    --------
    >>> distinct_columns(np.array([[True, True, False], [False, False, False]]))
    [0, 2]
    """
    _, first = np.unique(M, axis=1, return_index=True)
    return sorted(first.tolist())
