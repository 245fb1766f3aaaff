"""Complete rows from which a mechanism removes values: real ones, and generated ones.

    CompleteSet    numerical features of a real set, without missing values, with its target or a linear one
    CompleteDraw   generated features of rank 5 and a generated target (``make_synthetic``, as in the text of the paper)

Real features are the numbers of ``load_dataset`` that are missing in at most a tenth of the rows, on the rows that have
all of them; categories are left out, since "the largest values" of censoring are not defined for them. A set counts if
it has at least three such features and 100 rows. ``communities-and-crime-2`` is left out, a second version of
``communities-and-crime``. A target of more than two classes becomes the first class in alphabetical order
against the others. A linear target is w'z plus noise, of half the variance, with w_j ~ U[-1, 1] and z the features in
standard units.

Rows, features, target, split and the random numbers of the mechanism come from a seed that is the same for all
mechanisms: the values missing at 20 % are also missing at 50 %. Values are removed from training and test rows alike,
of every feature the same share.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from admiss.datasets import load_dataset, make_synthetic
from admiss.datasets.generated import add_noise, draw_signal
from admiss.datasets.mechanisms.composed import resolve_mechanism
from admiss.datasets.mechanisms.single import standardise
from admiss.study import instance_seed
from experiments.studies.methods.rows import StudyRows, Task, size_facts
from formulations.arrays import FloatArray

MOST_MISSING = 0.1
FEWEST_FEATURES = 3
FEWEST_ROWS = 100
TEST_FRACTION = 0.3
SNR = 2.0

# The sets that count.
COMPLETE_SETS = (
    "Ecdat-Males", "heart-disease-cleveland", "auto-mpg", "breast-cancer-wisconsin-original",
    "breast-cancer-wisconsin-prognostic", "indian-liver-patient", "Ecdat-MCAS", "MASS-Pima.tr2", "Ecdat-RetSchool",
    "arrhythmia", "survival-mgus", "Ecdat-Schooling", "car-Chile", "heart-disease-hungarian",
    "heart-disease-switzerland", "survival-cancer", "hepatitis", "automobile", "survival-pbc",
    "thyroid-disease-sick-euthyroid", "communities-and-crime", "wiki4he",
)  # fmt: skip


@dataclass(frozen=True)
class CompleteSet:
    """Real features.

    Attributes
    ----------
    dataset : str
        A name of ``COMPLETE_SETS``.
    signal : {"real", "linear"}
        The target of the set, or a linear one.
    mechanism : {"mcar", "censoring"}
        Censoring hides the largest values of every feature.
    missing_fraction : float
        Share of missing values of each feature.
    split : int
        Draw of rows, features and missing values, 70 % training and 30 % test rows.
    max_rows, max_features : int or None
        Largest numbers of rows and features, or all.
    """

    dataset: str
    signal: str
    mechanism: str
    missing_fraction: float
    split: int = 0
    max_rows: int | None = None
    max_features: int | None = None

    def make(self) -> StudyRows:
        """Make the rows; raises ``DataUnavailableError`` if the data set cannot be loaded."""
        X_full, y, task = complete_rows(self.dataset)
        seed = _seed_of_all_mechanisms(self)
        rng = np.random.RandomState(seed)
        rows = rng.permutation(len(y))[: self.max_rows]
        columns = np.sort(rng.permutation(X_full.shape[1])[: self.max_features])
        X_full, y = X_full[np.ix_(rows, columns)], y[rows]
        if self.signal != "real":
            y, task = _generated_target(self.signal, X_full, rng), "regression"
        is_missing = resolve_mechanism(self.mechanism, self.missing_fraction)(X_full, rng)
        X = np.where(is_missing, np.nan, X_full)
        train, test = train_test_split(
            np.arange(len(y)), test_size=TEST_FRACTION, random_state=seed, stratify=None if task == "regression" else y
        )
        facts = {"task": task, **size_facts(X[train])}
        return StudyRows(X[train], y[train], X[test], y[test], X_full[train], X_full[test], task, facts)


@dataclass(frozen=True)
class CompleteDraw:
    """Generated features and a generated target.

    Attributes
    ----------
    signal : {"linear", "nn"}
    mechanism : {"mcar", "censoring"}
    missing_fraction : float
    n : int
        Training rows; there are as many test rows.
    replicate : int
    """

    signal: str
    mechanism: str
    missing_fraction: float
    n: int
    replicate: int = 0

    def make(self) -> StudyRows:
        """Make the rows."""
        data = make_synthetic(
            self.n,
            n_test=self.n,
            signal=self.signal,
            mechanism=self.mechanism,
            missing_fraction=self.missing_fraction,
            random_state=_seed_of_all_mechanisms(self),
        )
        return StudyRows(
            data.X_train, data.y_train, data.X_test, data.y_test, data.X_full_train, data.X_full_test,
            "regression", {"task": "regression", **size_facts(data.X_train), "ceiling": data.ceiling},
        )  # fmt: skip


def _seed_of_all_mechanisms(instance: CompleteSet | CompleteDraw) -> int:
    return instance_seed(replace(instance, mechanism="any", missing_fraction=0.0))


def _generated_target(signal: str, X: FloatArray, rng: np.random.RandomState) -> FloatArray:
    y, _ = add_noise(draw_signal(signal, standardise(X), rng), SNR, rng)
    return y


@lru_cache(maxsize=2)
def complete_rows(name: str) -> tuple[FloatArray, np.ndarray[Any, Any], Task]:
    """Numerical features without missing values, target and task of a set."""
    data = load_dataset(name)
    if data.y is None:
        raise ValueError(f"{name} has no target: choose one of {', '.join(COMPLETE_SETS)}.")
    X = data.X[:, [origin.kind == "number" for origin in data.origin]]
    X = X[:, np.isnan(X).mean(axis=0) <= MOST_MISSING]
    rows = ~np.isnan(X).any(axis=1)
    X, y = X[rows], data.y[rows]
    X = X[:, (X != X[:1]).any(axis=0)]
    if data.task == "regression":
        return X, y.astype(float), "regression"
    return X, (y == (min(y) if data.task == "multiclass" else 1)).astype(int), "binary"
