"""Statistics of one pass over rows that suffice for fits of the squared loss, and that add up.

Rows come in blocks, in any order and on any machine; statistics of parts of the rows are merged into those of all rows,
exactly to rounding. Models are fitted from them as from the rows: ``fit_statistics`` of the estimators.
"""

import copy
import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from admiss._version import __version__
from admiss.adaptivity import ADAPTIVITY_CLASSES, Adaptivity, resolve_adaptivity
from admiss.estimator.validation import (
    AllowsMissing,
    feature_names,
    read_features,
    read_regression_target,
    read_weights,
    refuse_extreme_sizes,
)
from admiss.patterns import PatternTable
from admiss.statistics.blocks import Part, RowBlock, Shape
from admiss.statistics.feature_sums import FeatureSummary, FeatureSums
from admiss.statistics.hash_folds import HashFolds
from admiss.statistics.missing_sets import MissingSets
from admiss.statistics.pattern_factors import PatternFactors, PseudoRows
from admiss.statistics.product_columns import identity, refuse_learners
from admiss.statistics.product_moments import ProductMoments
from admiss.statistics.saved import load_arrays, save_arrays
from formulations.arrays import FloatArray, IntArray
from formulations.losses import Loss, Squared

KIND = "row statistics"
# Names of the parts; moments of classes are numbered.
FEATURES, MOMENTS, MISSING_SETS, PATTERN_FACTORS = "features", "moments", "missing_sets", "pattern_factors"

# A row as (file, row group, row), counted from 0.
Place = tuple[int, int, int]


