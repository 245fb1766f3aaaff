"""Rows whose law of missingness changes between training and test.

    ShiftDraw   generated features of rank 5 (``make_synthetic``, as in the text of the paper), a linear target
    ShiftSet    numerical features of a real set with its own missing values, and further ones by the two laws on top

Cases, from the law of the training rows to that of the test rows:

    mcar 10-50, mcar 30-60, mcar 30-10    missing completely at random, percentages
    mcar-censoring, censoring-mcar        30 % of the values at random, or the largest 30 %
    censoring 10-40                       the largest 10 %, then the largest 40 %
    one gone, two gone                    20 % at random; in test rows the one or two features that correlate most with
                                          the training target are missing everywhere
    new patterns                          pairs of adjacent features missing together, 30 %; in test rows the pairs are
                                          shifted by one, so that every pattern but "nothing missing" is new
    mcar 30-30, censoring 20-20           no shift

A target of classes is 1 for the first class, otherwise 0: R2 is then the skill of the Brier score.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from admiss.datasets import (
    Censoring,
    CompletelyAtRandom,
    Either,
    Mechanism,
    Only,
    Together,
    load_dataset,
    make_synthetic,
)
from admiss.study import instance_seed
from experiments.studies.methods.rows import StudyRows, size_facts
from formulations.arrays import FloatArray

GENERATED_FEATURES = 8
TEST_ROWS = 2000
TEST_SHARE = 0.4
MOST_MISSING = 0.5
LAWS: dict[str, tuple[Mechanism, Mechanism]] = {
    "mcar 10-50": (CompletelyAtRandom(0.1), CompletelyAtRandom(0.5)),
    "mcar 30-60": (CompletelyAtRandom(0.3), CompletelyAtRandom(0.6)),
    "mcar 30-10": (CompletelyAtRandom(0.3), CompletelyAtRandom(0.1)),
    "mcar-censoring": (CompletelyAtRandom(0.3), Censoring(0.3)),
    "censoring-mcar": (Censoring(0.3), CompletelyAtRandom(0.3)),
    "censoring 10-40": (Censoring(0.1), Censoring(0.4)),
    "one gone": (CompletelyAtRandom(0.2), CompletelyAtRandom(0.2)),
    "two gone": (CompletelyAtRandom(0.2), CompletelyAtRandom(0.2)),
    "new patterns": (Together(CompletelyAtRandom(0.3), 2), CompletelyAtRandom(0.3)),
    "mcar 30-30": (CompletelyAtRandom(0.3), CompletelyAtRandom(0.3)),
    "censoring 20-20": (Censoring(0.2), Censoring(0.2)),
}
GONE = {"one gone": 1, "two gone": 2}
WITHOUT_SHIFT = ("mcar 30-30", "censoring 20-20")


def removed(
    case: str, X_train: FloatArray, y_train: FloatArray, X_test: FloatArray, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray]:
    """Training and test rows after the deletions of a case."""
    before, after = LAWS[case]
    d = X_train.shape[1]
    if case == "new patterns":
        after = Together(after, [np.array([j, (j + 1) % d]) for j in range(1, d, 2)])
    if case in GONE:
        gone = most_correlated(X_train, y_train)[: GONE[case]]
        after = Either([after, Only(CompletelyAtRandom(1.0), gone)])
    return np.where(before(X_train, rng), np.nan, X_train), np.where(after(X_test, rng), np.nan, X_test)


def most_correlated(X: FloatArray, y: FloatArray) -> list[int]:
    """Features by their absolute correlation with the target on the rows that have them, the largest first."""
    with np.errstate(invalid="ignore", divide="ignore"):  # constant features have none
        sizes = [abs(np.corrcoef(x[known], y[known])[0, 1]) for x, known in zip(X.T, ~np.isnan(X.T), strict=True)]
    return [int(j) for j in np.argsort(-np.nan_to_num(sizes), kind="stable")]


@dataclass(frozen=True)
class ShiftDraw:
    """Generated rows.

    Attributes
    ----------
    case : str
        A key of ``LAWS``.
    n : int
        Training rows.
    replicate : int
    """

    case: str
    n: int
    replicate: int = 0

    def make(self) -> StudyRows:
        """Make the rows; all cases of a replicate share features and target."""
        seed = instance_seed(replace(self, case="any"))
        data = make_synthetic(self.n, GENERATED_FEATURES, n_test=TEST_ROWS, missing_fraction=0.0, random_state=seed)
        rng = np.random.RandomState(instance_seed(self))
        X_train, X_test = removed(self.case, data.X_full_train, data.y_train, data.X_full_test, rng)
        facts = {"task": "regression", "n_test": len(X_test), **size_facts(X_train)}
        return StudyRows(X_train, data.y_train, X_test, data.y_test, None, None, "regression", facts)


@dataclass(frozen=True)
class ShiftSet:
    """Rows of a real set.

    Attributes
    ----------
    case : str
        A key of ``LAWS``.
    dataset : str
    split : int
        Draw of rows, 60 % training and 40 % test rows; the same for all cases.
    max_rows, max_features : int
        Largest numbers of rows, and of features: those that correlate most with the training target.
    """

    case: str
    dataset: str
    split: int = 0
    max_rows: int = 600
    max_features: int = 8

    def make(self) -> StudyRows:
        """Make the rows; raises ``DataUnavailableError`` if the data set cannot be loaded."""
        X, y = numerical_rows(self.dataset)
        rng = np.random.RandomState(instance_seed(replace(self, case="any")))
        rows = rng.permutation(len(y))[: self.max_rows]
        X, y = X[rows], y[rows]
        n = round((1 - TEST_SHARE) * len(y))
        X = X[:, np.sort(most_correlated(X[:n], y[:n])[: self.max_features])]
        deletions = np.random.RandomState(instance_seed(self))
        X_train, X_test = removed(self.case, X[:n], y[:n], X[n:], deletions)
        facts = {"task": "regression", "n_test": len(X_test), **size_facts(X_train)}
        return StudyRows(X_train, y[:n], X_test, y[n:], None, None, "regression", facts)


@lru_cache(maxsize=2)
def numerical_rows(name: str) -> tuple[FloatArray, FloatArray]:
    """Numerical features of a set that are missing in at most half of the rows, and its target as a number."""
    data = load_dataset(name)
    if data.y is None:
        raise ValueError(f"{name} has no target.")
    X = data.X[:, [origin.kind == "number" for origin in data.origin]]
    X = X[:, np.isnan(X).mean(axis=0) <= MOST_MISSING]
    y = data.y.astype(float) if data.task == "regression" else (data.y == min(data.y)).astype(float)
    return X, y
