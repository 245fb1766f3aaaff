"""What the scores of a cell depend on besides its recipe, recorded while it is computed, like a compiler's dep-file.

    mine.py                  a module or data file that was read, by a hash; named from the folder of ``sys.path`` above
    data flats.csv           a data file that the instance declares in ``files``, by a hash
    package numpy            an installed distribution of which a module is loaded, by its version
    admiss, formulations     these packages once a module that computes numbers is loaded, by a hash of such files
    admiss.study             the modules of the engine that make and score rows
    notebook                 definitions of a session without a file, which other processes receive by value
    Python                   its version

A cell is stale if one of these values is no longer the present one. Files are hashed before they are read: a file that
is saved at any moment afterwards leaves its old hash in the record, never a new one over old code. Python files are
hashed by their syntax tree, in which formatting and comments do not matter.

A process records all that it has read so far, since a module that one cell has loaded serves the next. So an edit may
mark cells that do not use the file. Files that compiled code opens (that of polars, for instance) or that other
processes read are not seen: instances declare these.
"""

import ast
import contextlib
import hashlib
import os
import platform
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

# Rooms of admiss that compare, print or carry numbers, and modules of the engine that make or score rows.
NO_NUMBERS = {
    "_version", "atomic_write", "cli", "compare", "dask_connection", "demo", "drawing", "errors", "estimates",
    "extras", "folder_lock", "plots", "report", "study", "terminal", "testing", "versions",
}  # fmt: skip
ENGINE = {"instances", "plan", "recipe", "rows", "scoring"}
PRESENTATION = {"figures"}
OWN = ("admiss", "formulations", "admiss.study")
INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages", "__pycache__"))
PYTHON = [os.path.join(root, name, "") for root in (sys.prefix, sys.base_prefix) for name in ("lib", "Lib", "share")]
SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/share/", *PYTHON)
ABSENT = "absent"


def text_hash(content: str | bytes) -> str:
    """SHA-256 in 12 digits."""
    content = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return hashlib.sha256(content).hexdigest()[:12]


def python_version() -> str:
    """The version of Python without that of its corrections."""
    return ".".join(platform.python_version_tuple()[:2])


