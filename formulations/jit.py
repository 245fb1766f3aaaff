"""Compilation of loops with numba, cached on disk if possible."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numba

# Sums may be reassociated, and so vectorised; NaN and infinity keep their meaning.
REASSOCIATED = {"contract", "reassoc", "nsz", "arcp"}


def compiled(function: Callable[..., Any], fastmath: Any = REASSOCIATED, forceinline: bool = False) -> Any:
    """Compile a function of numbers and arrays, as a part of its callers if ``forceinline``.

    The result is cached next to the source or in the user's cache folder; if neither is writable, as in a read-only
    installation without a home folder, it is compiled in every process.

    Calls from other compiled functions use a second version, without entry points for Python and C and without a cache:
    it becomes part of its callers, and compiles in a fraction of the time.
    """
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": fastmath,
        "forceinline": forceinline,
        "no_cfunc_wrapper": True,
    }
    try:
        called_by_python = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no folder for its cache
        called_by_python = numba.njit(**options)(function)
    options["no_cpython_wrapper"] = True
    called_by_loops = numba.njit(**options)(function)

    def resolve_call(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Compile for types only: numba would do it once more for every constant argument."""
        unliteral = numba.types.unliteral
        named = {name: unliteral(kind) for name, kind in kws.items()}
        return called_by_loops.get_call_template([unliteral(kind) for kind in args], named)

    # The two methods by which numba types and finds the function that compiled code calls.
    called_by_python.get_call_template = resolve_call
    called_by_python.get_overload = called_by_loops.get_overload
    return called_by_python


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
