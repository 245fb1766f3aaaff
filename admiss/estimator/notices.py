"""Warnings of several estimators, attributed to the line of the user's code that called them.

A pattern that training has not seen is treated as the parameter ``on_unseen_pattern`` of an estimator says.
"nearest" predicts (if a model depends on the cell or leaf of a pattern, it takes that of the nearest pattern seen),
"warn" predicts with a warning, and "error" refuses. A feature that is missing for the first time is always reported.
"""

import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from admiss.estimator.validation import feature_names
from admiss.patterns import PatternTable
from formulations.arrays import BoolArray, IntArray

ON_UNSEEN_PATTERN = ("nearest", "warn", "error")


# Packages that are skipped: pipelines and searches may stand between the user and an estimator.
_SKIPPED = ("admiss", "sklearn", "joblib")


def warn_never_observed(names: Sequence[str], features: Iterable[int]) -> None:
    """Warn of features that are left out of the model."""
    _warn_features("Never observed in training, and left out of the model", names, features)


def warn_set_to_zero(names: Sequence[str], features: Iterable[int]) -> None:
    """Warn of features that were never observed and are returned as columns of zeros."""
    _warn_features("Never observed in training, and set to 0 throughout", names, features)


def warn_never_missing(names: Sequence[str], features: Iterable[int]) -> None:
    """Warn of features that are missing now and were never missing in training."""
    _warn_features("Never missing in training, and set to the training mean here", names, features)


def _warn_features(what: str, names: Sequence[str], features: Iterable[int]) -> None:
    sentence = ", ".join(names[j] for j in features)
    if sentence:
        warn(f"{what}: {sentence}.")


def warn(message: str) -> None:
    """Warn at the nearest line on the stack outside this package, scikit-learn and joblib."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _SKIPPED:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


_lock = threading.Lock()
_saved_filters = ExitStack()
_n_silent = 0


@contextmanager
def silence() -> Iterator[None]:
    """Suppress all warnings until every thread inside has left.

    The filters of warnings belong to the process. If every thread saved and restored them, they might stay changed, so
    the first thread in saves them and the last one out restores them.
    """
    global _n_silent
    with _lock:
        if not _n_silent:
            _saved_filters.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
        _n_silent += 1
    try:
        yield
    finally:
        with _lock:
            _n_silent -= 1
            if not _n_silent:
                _saved_filters.close()


def treat_unseen(
    estimator: Any,
    never_missing: IntArray,
    M: BoolArray,
    is_seen: Callable[[BoolArray], BoolArray],
    detail: str = "",
) -> None:
    """Warn of unseen patterns, or raise an error.

    Parameters
    ----------
    estimator : estimator
        With ``on_unseen_pattern``.
    never_missing : int array
        Features that are missing now and never were in training.
    M : bool array of shape (rows, features)
        The patterns of the rows.
    is_seen : callable
        From patterns to whether each is known; not called if nothing is to be said.
    detail : str
        What else to say of these patterns.
    """
    mode, names = estimator.on_unseen_pattern, feature_names(estimator)
    unseen = M[:0] if mode == "nearest" else M[~is_seen(M)]
    distinct = len(PatternTable.of(unseen).patterns)
    sentence = f"{distinct} patterns of {len(unseen)} rows were not seen in training{detail}"
    if mode == "error" and distinct:
        raise ValueError(f"{sentence}: allow them with on_unseen_pattern='nearest', or see pattern_report(X).")
    if mode == "error" and len(never_missing):
        features = ", ".join(names[j] for j in never_missing)
        raise ValueError(f"Never missing in training, and missing here: {features}.")
    warn_never_missing(names, never_missing)
    if distinct:
        warn(f"{sentence}; see pattern_report(X).")
