"""Patterns that training has not seen, treated as the parameter ``on_unseen_pattern`` of an estimator says.

"nearest" predicts (if a model depends on the cell or leaf of a pattern, it takes that of the nearest pattern seen),
"warn" predicts with a warning, and "error" refuses. A feature that is missing for the first time is always reported.
"""

from collections.abc import Callable
from typing import Any

from admiss.estimator.notices import warn, warn_never_missing
from admiss.estimator.validation import feature_names
from admiss.patterns import PatternTable
from formulations.arrays import BoolArray, IntArray

ON_UNSEEN_PATTERN = ("nearest", "warn", "error")


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
    found = f"{distinct} patterns of {len(unseen)} rows were not seen in training{detail}"
    if mode == "error" and distinct:
        raise ValueError(f"{found}: allow them with on_unseen_pattern='nearest', or see pattern_report(X).")
    if mode == "error" and len(never_missing):
        listed = ", ".join(names[j] for j in never_missing)
        raise ValueError(f"Never missing in training, and missing here: {listed}.")
    warn_never_missing(names, never_missing)
    if distinct:
        warn(f"{found}; see pattern_report(X).")
