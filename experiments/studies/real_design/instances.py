"""Real features with generated and with real targets: the instances of the study ``real-design`` (Appendix B.2).

    SemiSynthetic    features of a data set, patterns by a design, a target drawn from k of the features
    RealTarget       features and target of a data set

Features are those of ``load_dataset`` in its clean encoding. Rows, target and split come from hashes of the fields:

    rows      max_rows of a larger set, the same for all instances of the set
    target    one per (dataset, signal, k_missing). All splits share it, as in the paper; mar and am share it too and
              differ only in the patterns, and nmar shares the features that it is drawn from.
    split     70/30, by (dataset, split): the training rows are the same in all designs and signals, hence X is the same
              in mar and nmar

A set with at most max_rows rows does not depend on max_rows.

A missing category is a level of its own in a ``RealTarget``, as in the experiments of the paper; in a ``SemiSynthetic``
its indicators are missing. A target of more than two classes becomes the first class in alphabetical order against the
others, as in the paper.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from admiss.datasets import Dataset, SemiSyntheticData, load_dataset, semi_synthetic
from admiss.datasets.paper.registry import find_record, registry
from admiss.datasets.paper.semi_synthetic import DESIGNS
from experiments.scales import SCALES
from experiments.studies.methods.rows import StudyRows, Task, size_facts
from formulations.arrays import FloatArray, IntArray

# Features of the signal, or all that vary if there are fewer.
K = 10
TEST_FRACTION = 0.3
SIGNALS = ("linear", "nn")
LAPTOP_ROWS = 5000
# A regression and a classification; both sets come with a package, without a download.
SMOKE_SETS = ("Ecdat-MCAS", "MASS-Pima.tr2")

# Features that vary, without the levels "missing": those missing in some rows, and those never missing.
FEATURES_THAT_VARY = {
    "auto-mpg": (1, 12), "breast-cancer-wisconsin-original": (1, 8), "breast-cancer-wisconsin-prognostic": (1, 31),
    "dermatology": (1, 129), "ggplot2-movies": (1, 33), "indian-liver-patient": (1, 10),
    "rpart-car.test.frame": (1, 18), "Ecdat-MCAS": (2, 11), "MASS-Cars93": (3, 61), "car-Davis": (2, 4),
    "car-Freedman": (2, 2), "car-Hartnagel": (2, 6), "datasets-airquality": (2, 2), "mlmRev-Gcsemv": (2, 75),
    "MASS-Pima.tr2": (3, 4), "Ecdat-RetSchool": (4, 33), "arrhythmia": (5, 369), "boot-neuro": (5, 1),
    "reshape2-french_fries": (5, 4), "survival-mgus": (4, 4), "sem-Tests": (6, 0), "robustbase-ambientNOxCH": (13, 0),
    "pscl-politicalInformation": (2, 8), "car-SLID": (5, 3), "rpart-stagec": (4, 11), "Ecdat-Schooling": (12, 39),
    "mammographic-mass": (14, 0), "cluster-plantTraits": (39, 29), "mlmRev-star": (27, 95), "car-Chile": (6, 8),
    "heart-disease-hungarian": (16, 8), "heart-disease-switzerland": (18, 7), "ggplot2-msleep": (13, 22),
    "survival-cancer": (8, 5), "heart-disease-va": (14, 10), "MASS-survey": (17, 7), "hepatitis": (25, 7),
    "automobile": (8, 61), "echocardiogram": (6, 2), "thyroid-disease-allbp": (8, 43),
    "thyroid-disease-allhyper": (8, 43), "thyroid-disease-allhypo": (8, 43), "thyroid-disease-allrep": (8, 43),
    "thyroid-disease-dis": (8, 43), "thyroid-disease-sick": (8, 43), "survival-pbc": (19, 8),
    "thyroid-disease-sick-euthyroid": (9, 34), "horse-colic": (57, 2), "plyr-baseball": (15, 281),
    "communities-and-crime": (25, 101), "communities-and-crime-2": (25, 104), "wiki4he": (67, 6),
}  # fmt: skip


@dataclass(frozen=True)
class SemiSynthetic:
    """Features of a data set with a target drawn from them.

    Attributes
    ----------
    dataset : str
        A name of ``numeric_missing_sets()``.
    design : {"mar", "nmar", "am"}
    signal : {"linear", "nn", "tree"}
    k_missing : int
        Number of features of the signal (k = 10, or all if there are fewer) that are missing in some rows.
    split : int
    max_rows : int or None
        Largest number of rows, or all.
    """

    dataset: str
    design: str
    signal: str
    k_missing: int
    split: int = 0
    max_rows: int | None = None

    def make(self) -> StudyRows:
        """Make the rows; raises ``DataUnavailableError`` if the data set cannot be loaded."""
        data = self._draw(self.design)
        X, X_full = np.vstack([data.X_train, data.X_test]), np.vstack([data.X_full_train, data.X_full_test])
        y = np.concatenate([data.y_train, data.y_test])
        # The order of the rows depends on the signal. Sorted by their values and the patterns of the source, a split is
        # the same for all signals.
        before = self._draw("mar") if self.design == "am" else data
        M = np.isnan(np.vstack([before.X_train, before.X_test]))
        order = np.lexsort(np.column_stack([y, M, X_full]).T)
        X, X_full, y = X[order], X_full[order], y[order]
        train, test = _split(np.arange(len(y)), None, self.dataset, self.split)
        signal_facts = {
            "k": len(data.active),
            "fraction_missing": self.k_missing / len(data.active),
            "ceiling": float(data.ceiling),
        }
        return StudyRows(
            X[train], y[train], X[test], y[test], X_full[train], X_full[test],
            "regression", {"task": "regression", **size_facts(X[train]), **signal_facts},
        )  # fmt: skip

    def _draw(self, design: str) -> SemiSyntheticData:
        source = some_rows(self.dataset, self.max_rows)
        seed = _seed("target", self.dataset, self.signal, self.k_missing)
        return semi_synthetic(source, design, self.signal, k=K, k_missing=self.k_missing, random_state=seed)


@dataclass(frozen=True)
class RealTarget:
    """Features and target of a data set.

    Attributes
    ----------
    dataset : str
        A name of ``target_sets()``.
    split : int
        Stratified by class in classification.
    max_rows : int or None
        Largest number of rows, or all; rows without a target are dropped.
    """

    dataset: str
    split: int = 0
    max_rows: int | None = None

    def make(self) -> StudyRows:
        """Make the rows; raises ``DataUnavailableError`` if the data set cannot be loaded."""
        source = some_rows(self.dataset, self.max_rows)
        X, (y, task) = source.X, _target(source)
        classes = None if task == "regression" else y
        train, test = _split(np.arange(len(y)), classes, self.dataset, self.split)
        facts = {"task": task, **size_facts(X[train])}
        return StudyRows(X[train], y[train], X[test], y[test], None, None, task, facts)


@lru_cache(maxsize=2)
def some_rows(name: str, max_rows: int | None) -> Dataset:
    """A data set, or max_rows of its rows in their order."""
    data = load_dataset(name)
    n = len(data.X)
    if max_rows is None or n <= max_rows:
        return data
    rows = np.sort(np.random.RandomState(_seed("rows", name)).permutation(n)[:max_rows])
    return replace(data, X=data.X[rows], y=None if data.y is None else data.y[rows])


def _split(rows: IntArray, classes: FloatArray | None, name: str, split: int) -> tuple[IntArray, IntArray]:
    seed = _seed("split", name, split)
    train, test = train_test_split(
        rows, test_size=round(TEST_FRACTION * len(rows)), random_state=seed, stratify=classes
    )
    return train, test


def _target(data: Dataset) -> tuple[np.ndarray[Any, Any], Task]:
    """The target as numbers, or as 0 and 1."""
    if data.y is None:
        raise ValueError(f"{data.name} has no target: choose one of target_sets().")
    if data.task == "regression":
        return data.y.astype(float), "regression"
    return (data.y == (min(data.y) if data.task == "multiclass" else 1)).astype(int), "binary"


def _seed(*words: str | int) -> int:
    """A number below 2^32 that depends on the words alone."""
    return int.from_bytes(hashlib.sha256(json.dumps(words).encode()).digest()[:4], "little")


def numeric_missing_sets() -> list[str]:
    """The data sets in which numerical features are missing, according to the tables of the paper."""
    return [name for name, record in registry().items() if record.paper[2] > 0]


def target_sets() -> list[str]:
    """Those of ``numeric_missing_sets()`` that have a target."""
    return [name for name in numeric_missing_sets() if find_record(name).task is not None]


def k_missing_values(dataset: str, values: Sequence[int] = (0, 5, 10)) -> list[int]:
    """The values for which a data set has enough features; other values become the nearest one.

    Examples
    --------
    >>> k_missing_values("wiki4he"), k_missing_values("auto-mpg"), k_missing_values("robustbase-ambientNOxCH")
    ([4, 5, 10], [0, 1], [10])
    """
    if dataset not in FEATURES_THAT_VARY:
        raise ValueError(f"{dataset!r} is not a data set with missing numerical features: see numeric_missing_sets().")
    missing, complete = FEATURES_THAT_VARY[dataset]
    k = min(K, missing + complete)
    return sorted({min(max(value, k - complete, 0), k, missing) for value in values})


def semi_synthetic_instances(scale: str, signals: Sequence[str] = SIGNALS) -> list[SemiSynthetic]:
    """The instances with generated targets of a scale; ``signals=("tree",)`` are those outside the averages."""
    return [
        SemiSynthetic(name, design, signal, k_missing, split, _max_rows(scale))
        for name in _of_scale(scale, numeric_missing_sets())
        for design in DESIGNS
        for signal in signals
        for k_missing in _k_missing_of_scale(scale, name)
        for split in range(_n_splits(scale))
    ]


def real_target_instances(scale: str) -> list[RealTarget]:
    """The instances with real targets of a scale."""
    return [
        RealTarget(name, split, _max_rows(scale))
        for name in _of_scale(scale, target_sets())
        for split in range(_n_splits(scale))
    ]


def _of_scale(scale: str, names: list[str]) -> list[str]:
    if scale not in SCALES:
        raise ValueError(f"Unknown scale {scale!r}: choose one of {', '.join(SCALES)}.")
    return [name for name in names if name in SMOKE_SETS] if scale == "smoke" else names


def _k_missing_of_scale(scale: str, name: str) -> list[int]:
    if scale == "smoke":
        return k_missing_values(name)[-1:]
    return k_missing_values(name, range(K + 1)) if scale == "paper" else k_missing_values(name)


def _n_splits(scale: str) -> int:
    return 10 if scale == "paper" else 1


def _max_rows(scale: str) -> int | None:
    return None if scale == "paper" else LAPTOP_ROWS
