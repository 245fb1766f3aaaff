"""The modules that have been looked at: their places, their statements, and the bytes of files.

A library is a snapshot: every file is read once. A process that computes cells keeps one as long as it lives, and
executes local modules from the texts that it has read: a file that is edited later, even while it is imported, changes
neither what runs there nor its digest.
"""

import hashlib
import sys
import tokenize
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from admiss.study.plan import EngineError
from admiss.study.sources.places import OWN, Place, kind_of_path, loaded_file, place_of
from admiss.study.sources.statements import ModuleSource

SKIPPED = {"__pycache__", "node_modules", "build", "dist", "venv"}


class Library:
    """Places and sources by the names of modules."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._texts: dict[Path, str] = {}
        self._hashes: dict[tuple[Path, int, int], str] = {}
        self._modules: dict[str, ModuleSource] = {}
        self._loaded = 0

    def place(self, name: str) -> Place:
        """The place of a module."""
        if name not in self._places:
            self._places[name] = place_of(name)
        return self._places[name]

    def add(self, name: str, file: Path) -> None:
        """Declare a local module that lies in a file: a script."""
        self._places[name] = Place("local", file)

    def add_source(self, source: ModuleSource) -> None:
        """Declare a local module that has no file: a notebook."""
        self._places[source.name] = Place("local")
        self._modules[source.name] = source

    def module(self, name: str) -> ModuleSource | None:
        """The statements of a local module; None if it is not written in Python, or a folder without ``__init__``."""
        if name not in self._modules:
            place = self.place(name)
            if place.file is None or place.file.suffix not in (".py", ".pyw"):
                return None
            self._modules[name] = self._parsed(name, place.file, place.folders is not None)
        return self._modules[name]

    def _parsed(self, name: str, file: Path, is_package: bool) -> ModuleSource:
        text = self.text(file)
        try:
            return ModuleSource(name, text, is_package)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise EngineError(f"The source of the module {name} cannot be read ({error}): correct {file}.") from None

    def text(self, file: Path) -> str:
        """The text of a file as it was when it was first asked for."""
        if file not in self._texts:
            try:
                with tokenize.open(file) as source:
                    self._texts[file] = source.read()
            except (OSError, SyntaxError, UnicodeDecodeError) as error:
                raise EngineError(f"The source {file} cannot be read ({error}).") from None
        return self._texts[file]

    def file_hash(self, path: Path) -> str:
        """SHA-256 of the bytes of a file in 12 digits; ``absent`` if there is no such file."""
        try:
            state = path.stat()
            key = (path, state.st_size, state.st_mtime_ns)
            if key not in self._hashes:
                with path.open("rb") as file:
                    self._hashes[key] = hashlib.file_digest(file, "sha256").hexdigest()[:12]
            return self._hashes[key]
        except OSError:
            return "absent"

    def read_loaded(self) -> None:
        """Read the sources of all local modules that have been loaded since the last call."""
        if len(sys.modules) == self._loaded:
            return
        self._loaded = len(sys.modules)
        for name in list(sys.modules):
            file = loaded_file(name)
            if name in self._places or file is None or not file.endswith(".py") or kind_of_path(file) != "local":
                continue
            if self.place(name).kind == "local" and Path(file).exists():
                self.text(Path(file))

    def supply_imports(self) -> None:
        """Execute the local modules that this process imports from now on from the texts of this library."""
        sys.meta_path.insert(0, _Finder(self))

    def neighbours(self, name: str) -> list[str]:
        """All modules of the package that holds a module, or of its folder if it is in none."""
        top = name.partition(".")[0]
        place = self.place(top)
        if place.folders is None and place.file is None:
            return []
        roots = place.folders if place.folders is not None else (str(Path(str(place.file)).parent),)
        prefix = [top] if place.folders is not None else []
        found = []
        for root in map(Path, roots):
            for path in sorted(root.rglob("*.py")):
                parts = path.relative_to(root).with_suffix("").parts
                if any(part in SKIPPED or part.startswith(".") for part in parts) or _in_environment(path, root):
                    continue
                parts = parts[:-1] if parts[-1] == "__init__" else parts
                dotted = ".".join([*prefix, *parts])
                if dotted:
                    folders = (str(path.parent),) if path.stem == "__init__" else None
                    self._places.setdefault(dotted, Place("local", path, folders))
                    found.append(dotted)
        return found


class _Finder(MetaPathFinder):
    """Finds what the other finders do; local modules are executed from the texts of a library."""

    def __init__(self, library: Library) -> None:
        self.library = library

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in OWN:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self or not hasattr(finder, "find_spec") else finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        if type(spec.loader) is SourceFileLoader and kind_of_path(spec.loader.path) == "local":
            spec.loader = _Loader(name, spec.loader.path, self.library)
        return spec


class _Loader(SourceFileLoader):
    """Compiles the text of a library, not what a cache or a file holds at the time of the import."""

    def __init__(self, name: str, path: str, library: Library) -> None:
        super().__init__(name, path)
        self.library = library

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.library.text(Path(self.path)), self.path)


def _in_environment(path: Path, root: Path) -> bool:
    """Whether a file belongs to a virtual environment inside a folder, or is installed."""
    inside = [folder for folder in path.parents if folder != root and root in folder.parents]
    return kind_of_path(str(path)) != "local" or any(folder.joinpath("pyvenv.cfg").exists() for folder in inside)
