"""Compilation of loops with numba, cached on disk if possible.

A loop is compiled twice: for Python, and for other loops. The second version is only a part of its callers, which numba
optimises and turns into machine code as a whole; doing this for the part by itself too would take as long again.
"""

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags

# Sums may be reassociated, and so vectorised; NaN and infinity keep their meaning.
REASSOCIATED = {"contract", "reassoc", "nsz", "arcp"}


def compiled(function: Callable[..., Any], fastmath: Any = REASSOCIATED, forceinline: bool = False) -> Any:
    """Compile a function of numbers and arrays, as a part of its callers if ``forceinline``.

    The result is cached next to the source or in the user's cache folder; if neither is writable, as in a read-only
    installation without a home folder, it is compiled in every process.

    Calls from other compiled functions use a second version, without entry points for Python and C and without a cache.
    """
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": fastmath,
        "forceinline": forceinline,
        "no_cfunc_wrapper": True,
        "pipeline_class": _Compiler,
    }
    try:
        called_by_python = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no folder for its cache
        called_by_python = numba.njit(**options)(function)
    options |= {"no_cpython_wrapper": True, "pipeline_class": _PartCompiler}
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


class _Flags(Flags):
    """Options of a compilation, equal if numba's own functions are compiled alike for both.

    These are looked up by the options of their caller at every call, and inherit only the following ones.
    """

    def _inherited(self) -> tuple[Any, ...]:
        return self.nrt, self.error_model, self.forceinline, self.fastmath

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags) and self._inherited() == other._inherited()

    def __hash__(self) -> int:
        return hash(self.forceinline)


class _Compiler(Compiler):
    """numba's compiler without garbage collection, which takes a tenth of the time and finds nothing."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.flags = _Flags(self.state.flags)
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if was_enabled:
                gc.enable()


class _Part(JITCodeLibrary):
    """Code that is linked into its callers, neither optimised nor executable by itself."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    @property
    def codegen(self) -> "_Part":
        """What sets the address of the Python environment, which only executable code has."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        pass


class _PartCompiler(_Compiler):
    """The compiler of parts."""

    def define_pipelines(self) -> Any:
        self.state.library = _Part(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


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
