"""Faster compilation of loops that call each other, by parts of numba that its documentation does not promise.

A loop is compiled twice: for Python, and for other loops. The second version is only a part of its callers, which numba
optimises and turns into machine code as a whole; doing this for the part by itself too would take as long again.
Importing this module fails with an ImportError where numba lacks one of these parts.
"""

from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.dispatcher import Dispatcher

# What is overridden or replaced below.
_EXPECTED = {
    Compiler: ("define_pipelines",),
    JITCodeLibrary: ("_optimize_final_module", "_finalize_final_module", "codegen"),
    Dispatcher: ("get_call_template", "get_overload"),
}
for _owner, _names in _EXPECTED.items():
    for _name in _names:
        if not hasattr(_owner, _name):
            raise ImportError(f"numba {numba.__version__} has no {_owner.__name__}.{_name}")


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


class _PartCompiler(Compiler):
    """The compiler of parts."""

    def define_pipelines(self) -> Any:
        self.state.library = _Part(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


def compile_part_for_callers(dispatcher: Any, options: dict[str, Any]) -> None:
    """Let other compiled functions call a second version, without an entry point for Python and without a cache."""
    of_part: dict[str, Any] = options | {"no_cpython_wrapper": True, "pipeline_class": _PartCompiler}
    part = numba.njit(**of_part)(dispatcher.py_func)
    # The two methods by which numba types and finds the function that compiled code calls.
    dispatcher.get_call_template = part.get_call_template
    dispatcher.get_overload = part.get_overload
