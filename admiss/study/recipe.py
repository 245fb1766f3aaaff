"""Recipes: objects in values of JSON, by which cells are identified.

    None, booleans, numbers, text           themselves; those of numpy as Python's
    lists, tuples, dicts, dataclasses       item by item; sets in the order of their text
    arrays and data frames                  lists if short, otherwise a hash of their content
    functions and classes                   module and name, if they can be imported under it
    estimators                              class, and the parameters that differ from their defaults
    other objects                           class and attributes, or a hash of their pickled form

An object is refused if the same text could describe another one (a lambda) or if it changes by use (a generator of
random numbers).

Other processes receive objects pickled (:func:`sent`): functions and classes by their names, those of a notebook or
script, which belong to ``__main__``, by value.
"""

import hashlib
import inspect
import io
import pickle
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from admiss.atomic_write import EngineError
from admiss.extras import optional_import

# Arrays with at most so many numbers are written out in tables; changing it changes the keys of cells.
SHORT = 100


class StudyError(EngineError, ValueError):
    """Objects that make no study, in one sentence."""


def recipe_of(value: Any, where: str) -> Any:
    """Describe a value; ``where`` is its place in the sentence of a refusal.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> recipe_of({"model": Ridge(alpha=2.0), "sizes": (1, 2)}, "the method")
    {'model': {'estimator': 'sklearn.linear_model._ridge.Ridge', 'parameters': {'alpha': 2.0}}, 'sizes': [1, 2]}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(name): recipe_of(item, f"{where}, {name}") for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [recipe_of(item, where) for item in value]
    if isinstance(value, set | frozenset):
        return {"set": sorted((recipe_of(item, where) for item in value), key=str)}
    if isinstance(value, PurePath):
        return {"path": value.as_posix()}
    if isinstance(value, np.ndarray) or (hasattr(value, "to_numpy") and not isinstance(value, type)):
        return _content(value, where)
    if isinstance(value, partial):
        parts = {"arguments": list(value.args), "keywords": value.keywords}
        return {"partial": recipe_of(value.func, where), **recipe_of(parts, where)}
    if isinstance(value, type | FunctionType | BuiltinFunctionType | np.ufunc):
        return {"name": _importable(value, where)}
    if isinstance(value, MethodType):
        return {"method": value.__name__, "of": recipe_of(value.__self__, where)}
    if isinstance(value, np.random.RandomState | np.random.Generator):
        raise StudyError(f"{where} is a generator of random numbers, which changes by use: give an integer.")
    return _object(value, where)


def module_name(value: Any) -> str:
    """The module of a function or class; a file that is run as a script has the name under which others import it."""
    name: str = getattr(value, "__module__", None) or "builtins"
    spec_or_file = getattr(sys.modules["__main__"], "__file__", None)
    if name == "__main__" and spec_or_file is not None:
        return PurePath(spec_or_file).stem
    return name


def _importable(value: Any, where: str) -> str:
    """Module and name; raises if another process would find something else under it."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", value.__name__)
    if module is None and isinstance(value, np.ufunc):
        module = "numpy"
    if "<" in name:
        kind = "a lambda" if "<lambda>" in name else f"defined inside {name.split('.<locals>')[0]}"
        raise StudyError(
            f"{where} is {kind}, which no name identifies: define it with def at the top level of a module."
        )
    found: Any = sys.modules.get(str(module))
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not value and module != "__main__":
        raise StudyError(f"{where} cannot be imported as {module}.{name}: define it at the top level of a module.")
    return f"{module_name(value) if module != 'numpy' else module}.{name}"


