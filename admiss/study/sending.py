"""Cells as bytes for other processes.

Functions and classes go by their names, as pickle does it. Those of a notebook or of a file that is run as a script
belong to ``__main__``, which another process does not have: cells with them are pickled by value.
"""

import pickle
from collections.abc import Iterable
from typing import Any

from admiss.extras import optional_import
from admiss.study.plan import Cell, EngineError
from admiss.study.recipe import RecipeError, recipe_of


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
        raise EngineError(
            f"{what} cannot be sent to another process ({words}): use functions and classes of a module, and plain "
            "values."
        ) from error


def check_cells(cells: Iterable[Cell]) -> None:
    """Refuse cells of a method, or of a kind of instance, that cannot be sent."""
    seen: set[Any] = set()
    for cell in cells:
        if id(cell.method) not in seen:
            seen.add(id(cell.method))
            try:
                recipe_of(cell.method.run, f"method {cell.method.name!r}")
            except RecipeError as error:
                raise EngineError(str(error)) from error
            check_sent(cell.method, f"method {cell.method.name!r}")
        if type(cell.instance) not in seen:
            seen.add(type(cell.instance))
            check_sent(cell.instance, f"instance {cell.instance!r:.60}")
