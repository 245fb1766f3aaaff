"""Studies in files and modules of users.

    mine.py                     the only study of a file
    mine.py:ABLATION            one of several, by its name in the file
    package.module:STUDY        of a module that can be imported, from here too

A file is imported under its own name, with its folder (or the folder above its package) in the path of imports: other
processes import it in the same way, and neighbouring modules are found.
"""

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from admiss.study.plan import EngineError, Plan

if TYPE_CHECKING:  # needs polars
    from admiss.study.report.presentation import Presentation


def load_study(address: str) -> "Presentation":
    """Load a study, or a presentation of one, from a file or module."""
    from admiss.study.report.presentation import Presentation

    place, _, name = address.rpartition(":") if _has_name(address) else (address, "", "")
    module = _module(place)
    found = studies_of(module)
    if name:
        if name not in found:
            known = ", ".join(found) or "none"
            raise EngineError(f"{place} has no study called {name}: it has {known}.")
        chosen = found[name]
    elif not found:
        raise EngineError(f"{place} has no study: define one, STUDY = Study(..), at its top level.")
    else:
        # A presentation is the study that it presents.
        presented = {id(each.study) for each in found.values() if isinstance(each, Presentation)}
        distinct = {id(each): each for each in found.values() if id(each) not in presented}
        if len(distinct) > 1:
            raise EngineError(f"{place} has several studies: choose one, {place}:{next(iter(found))} for instance.")
        chosen = next(iter(distinct.values()))
    return chosen if isinstance(chosen, Presentation) else Presentation(chosen)


def studies_of(module: ModuleType) -> dict[str, Any]:
    """Studies and presentations at the top level of a module, by name."""
    from admiss.study.report.presentation import Presentation

    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Plan | Presentation) and not name.startswith("_")
    }


def _has_name(address: str) -> bool:
    """Whether an address ends in a name after a colon, which is not a drive of Windows."""
    place, colon, name = address.rpartition(":")
    return bool(colon) and name.isidentifier() and len(place) > 1


def _module(place: str) -> ModuleType:
    path = Path(place)
    if path.suffix == ".py" or path.is_file():
        return _import_file(path)
    if path.is_dir() or "/" in place or "\\" in place:
        raise EngineError(f"{place} is not a Python file: name one, or a module such as package.module:STUDY.")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        known = find_spec(place) is not None
    except (ImportError, ValueError):
        known = False
    if not known:
        raise EngineError(
            f"There is no file or module {place}: 'admiss study new {place}.py' writes one to start from."
        )
    return _imported(place, place)


def _import_file(path: Path) -> ModuleType:
    """Import a file under its own name."""
    if not path.is_file():
        raise EngineError(f"There is no file {path}: 'admiss study new {path}' writes one.")
    path = path.resolve()
    parts, root = [path.stem], path.parent
    while root.joinpath("__init__.py").exists():
        parts.insert(0, root.name)
        root = root.parent
    if not all(part.isidentifier() for part in parts):
        raise EngineError(f"{path.name} cannot be imported under this name: use letters, digits and _ (and .py).")
    name = ".".join(parts)
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    spec = None if loaded is not None else find_spec(name)
    if spec is None or spec.origin is None or Path(spec.origin).resolve() != path:
        raise EngineError(f"{path.name} has the name of another module, {parts[0]}: rename the file.")
    return _imported(name, str(path))


def _imported(name: str, place: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except EngineError as error:
        raise EngineError(f"{place}: {error}") from error
    except (Exception, SystemExit) as error:
        words = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")
        line = _line_of(error, name)
        raise EngineError(f"{place} cannot be imported{line} ({words}).") from error


def _line_of(error: BaseException, name: str) -> str:
    """The last line of the file in the traceback of an error."""
    found, trace = getattr(error, "lineno", None), error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") == name:
            found = trace.tb_lineno
        trace = trace.tb_next
    return "" if found is None else f" because of line {found}"
