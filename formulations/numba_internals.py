"""Faster compilation of loops that call each other, by parts of numba that its documentation does not promise.

A loop is compiled twice: for Python, and for other loops. The second version is only a part of its callers, which numba
optimises and turns into machine code as a whole; doing this for the part by itself too would take as long again.
Importing this module fails with an ImportError where numba lacks one of these parts.
"""

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.dispatcher import Dispatcher

# What is overridden or replaced below.
_EXPECTED = {
    Compiler: ("compile_extra", "define_pipelines"),
    JITCodeLibrary: ("_optimize_final_module", "_finalize_final_module", "codegen"),
    Dispatcher: ("get_call_template", "get_overload"),
    Flags: ("nrt", "error_model", "forceinline", "fastmath", "no_cfunc_wrapper", "no_cpython_wrapper"),
}
for _owner, _names in _EXPECTED.items():
    for _name in _names:
        if not hasattr(_owner, _name):
            raise ImportError(f"numba {numba.__version__} has no {_owner.__name__}.{_name}")


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


# Options of the version for Python, and what those of the version for other loops add.
FOR_PYTHON = {"no_cfunc_wrapper": True, "pipeline_class": _Compiler}
FOR_LOOPS = {"no_cpython_wrapper": True, "pipeline_class": _PartCompiler}


def compile_part_for_callers(dispatcher: Any, options: dict[str, Any]) -> None:
    """Let other compiled functions call a second version, without entry points for Python and C and without a cache."""
    part = numba.njit(**(options | FOR_LOOPS))(dispatcher.py_func)

    def resolve_call(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Compile for types only: numba would do it once more for every constant argument."""
        unliteral = numba.types.unliteral
        named = {name: unliteral(kind) for name, kind in kws.items()}
        return part.get_call_template([unliteral(kind) for kind in args], named)

    # The two methods by which numba types and finds the function that compiled code calls.
    dispatcher.get_call_template = resolve_call
    dispatcher.get_overload = part.get_overload
