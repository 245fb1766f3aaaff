"""Compilation of loops with numba, cached on disk if possible."""

from collections.abc import Callable
from typing import Any

import numba

# Sums may be reassociated, and so vectorised; NaN and infinity keep their meaning.
REASSOCIATED = {"contract", "reassoc", "nsz", "arcp"}


def compiled(function: Callable[..., Any], fastmath: Any = REASSOCIATED) -> Any:
    """Compile a function of numbers and arrays.

    The result is cached next to the source or in the user's cache folder; if neither is writable, as in a read-only
    installation without a home folder, it is compiled in every process.
    """
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no folder for its cache
        return numba.njit(**options)(function)


def compiled_inside(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled functions call.

    It has no entry from Python, which takes longer to compile than a short function itself, and is cached with the
    functions that call it.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": REASSOCIATED}
    without_entry = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(**options, **without_entry)(function)


def is_interrupt(error: BaseException) -> bool:
    """Whether an error is an interrupt, or the SystemError that an interrupt of compiled code becomes.

    Examples
    --------
    >>> is_interrupt(KeyboardInterrupt()), is_interrupt(SystemError())
    (True, False)
    """
    if isinstance(error, KeyboardInterrupt):
        return True
    behind = error.__cause__ or error.__context__
    return isinstance(error, SystemError) and behind is not None and is_interrupt(behind)
