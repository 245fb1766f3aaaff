"""The definitions of a notebook, or of any session without a file, as the source of a module.

Cells are executed in any order and many times: the definitions are those that names have now. Functions and classes are
found in the cells that IPython keeps, imported names by what they stand for, and data by a hash of their values. Only
names that the roots reach are written.
"""

import ast
import hashlib
import inspect
import linecache
import pickle
import textwrap
from collections.abc import Iterable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from admiss.study.plan import EngineError
from admiss.study.sources.references import references_of
from admiss.study.sources.roots import roots_of
from admiss.study.sources.statements import ModuleSource

MAIN = "__main__"


def notebook_source(namespace: Mapping[str, Any], roots: Iterable[str]) -> ModuleSource:
    """The definitions that some names of a session reach in it."""
    texts: dict[str, str] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in texts or name not in namespace:  # a variable of a function, or of Python itself
            continue
        texts[name] = _definition(name, namespace[name])
        references = references_of(ast.parse(texts[name]), "")
        waiting += [chain[0] for chain in references.chains]
        if references.whole or references.package:
            raise EngineError(
                f"{name} finds code by computed names, which cannot be followed in a notebook: move it to a file."
            )
    # Imports first, as in a file: decorators are known by what they stand for.
    ordered = sorted(texts, key=lambda name: (not texts[name].startswith(("import ", "from ")), name))
    source = ModuleSource(MAIN, "\n".join(texts[name] for name in ordered), is_package=False)
    source.file_name = "notebook"
    return source


def _definition(name: str, value: Any) -> str:
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}"
    module, own_name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(own_name, str) and isinstance(module, str):
        top = own_name.partition(".")[0]
        if module != MAIN:
            return f"from {module} import {top} as {name}" if module != "builtins" else f"{name} = {top}"
        return _text(value, top) if top == name else f"{name} = {top}"
    return _value(name, value)


def _text(value: Any, name: str) -> str:
    """The text of a function or class of the session."""
    try:
        if isinstance(value, type):
            return _class_text(value, name)
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError, SyntaxError):
        raise EngineError(
            f"{name} has no source, by which cells would be known to be stale: define it with def or class in a file "
            "or in a cell of a notebook."
        ) from None


def _class_text(value: type, name: str) -> str:
    codes = [each.__code__.co_filename for each in vars(value).values() if isinstance(each, FunctionType)]
    for file in [*codes, *reversed(list(linecache.cache))]:
        if file.endswith(".py") and "ipykernel" not in file:
            continue
        text = "".join(linecache.getlines(file))
        body = ast.parse(text).body if f"class {name}" in text else []
        found = [each for each in body if isinstance(each, ast.ClassDef) and each.name == name]
        if found:
            return ast.unparse(found[-1])
    raise OSError


def _value(name: str, value: Any) -> str:
    """An assignment that stands for data: the hash of a value, and the classes that it holds."""
    try:
        text = hashlib.sha256(pickle.dumps(value, protocol=5)).hexdigest()
    except Exception as error:
        words = " ".join(str(error).split()).rstrip(".")
        raise EngineError(f"{name} of the notebook cannot be sent to another process ({words}).") from None
    held = sorted(roots_of(value))
    imports = [f"from {module} import {top} as {name}__{top}" for module, top in held if module != MAIN]
    names = [f"{name}__{top}" if module != MAIN else top for module, top in held]
    return "\n".join([*imports, f"{name} = ({', '.join([repr(text), *names])},)"])
