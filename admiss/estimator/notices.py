"""Warnings that several estimators give, at the line of the user's code that called them."""

import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

# Packages whose lines say nothing to a user; pipelines and searches come between the user and an estimator.
_PASSED_OVER = ("admiss", "sklearn", "joblib")


def warn_never_observed(names: Sequence[str], features: Iterable[int]) -> None:
    """Features that have no place in the model."""
    _warn_features("Never observed in training, and left out of the model", names, features)


def warn_set_to_zero(names: Sequence[str], features: Iterable[int]) -> None:
    """Features that were never observed, and of which a column of zeros is returned."""
    _warn_features("Never observed in training, and set to 0 throughout", names, features)


def warn_never_missing(names: Sequence[str], features: Iterable[int]) -> None:
    """Features that are missing now and never were in training."""
    _warn_features("Never missing in training, and set to the training mean here", names, features)


def _warn_features(what: str, names: Sequence[str], features: Iterable[int]) -> None:
    listed = ", ".join(names[j] for j in features)
    if listed:
        warn(f"{what}: {listed}.")


def warn(message: str) -> None:
    """A warning at the nearest line that called and is not of this package, scikit-learn or joblib."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED_OVER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


_lock = threading.Lock()
_saved_filters = ExitStack()
_n_silent = 0


@contextmanager
def silence() -> Iterator[None]:
    """No warnings, of whatever package, until all threads that are in here have left.

    The filters of warnings belong to the process. Threads that each saved and restored them on their own might leave
    them changed for good, so the first one in saves them and the last one out restores them.
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
