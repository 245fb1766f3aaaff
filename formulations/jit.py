"""Compilation of loops with numba, cached on disk if possible.

While numba compiles, the clock of certificates and time limits stands still (``compile_events``).
"""

from collections.abc import Callable
from typing import Any

import numba

# Sums may be reassociated, and so vectorised; NaN and infinity keep their meaning.
REASSOCIATED = {"contract", "reassoc", "nsz", "arcp"}

try:
    from formulations import compile_events
except ImportError:  # numba's events are experimental: without them compilation is part of the seconds
    pass
else:
    compile_events.listen()


def compiled(function: Callable[..., Any], fastmath: Any = REASSOCIATED, forceinline: bool = False) -> Any:
    """Compile a function of numbers and arrays, as a part of its callers if ``forceinline``.

    numba compiles it once more for each integer or boolean that compiled code calls it with as a constant:
    ``np.int64(0)`` is an ordinary number.

    The result is cached next to the source or in the user's cache folder; if neither is writable, as in a read-only
    installation without a home folder, it is compiled in every process.
    """
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath, "forceinline": forceinline}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no folder for its cache
        return numba.njit(**options)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a short loop as a part of its callers: a call with arrays costs as much as 100 additions."""
    return compiled(function, forceinline=True)


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