class RowStatistics(AllowsMissing, BaseEstimator):
    """Sufficient statistics of rows for models with the squared loss.

    Parameters
    ----------
    adaptivity : str, Adaptivity or list
        Classes whose moments are collected. "affine" suffices for static weights, affine intercepts and affine weights;
        "affine_intercept" for the first two, at a fraction of the time. The basis of a class of your own must be fixed
        before the pass.
    tree_depth : int or None
        Depth of the trees and boxes that can be found; None for none.
    patterns : bool
        Whether to keep the moments of each pattern, for any partition and for the patterns of the training rows.
    folds : HashFolds, optional
        Folds for cross-validation.

    Attributes
    ----------
    n_rows : int
        Rows of positive weight so far.
    n_features_in_ : int
    feature_names_in_ : array of str, if X had names

    Examples
    --------
    >>> X, y = np.array([[1.0], [2.0], [np.nan], [4.0]]), np.array([1.0, 2.0, 3.0, 4.0])
    >>> first, second = RowStatistics.of(X[:2], y[:2]), RowStatistics.of(X[2:], y[2:])
    >>> both = first.merge(second)
    >>> both.n_rows, both.summary().n_observed.tolist()
    (4, [3])
    """

    def __init__(
        self,
        adaptivity: Any = "affine",
        *,
        tree_depth: int | None = 3,
        patterns: bool = False,
        folds: HashFolds | None = None,
    ) -> None:
        self.adaptivity = adaptivity
        self.tree_depth = tree_depth
        self.patterns = patterns
        self.folds = folds
        self._check_parameters()
        self.n_seen = 0
        # where sums start from; None for the mean of the first rows
        self.anchor: FloatArray | None = None
        # False during an update, and after one that was interrupted
        self.is_complete = True
        self.parts: dict[str, Part] = {}

    @classmethod
    def of(
        cls, X: Any, y: Any, sample_weight: Any = None, *, keys: Any = None, place: Place = (0, 0, 0), **settings: Any
    ) -> Self:
        """The statistics of these rows; ``settings`` are those of the constructor."""
        return cls(**settings).update(X, y, sample_weight, keys=keys, place=place)

    def update(
        self, X: Any, y: Any, sample_weight: Any = None, *, keys: Any = None, place: Place | None = None
    ) -> Self:
        """Add a block of rows, in place.

        Parameters
        ----------
        X, y, sample_weight
            As in the ``fit`` of an estimator.
        keys : array of shape (n,), optional
            Values of the key of ``folds``, if these have one.
        place : tuple of three int, optional
            File, row group and row of the first row, which set the folds of rows without a key. By default the block
            follows the rows so far.
        """
        self._require_complete()
        is_first = not self.parts
        array = read_features(self, X, reset=is_first)
        target, s = read_regression_target(self, y, len(array)), read_weights(sample_weight, array, allow_zero=True)
        fold = self._folds_of(len(array), keys, (0, 0, self.n_seen) if place is None else place)
        if is_first:
            self.parts = self._new_parts()
        used = s > 0
        rows = RowBlock(np.ascontiguousarray(array), target, s, fold)
        if not used.all():
            rows = RowBlock(array[used], target[used], s[used], fold[used])
        self.is_complete = False
        for part in self.parts.values():
            part.update(rows)
        self.is_complete, self.n_seen = True, self.n_seen + len(array)
        return self

    def merge(self, other: "RowStatistics") -> "RowStatistics":
        """The statistics of the rows of both; neither is changed."""
        if not isinstance(other, RowStatistics):
            raise TypeError(f"Row statistics are merged with others of their kind, not with {type(other).__name__}.")
        self._require_complete()
        other._require_complete()
        if self.settings() != other.settings():
            raise ValueError(f"Row statistics with other settings cannot be merged: {self!r} and {other!r}.")
        if not (self.parts and other.parts):
            return copy.deepcopy(self if self.parts else other)
        if feature_names(self) != feature_names(other):
            raise ValueError(
                f"Row statistics of other features cannot be merged: {_listed(self)} and {_listed(other)}."
            )
        found = copy.copy(self)
        found.parts = {name: part.merged(other.parts[name]) for name, part in self.parts.items()}
        found.n_seen = self.n_seen + other.n_seen
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file, without pickle; it appears under its name only once it is complete."""
        self._require_complete()
        names = getattr(self, "feature_names_in_", None)
        header = {
            "admiss": __version__,
            "settings": self.settings(),
            "n_seen": self.n_seen,
            "n_features": getattr(self, "n_features_in_", None),
            "names": None if names is None else [str(name) for name in names],
        }
        arrays = {f"{name}/{key}": a for name, part in self.parts.items() for key, a in part.arrays().items()}
        save_arrays(path, KIND, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], adaptivity: Any = None) -> Self:
        """Read a file that :meth:`save` has written; classes of your own must be given as ``adaptivity``."""
        header, arrays = load_arrays(path, KIND)
        forged = f"{path} is not a file of {KIND}, or it is damaged."
        try:
            settings = header["settings"]
            folds = settings["folds"]
            given = settings["adaptivity"] if adaptivity is None else adaptivity
            tree_depth, patterns, n_features = settings["tree_depth"], settings["patterns"], header["n_features"]
            splits = None if folds is None else HashFolds(folds["n_splits"], folds["key"])
        except (KeyError, TypeError) as error:
            raise ValueError(forged) from error
        classes = _known_classes(given, path) if adaptivity is None else adaptivity
        found = cls(classes, tree_depth=tree_depth, patterns=patterns, folds=splits)
        if found.settings() != settings:
            raise ValueError(f"{path} holds moments of {', '.join(settings['adaptivity'])}, not of {adaptivity!r}.")
        try:
            if n_features is not None:
                found.n_features_in_ = n_features
                if header["names"] is not None:
                    found.feature_names_in_ = np.array(header["names"], dtype=object)
                found.parts = found._new_parts()
                for name, part in found.parts.items():
                    own = f"{name}/"
                    part.read({key.removeprefix(own): a for key, a in arrays.items() if key.startswith(own)})
            found.n_seen = header["n_seen"]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, MemoryError) as error:
            raise ValueError(forged) from error
        return found

    @property
    def n_rows(self) -> int:
        """Rows of positive weight so far."""
        return self.summary().n_rows if self.parts else 0

    @property
    def n_folds(self) -> int:
        """Number of folds, 1 if there are none."""
        return 1 if self.folds is None else self.folds.n_splits

    @property
    def features(self) -> FeatureSums:
        """Sums of the features and of the target."""
        self._require_complete()
        part = self.parts.get(FEATURES)
        if not isinstance(part, FeatureSums):
            raise ValueError("These statistics have no rows yet: update them first.")
        return part

    def pattern_table(self) -> PatternTable:
        """The patterns of the rows; empty if they are not kept."""
        part = self.parts.get(PATTERN_FACTORS)
        if isinstance(part, PatternFactors):
            return part.table()
        no_patterns, no_rows = np.zeros((0, self.n_features_in_), dtype=bool), np.zeros(0, dtype=np.int64)
        return PatternTable(no_patterns, no_rows, no_rows, np.zeros(0))

    def pseudo_rows(self, folds: IntArray | None = None, origin: FloatArray | None = None) -> PseudoRows:
        """Weighted rows with the weight, mean and scatter of the rows of each pattern, in place of the rows.

        A fit of the squared loss whose columns are linear in x at each pattern is the same as that of the rows, up to
        the rounding that :mod:`admiss.statistics.pattern_factors` states.

        Parameters
        ----------
        folds : int array, optional
            The folds whose rows are meant; by default all.
        origin : array of shape (d + 1,), optional
            Subtracted from features and target before they are rounded; 0 by default.
        """
        self._require_complete()
        part = self.parts.get(PATTERN_FACTORS)
        if not isinstance(part, PatternFactors):
            raise ValueError("These statistics have no patterns: collect them with RowStatistics(patterns=True).")
        return part.pseudo_rows(
            np.arange(self.n_folds) if folds is None else folds,
            np.zeros(self.n_features_in_ + 1) if origin is None else origin,
        )

    def summary(self, folds: IntArray | None = None) -> FeatureSummary:
        """Counts, means, deviations and ranges of the rows, or of those of some folds."""
        return self.features.summary(np.arange(self.n_folds) if folds is None else folds)

    def moments_for(self, adaptivity: Adaptivity) -> ProductMoments:
        """The moments from which a class can be fitted, with the fewest columns."""
        refuse_learners(adaptivity)
        held = self._moments()
        fitting = [part for part in held if part.columns.serves(adaptivity)]
        if not fitting:
            names = ", ".join(repr(part.columns.adaptivity) for part in held) or "no class"
            raise ValueError(
                f"These statistics hold moments of {names}, which do not suffice for {adaptivity!r}: collect them with "
                f"RowStatistics(adaptivity={adaptivity!r})."
            )
        return min(fitting, key=lambda part: part.columns.n_columns)

    def serves(self, adaptivity: Adaptivity) -> bool:
        """Whether there are moments from which a class can be fitted."""
        return any(part.columns.serves(adaptivity) for part in self._moments())

    def _moments(self) -> list[ProductMoments]:
        return [part for part in self.parts.values() if isinstance(part, ProductMoments)]

    def _require_complete(self) -> None:
        if not self.is_complete:
            raise ValueError("An update of these statistics failed in the middle of a block: start from a saved copy.")

    def _check_parameters(self) -> None:
        self._classes()
        whole = isinstance(self.tree_depth, int | np.integer) and not isinstance(self.tree_depth, bool)
        if self.tree_depth is not None and not (whole and self.tree_depth >= 0):
            raise ValueError(f"tree_depth must be a non-negative whole number or None, not {self.tree_depth!r}.")
        if not isinstance(self.patterns, bool | np.bool_):
            raise ValueError(f"patterns must be True or False, not {self.patterns!r}.")
        if self.folds is not None and not isinstance(self.folds, HashFolds):
            raise ValueError(f"folds must be HashFolds(..) or None, not {self.folds!r}: other rules need all rows.")
        if self.folds is not None and not (self.folds.key is None or isinstance(self.folds.key, str)):
            raise ValueError(
                "Name the key of the folds, as HashFolds(5, key='id'): its values are given with the rows."
            )

    def _classes(self) -> list[Adaptivity]:
        single = isinstance(self.adaptivity, str | Adaptivity)
        listed: Sequence[Any] = [self.adaptivity] if single else list(self.adaptivity or [])
        return [resolve_adaptivity(item) for item in listed]

    def settings(self) -> dict[str, Any]:
        """What must be equal in statistics that are merged."""
        folds = self.folds
        return {
            "adaptivity": [identity(item) for item in self._classes()],
            "tree_depth": None if self.tree_depth is None else int(self.tree_depth),
            "patterns": bool(self.patterns),
            "folds": None if folds is None else {"n_splits": folds.n_splits, "key": folds.key},
        }

    def _new_parts(self) -> dict[str, Part]:
        """Parts without rows."""
        shape = Shape(self.n_features_in_, self.n_folds)
        parts: dict[str, Part] = {FEATURES: FeatureSums(shape)}
        for i, adaptivity in enumerate(self._classes()):
            parts[f"{MOMENTS}_{i}"] = ProductMoments(shape, adaptivity)
        if self.tree_depth is not None:
            parts[MISSING_SETS] = MissingSets(shape, int(self.tree_depth))
        if self.patterns:
            parts[PATTERN_FACTORS] = PatternFactors(shape)
        for part in parts.values():
            if self.anchor is not None and isinstance(part, FeatureSums | ProductMoments | MissingSets):
                part.anchor = self.anchor.copy()
        return parts

    def _folds_of(self, n: int, keys: Any, place: Place) -> IntArray:
        if self.folds is None:
            return np.zeros(n, dtype=np.int64)
        if (keys is None) != (self.folds.key is None):
            how = (
                f"have the key {self.folds.key!r}: give its values as keys" if keys is None else "have no key: name it"
            )
            raise ValueError(f"The folds {how}.")
        if keys is not None:
            fold = self.folds.of_keys(keys)
            if len(fold) != n:
                raise ValueError(f"There are {len(fold)} keys for {n} rows: give one for each.")
            return fold
        file, group, row = place
        return self.folds.of_places(np.arange(row, row + n), group, file)


def _listed(statistics: RowStatistics) -> str:
    names = feature_names(statistics)
    return ", ".join(names[:5]) + (f" .. ({len(names)} features)" if len(names) > 5 else "")


def _known_classes(texts: list[str], path: str | os.PathLike[str]) -> list[Adaptivity]:
    """Classes of this package from their names and parameters as text."""
    known = {repr(kind()): kind() for kind in ADAPTIVITY_CLASSES.values()}
    found = []
    for text in texts:
        if text in known:
            found.append(known[text])
        elif text.startswith("Polynomial(degree=") and text.removeprefix("Polynomial(degree=")[:-1].isdigit():
            found.append(
                resolve_adaptivity("polynomial").set_params(degree=int(text.removeprefix("Polynomial(degree=")[:-1]))
            )
        else:
            raise ValueError(f"{path} has moments of {text}, which is no class of admiss: give it as adaptivity.")
    return found


def adopt_features(estimator: Any, statistics: Any) -> None:
    """Store number and names of the features, or raise an error if there is nothing to fit."""
    if not isinstance(statistics, RowStatistics):
        raise TypeError(f"fit_statistics takes RowStatistics, not {type(statistics).__name__}: fit takes rows.")
    found = statistics.summary()
    if not found.n_rows:
        raise ValueError("These statistics have no rows of positive weight: there is nothing to learn from.")
    for name in ("n_features_in_", "feature_names_in_"):
        vars(estimator).pop(name, None)
        if hasattr(statistics, name):
            setattr(estimator, name, getattr(statistics, name))
    refuse_extreme_summary(found, feature_names(estimator))


def refuse_extreme_summary(found: FeatureSummary, names: Sequence[str]) -> None:
    """Raise an error if squares would leave the range of floating-point numbers."""
    sizes = np.where(found.n_observed > 0, found.size[:-1], 0.0)
    refuse_extreme_sizes(float(found.size[-1]), found.largest_weight, sizes.tolist(), names)


def require_squared(loss: Loss) -> None:
    """Raise an error for a loss that statistics do not suffice for."""
    if not isinstance(loss, Squared):
        raise ValueError(f"Statistics suffice for the squared loss only, not for {loss!r}: use loss='squared', or fit.")
