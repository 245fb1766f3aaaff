"""Where the commands find studies: in a catalogue by name, or in files and modules of users."""

import argparse
import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from admiss.extras import optional_import
from admiss.study.loading import load_study
from admiss.study.plan import EngineError
from admiss.study.run import store_folder
from admiss.study.store import Store

if TYPE_CHECKING:  # needs polars
    from admiss.study.report.presentation import Catalogue, Presentation


@dataclass(frozen=True)
class Studies:
    """Studies that commands know.

    Attributes
    ----------
    find : callable
        From the text that names a study on the command line to the study.
    known : callable
        The studies that the command ``list`` shows, by the text that names them; an error in place of a study that
        cannot be loaded.
    words : str
        Help on how a study is named.
    """

    find: "Callable[[str], Presentation]"
    known: "Callable[[], Mapping[str, Presentation | EngineError]]"
    words: str


def catalogued(catalogue: "Callable[[], Catalogue]") -> Studies:
    """The studies of a catalogue, which is loaded by commands that need it: its modules may take seconds to import."""

    def find(name: str) -> "Presentation":
        known = catalogue()
        if name not in known:
            raise EngineError(f"Unknown study {name!r}: choose one of {', '.join(known)}.")
        return known[name]

    return Studies(find, lambda: dict(catalogue()), "a name that the command 'list' shows")


def studies_here() -> "dict[str, Presentation | EngineError]":
    """Studies in the Python files of this folder that import ``admiss.study``."""
    found: dict[str, Any] = {}
    for path in sorted(Path().glob("*.py")):
        if _imports_studies(path):
            try:
                found[path.name] = load_study(str(path))
            except EngineError as error:
                found[path.name] = error
    return found


def _imports_studies(path: Path) -> bool:
    """Whether a file imports the engine; files that do not are never run."""
    try:
        content = path.read_bytes()
        tree = ast.parse(content)
    except SyntaxError:  # a study in the making, of which the import says the line
        return b"from admiss.study import" in content
    except (ValueError, OSError):
        return False
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    names = {f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    return any(name.startswith("admiss.study.") for name in names)


OWN_STUDIES = Studies(
    load_study, studies_here, "a file (mine.py, mine.py:NAME if it has several) or a module (package.module:NAME)"
)


def named_study(options: argparse.Namespace) -> "Presentation":
    """The study that the options name."""
    with optional_import("This command", "study"):
        studies: Studies = options.studies
        return studies.find(options.study)


def opened_store(options: argparse.Namespace, presentation: "Presentation") -> Store:
    """The store that the options name."""
    study = presentation.study
    return Store(store_folder(study, options.scale, options.out), study.name)
