"""Compilation of loops with numba, cached on disk if possible.

numba's documented interface is enough; with the versions that were tested, ``numba_internals`` compiles the same code
in less time, by parts of numba that another release may change: a first fit without a cache, imports included, took 6.2
instead of 8.4 CPU seconds for a search of regressors, and 6.2 instead of 8.0 for an exact tree. While numba compiles,
the clock of certificates and time limits stands still (``compile_events``).
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numba

# Sums may be reassociated, and so vectorised; NaN and infinity keep their meaning.
REASSOCIATED = {"contract", "reassoc", "nsz", "arcp"}
# The newest release of numba whose internals were tested; pyproject.toml has the same limit.
LAST_TESTED = (0, 68)


def _tested_internals() -> ModuleType | None:
    """``numba_internals``, or None if numba is newer than tested or its internals are not as expected."""
    release = tuple(int(part) for part in numba.__version__.split(".")[:2])
    if release > LAST_TESTED:
        return None
    try:
        from formulations import numba_internals
    except ImportError:
        return None
    return numba_internals


INTERNALS = _tested_internals()

try:
    from formulations import compile_events
except ImportError:  # compilation is then part of the seconds
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
    dispatcher = _cached(function, options)
    if INTERNALS is not None:
        INTERNALS.compile_part_for_callers(dispatcher, options)
    return dispatcher


def _cached(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """The function compiled with these options of numba, in its cache if there is a folder for it."""
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
