"""Files of studies: a new one from a template, and how a study is found in a file or module.

    mine.py                     the only study of a file
    mine.py:ABLATION            one of several, by its name in the file
    package.module:STUDY        of a module that can be imported, from here too

A file is imported under its own name, with its folder (or the folder above its package) in the path of imports: other
processes import it in the same way, and neighbouring modules are found. The templates run as they are: on generated
rows, or on a table of the user.
"""

import importlib
import json
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from string import Template
from types import ModuleType
from typing import TYPE_CHECKING, Any

from admiss.study.plan import EngineError, Plan

if TYPE_CHECKING:  # needs polars
    from admiss.study.report.presentation import Presentation

TEMPLATES = Path(__file__).parent / "templates"
REGRESSION = {
    "linear": "RidgeCV", "options": "", "boosting": "HistGradientBoostingRegressor", "adaptive": "AdaptiveRegressorCV",
    "metrics": '["r2", "neg_mean_absolute_error"]',
}  # fmt: skip
CLASSIFICATION = {
    "linear": "LogisticRegression", "options": "max_iter=1000", "boosting": "HistGradientBoostingClassifier",
    "adaptive": "AdaptiveClassifierCV", "metrics": '["roc_auc", "accuracy"]',
}  # fmt: skip


def write_study(path: Path, table: Path | None = None, target: str | None = None) -> tuple[Path, Path]:
    """Write a study and its test, both or none, and return their paths.

    Parameters
    ----------
    path : Path
        File of the study; the test is next to it.
    table : Path, optional
        A CSV or Parquet file to compare methods on; without one, rows are generated.
    target : str, optional
        The column of the table to predict.
    """
    _check_name(path)
    if (table is None) != (target is None):
        raise EngineError("--table and --target belong together: name the file and the column to predict.")
    test = path.with_name(f"test_{path.name}")
    for each in (path, test):
        if each.exists():
            raise EngineError(f"{each} already exists and is not overwritten: choose another name.")
    words = path.stem.replace("_", " ")
    shared = {"name": path.stem, "file": path.name, "module": path.stem, "title": words[0].upper() + words[1:]}
    if table is None or target is None:
        text = _filled("generated", shared)
    else:
        text = _filled(
            "table", {**shared, **_task(table, target), "data": _address(table, path), "target": json.dumps(target)}
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for each, content in ((path, text), (test, _filled("test", shared))):
            with each.open("x", encoding="utf-8") as file:  # a link that leads nowhere does not exist, and is refused
                file.write(content)
    except OSError as error:
        raise EngineError(f"{path} cannot be written ({error.strerror}): choose another folder.") from error
    return path, test


def _filled(name: str, words: Mapping[str, str]) -> str:
    template = TEMPLATES / f"{name}.py.txt"
    return Template(template.read_text(encoding="utf-8")).substitute(words)


def _check_name(path: Path) -> None:
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise EngineError(
            f"{path.name} must be a name of letters, digits and _ that ends in .py, mine.py for instance."
        )
    if path.stem in sys.stdlib_module_names or path.stem in ("admiss", "numpy", "sklearn", "pandas", "polars", "study"):
        raise EngineError(f"{path.name} would hide the module {path.stem}: choose another name.")


def _task(table: Path, target: str) -> dict[str, str]:
    from admiss.tables import read_table

    try:
        found = read_table(table, target)
    except (ValueError, OSError) as error:
        raise EngineError(str(error)) from error
    if found.task == "regression":
        return REGRESSION
    several = len(set(found.y.tolist())) > 2
    return {**CLASSIFICATION, "metrics": '["accuracy", "balanced_accuracy"]'} if several else CLASSIFICATION


def _address(table: Path, path: Path) -> str:
    """The path of a table as an expression, relative to the file of the study: both may be moved together."""
    folder = path.parent.absolute()
    try:
        relative = Path(os.path.relpath(table.absolute(), folder)).as_posix()
    except ValueError:  # on another drive
        return f"Path({json.dumps(str(table.absolute()))})"
    return f"Path(__file__).parent / {json.dumps(relative)}"


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
