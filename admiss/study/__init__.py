"""Studies: methods on instances, computed once, kept, and compared."""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from admiss.study.instances import CsvInstance as CsvInstance
    from admiss.study.plan import Best as Best
    from admiss.study.plan import EngineError as EngineError
    from admiss.study.plan import Method as Method
    from admiss.study.plan import Product as Product
    from admiss.study.plan import Scores as Scores
    from admiss.study.plan import combinations as combinations
    from admiss.study.plan import instance_seed as instance_seed
    from admiss.study.rows import Rows as Rows
    from admiss.study.study import Study as Study

# Imported on first use: the process that computes cells needs none of them.
_PUBLIC = {
    "admiss.study.plan": ("Best", "EngineError", "Method", "Product", "Scores", "combinations", "instance_seed"),
    "admiss.study.instances": ("CsvInstance",),
    "admiss.study.rows": ("Rows",),
    "admiss.study.study": ("Study",),
}
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names}
__all__ = [*_HOMES]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # type checkers would take every unknown name for an attribute

    def __getattr__(name: str) -> Any:
        if name == "Table":
            warnings.warn("admiss.study.Table is now called CsvInstance: import that.", FutureWarning, stacklevel=2)
            return __getattr__("CsvInstance")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(import_module(_HOMES[name]), name)
        return globals()[name]