def file_hash(path: str | Path) -> str:
    """Hash of a file: of the syntax tree of Python, of the bytes of others; ``absent`` if it cannot be read."""
    try:
        if Path(path).suffix != ".py":
            with open(path, "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()[:12]
        content = Path(path).read_bytes()
    except OSError:
        return ABSENT
    try:
        return text_hash(ast.dump(ast.parse(content)))
    except (SyntaxError, ValueError, RecursionError):
        return text_hash(content)


def own_hashes() -> dict[str, str]:
    """Hashes of the files of admiss, of formulations and of the engine that compute numbers, in any line ends."""
    contents = {part: hashlib.sha256() for part in OWN}
    for folder in map(Path, _own_folders()):
        for path in sorted(folder.rglob("*")):
            names = path.relative_to(folder).with_suffix("").parts
            part = _part_of(names, folder.name) if path.suffix in (".py", ".toml") else None
            if part is not None:
                text = path.read_bytes().replace(b"\r\n", b"\n")
                contents[part].update(f"{'/'.join(names)}\n{len(text)}\n".encode() + text)
    return {part: content.hexdigest()[:12] for part, content in contents.items()}


def _part_of(names: tuple[str, ...], package: str) -> str | None:
    """The part that a module of admiss or formulations belongs to; None if it computes no numbers."""
    if package == "admiss" and names[0] == "study":
        return "admiss.study" if len(names) == 2 and names[1] in ENGINE else None
    if PRESENTATION.intersection(names) or (package == "admiss" and names[0] in NO_NUMBERS):
        return None
    return package


@cache
def _own_folders() -> tuple[str, ...]:
    specs = [find_spec(package) for package in OWN[:2]]
    return tuple(f"{folder}{os.sep}" for spec in specs if spec for folder in spec.submodule_search_locations or ())


def _is_local(path: str) -> bool:
    """Whether a file is neither installed nor part of Python, of the system or of admiss."""
    return not (path.startswith((*SYSTEM, *_own_folders())) or any(folder in path for folder in INSTALLED))


def _name(path: str) -> str:
    """The name of a file from a folder of ``sys.path``, if it leads there again; otherwise its path."""
    for folder in sorted(map(os.path.abspath, sys.path), key=len, reverse=True):
        name = path.removeprefix(folder + os.sep)
        if name != path and found_file(name) == path:
            return name.replace(os.sep, "/")
    return path


def found_file(name: str) -> str:
    """The file of a name in the folders of ``sys.path``."""
    candidates = (os.path.abspath(os.path.join(folder, name)) for folder in sys.path)
    return next(filter(os.path.isfile, candidates), name)


def declared_files(instance: Any) -> dict[str, Path]:
    """The data files that an instance declares, by their names in the record, which are those of no folder."""
    files = getattr(instance, "files", None)
    if not files or not isinstance(files, str | Path | list | tuple):
        return {}
    named: dict[str, Path] = {}
    for path in map(Path, [files] if isinstance(files, str | Path) else files):
        count = sum(other.name == path.name for other in named.values())
        named[f"data {path.name}" + f" ({count + 1})" * (count > 0)] = path.absolute()
    return named


class Recorder(MetaPathFinder):
    """Records what this process reads from now on."""

    def __init__(self) -> None:
        self._own = own_hashes()
        self._hashes: dict[str, str] = {}  # of files, when they were first read
        self._names: dict[str, str] = {}
        self._written: set[str] = set()  # by this process, before it has read them
        self._declared: set[str] = set()  # by instances
        self._packages: tuple[int, dict[str, str]] = (0, {})
        self._here = threading.local()

    def install(self) -> None:
        """Hear of imports and of opened files, as long as the process lives."""
        sys.meta_path.insert(0, self)
        sys.addaudithook(self._heard)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find what the other finders do; local modules are compiled from their source, not read from a cache."""
        others = (each for each in sys.meta_path if each is not self and hasattr(each, "find_spec"))
        spec = next((spec for finder in others if (spec := finder.find_spec(name, path, target)) is not None), None)
        if spec is not None and spec.has_location and spec.origin is not None and _is_local(spec.origin):
            self._read(os.path.abspath(spec.origin))
            if type(spec.loader) is SourceFileLoader:
                spec.loader = _SourceLoader(name, spec.origin)
        return spec

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        with contextlib.suppress(OSError, ValueError, TypeError):  # an error here would be one of the cell
            path = os.path.abspath(os.fsdecode(arguments[0]))
            if arguments[2] & (os.O_WRONLY | os.O_RDWR):
                self._written.add(path)
            elif _is_local(path) and path not in self._written:
                self._read(path)

    def _read(self, path: str) -> None:
        if path in self._hashes or getattr(self._here, "hashing", False) or not os.path.isfile(path):
            return
        self._here.hashing = True  # opens the file, which is heard of too
        try:
            self._hashes[path] = file_hash(path)
        finally:
            self._here.hashing = False

    def declared(self, instance: Any) -> dict[str, str]:
        """Hash the data files that an instance declares, which count for its cells only."""
        files = declared_files(instance)
        self._declared.update(map(str, files.values()))
        return {name: file_hash(path) for name, path in files.items()}

    def dependencies(self, data: Mapping[str, str]) -> dict[str, str]:
        """What a cell depends on if it ends now, with the declared data of its instance."""
        if self._packages[0] != len(sys.modules):
            self._packages = (len(sys.modules), dict(self._loaded()))
        files = {}
        for path, value in list(self._hashes.items()):
            if path not in self._declared and os.path.exists(path):  # temporary files are gone
                name = self._names[path] = self._names.get(path) or _name(path)
                files[name] = value
        return {**self._packages[1], **files, **data}

    def _loaded(self) -> Iterator[tuple[str, str]]:
        yield "Python", python_version()
        yield "admiss.study", self._own["admiss.study"]
        names = [name.split(".") for name in sys.modules]
        if any(parts[0] in OWN and _part_of((*parts[1:], ""), parts[0]) == parts[0] for parts in names if parts[1:]):
            yield from ((part, self._own[part]) for part in OWN[:2])
        known = _distributions()
        for top in sorted({parts[0] for parts in names}.intersection(known)):
            if any(folder in str(getattr(sys.modules.get(top), "__file__", "")) for folder in INSTALLED):
                yield from ((f"package {each}", version(each)) for each in known[top])


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


class _SourceLoader(SourceFileLoader):
    """Compiles the source: a cached file of the same second and size may be older."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)
