"""The functions and classes of a cell: of its method, of the parameters at any depth, and of its instance.

They are met on the way of a pickle: it passes through estimators, partial functions, containers and whatever else can
be sent to another process. Of a function also the functions that it encloses or wraps are roots, and of a class its
bases and the functions that somebody has put into it.
"""

import contextlib
import io
import pickle
import sys
from functools import cache
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from admiss.study.sources.places import kind_of_path, loaded_file

PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset})
# Tables and arrays: their content is data.
DATA = {"DataFrame", "Series", "LazyFrame", "Index", "memmap"}
Root = tuple[str, str]


def roots_of(value: Any) -> frozenset[Root]:
    """Modules and names of the functions and classes that a value holds."""
    if type(value) in PLAIN and not isinstance(value, list | tuple | dict | set | frozenset):
        return frozenset()
    collector = _Collector()
    with contextlib.suppress(Exception):  # the rest cannot be sent to another process
        collector.dump(value)
    return frozenset(collector.roots)


@cache
def class_roots(kind: type) -> frozenset[Root]:
    """The roots of a class."""
    return roots_of(kind)


class _Nowhere(io.RawIOBase):
    def write(self, content: Any) -> int:
        return len(content)


class _Collector(pickle.Pickler):
    """A pickle that goes nowhere and notes functions and classes."""

    def __init__(self) -> None:
        super().__init__(_Nowhere(), protocol=5)
        self.roots: set[Root] = set()
        self.known: set[int] = set()

    def persistent_id(self, value: Any) -> Any:
        kind = type(value)
        if kind in PLAIN:
            return None
        if isinstance(value, type):
            self._add_class(value)
            return "class"
        if kind is FunctionType:
            self._add_function(value)
            return "function"
        if kind is BuiltinFunctionType and (value.__self__ is None or isinstance(value.__self__, type(sys))):
            self._add(value.__module__, value.__qualname__)
            return "function"
        self._add_class(kind)
        if kind is not MethodType and isinstance(getattr(value, "__qualname__", None), str):
            self._add(getattr(value, "__module__", None), value.__qualname__)  # a cached function, for instance
        if isinstance(wrapped := getattr(value, "__wrapped__", None), FunctionType):
            self._add_function(wrapped)
        return "data" if _is_data(value) else None

    def _add(self, module: str | None, name: str) -> None:
        if module is not None and module != "builtins":
            self.roots.add((module, name.partition(".")[0]))

    def _add_function(self, function: FunctionType) -> None:
        if id(function) in self.known:
            return
        self.known.add(id(function))
        if function.__code__.co_filename != "<string>" or "<locals>" not in function.__qualname__:
            self._add(function.__module__, function.__qualname__)
        if function.__code__.co_filename != "<string>":  # generated, by dataclasses for instance
            # Decorators pass on the names of what they wrap; the code knows where it was written.
            self._add(function.__globals__.get("__name__"), function.__code__.co_qualname)
        inside = [getattr(function, "__wrapped__", None)]
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # empty
                inside.append(cell.cell_contents)
        for value in inside:
            if value is not None and type(value) not in PLAIN:
                self.persistent_id(value)

    def _add_class(self, kind: type) -> None:
        if id(kind) in self.known:
            return
        self.known.add(id(kind))
        for each in kind.__mro__[:-1]:
            self._add(each.__module__, each.__qualname__)
            if not _is_local(each.__module__):
                continue
            for value in vars(each).values():
                function = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
                if isinstance(function, FunctionType):
                    self._add_function(function)


def _is_local(module: str) -> bool:
    file = loaded_file(module)
    return module == "__main__" or (file is not None and kind_of_path(file) == "local")


def _is_data(value: Any) -> bool:
    if type(value).__name__ == "ndarray":
        return value.dtype.kind != "O"
    return type(value).__name__ in DATA and hasattr(value, "shape")