def _object(value: Any, where: str) -> Any:
    if type(value).__module__ == "builtins":  # bytes, a range, a generator
        return {"object": type(value).__name__, "pickled": _pickled(value, where)}
    name = _importable(type(value), where)
    if hasattr(value, "get_params") and not isinstance(value, type):
        return {"estimator": name, "parameters": _parameters(value, where)}
    if is_dataclass(value):
        own = {part.name: getattr(value, part.name) for part in fields(value)}
        return {"object": name, "fields": recipe_of(own, where)}
    if hasattr(value, "dist") and hasattr(value, "kwds"):  # a distribution of scipy, whose state is large and varies
        parts = {"arguments": list(value.args), "keywords": value.kwds}
        return {"distribution": value.dist.name, **recipe_of(parts, where)}
    state = getattr(value, "__dict__", None)
    if state is not None and not isinstance(value, BaseException | io.IOBase):
        try:
            return {"object": name, "state": recipe_of(state, where)}
        except (StudyError, RecursionError):
            pass  # by its pickled form
    return {"object": name, "pickled": _pickled(value, where)}


def _parameters(estimator: Any, where: str) -> dict[str, Any]:
    """The parameters that differ from their defaults: one that a later version adds does not change the recipe."""
    try:
        defaults = type(estimator)().get_params(deep=False)
    except TypeError:  # some parameters are required
        signature = inspect.signature(type(estimator).__init__).parameters
        defaults = {name: each.default for name, each in signature.items() if each.default is not each.empty}
    found = {}
    for name, value in estimator.get_params(deep=False).items():
        described = recipe_of(value, f"{where}, parameter {name}")
        # as text, since NaN is not equal to itself
        if name not in defaults or repr(described) != repr(_default(defaults[name])):
            found[name] = described
    return found


def _default(value: Any) -> Any:
    try:
        return recipe_of(value, "the default")
    except StudyError:
        return StudyError


def _content(value: Any, where: str) -> Any:
    """Short arrays in full, others and data frames by a hash of their values, types and names."""
    if isinstance(value, np.ndarray) and value.size <= SHORT and value.dtype.kind in "biufU":
        return value.tolist()
    return {"content": content_hash(value, where)}


def content_hash(value: Any, where: str) -> str:
    """Hash of an array, a sparse matrix or a data frame, the same for equal values, types and names."""
    content = hashlib.sha256()
    names = getattr(value, "columns", None)
    columns = {"": value} if names is None else {name: value[name] for name in names}
    if hasattr(value, "tocsr"):  # sparse
        rows = value.tocsr(copy=True)
        rows.sum_duplicates()
        content.update(f"{type(value).__name__}\n{value.shape}\n".encode())
        columns = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
    for name, column in columns.items():
        array = np.asarray(column)
        content.update(f"{name}\n{array.dtype}\n{array.shape}\n".encode())
        if array.dtype.kind == "O":
            content.update(_pickled([_scalar(item) for item in array.ravel().tolist()], where).encode())
        else:
            content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()[:32]


def _scalar(item: Any) -> Any:
    """All markers of a missing value are one."""
    return None if item is None or item != item or type(item).__name__ == "NAType" else item


def _pickled(value: Any, where: str) -> str:
    try:
        content = pickle.dumps(value, protocol=5)
        again = pickle.dumps(pickle.loads(content), protocol=5)
    except Exception as error:
        words = " ".join(str(error).split()).rstrip(".")
        raise StudyError(
            f"{where} is a {type(value).__name__} that cannot be hashed or sent to another process ({words}): use "
            "plain values, functions and classes of a module, or estimators."
        ) from error
    if content != again:
        raise StudyError(
            f"{where} is a {type(value).__name__} whose hash changes with each copy: use plain values or estimators."
        )
    return hashlib.sha256(content).hexdigest()[:32]


def sent(value: Any) -> bytes:
    """Pickle a value."""
    content = pickle.dumps(value)
    if b"__main__" not in content:
        return content
    with optional_import("A study in a notebook or script", "study"):
        import cloudpickle
    by_value: bytes = cloudpickle.dumps(value)
    return by_value


def check_sent(value: Any, what: str) -> None:
    """Refuse what cannot be sent, in one sentence."""
    try:
        pickle.loads(sent(value))
    except ImportError:
        raise
    except Exception as error:
        words = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")
        raise StudyError(
            f"{what} cannot be sent to another process ({words}): use functions and classes of a module, and plain "
            "values."
        ) from error
