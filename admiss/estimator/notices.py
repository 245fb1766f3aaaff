"""Warnings of several estimators, attributed to the line of the user's code that called them."""

import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

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
    listed = ", ".join(names[j] for j in features)
    if listed:
        warn(f"{what}: {listed}.")


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
