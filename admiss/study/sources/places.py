"""Where the code of a module lies, found without importing it.

    local       its source counts: a file outside the standard library and ``site-packages``, or an editable install
    installed   in ``site-packages`` or ``dist-packages``: known by its distribution
    standard    part of Python
    own         a module of admiss or formulations
    absent      not found here

A loaded module lies where it was loaded from. Others are asked for in the order of ``sys.meta_path``, package by
package, which also finds editable installs with finders of their own.
"""

import os
import sys
import sysconfig
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import NamedTuple

INSTALLED = [f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages")]
OWN = {"admiss", "formulations"}
# Modules of admiss that make and score rows: they are followed like local ones.
FOLLOWED = ("admiss.study", "admiss.tables")


class Place(NamedTuple):
    """Kind of a module, its file if it has one, and the folders of its submodules if it is a package."""

    kind: str
    file: Path | None = None
    folders: tuple[str, ...] | None = None


def place_of(name: str) -> Place:
    """The place of a module."""
    top = name.partition(".")[0]
    found = _found(name)
    if found is None or found == (None, None):
        return Place("standard" if top in sys.stdlib_module_names else "absent")
    file, folders = found
    if top in OWN:
        return Place("local" if is_followed(name) else "own", file, folders)
    return Place(kind_of_path(str(file or (folders or ("",))[0])), file, folders)


def is_followed(name: str) -> bool:
    """Whether a module of admiss is followed like local ones."""
    return f"{name}.".startswith(tuple(f"{each}." for each in FOLLOWED))


def kind_of_path(path: str) -> str:
    """Whether a file is local, installed, or part of Python."""
    if any(folder in path for folder in INSTALLED):
        return "installed"
    return "standard" if path.startswith(_standard_folders()) else "local"


@cache
def _standard_folders() -> tuple[str, ...]:
    folders = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), os.path.dirname(os.__file__)}
    return tuple(f"{folder}{os.sep}" for folder in folders)


def loaded_file(name: str) -> str | None:
    """The file of a loaded module."""
    file = getattr(sys.modules.get(name), "__dict__", {}).get("__file__")
    return file if isinstance(file, str) else None


def _found(name: str) -> tuple[Path | None, tuple[str, ...] | None] | None:
    """File and folders of a module; None if there is no such module."""
    own = getattr(sys.modules.get(name), "__dict__", {})  # not by getattr: a module may make up attributes
    file, path = own.get("__file__"), own.get("__path__")
    if file is not None or path is not None:
        return (None if file is None else Path(file)), (None if path is None else tuple(path))
    spec = _spec(name)
    if spec is None:
        return None
    folders = None if spec.submodule_search_locations is None else tuple(spec.submodule_search_locations)
    return (Path(spec.origin) if spec.has_location and spec.origin else None), folders


def _spec(name: str) -> ModuleSpec | None:
    parent = name.rpartition(".")[0]
    path = None
    if parent:
        above = _found(parent)
        if above is None or above[1] is None:
            return None
        path = list(above[1])
    for finder in sys.meta_path:
        found = finder.find_spec(name, path) if hasattr(finder, "find_spec") else None
        if found is not None:
            return found
    return None
