"""Provenance of a number besides its recipe: a digest of the sources, the version of admiss, and the machine.

The digest covers what computes numbers: ``formulations``, ``admiss`` without the rooms of ``NO_NUMBERS``, and the
packages that hold the methods and instances of the study. Modules and folders called ``tables`` or ``figures`` never
count: editing a table leaves the cells valid. Packages are found by their import names, in a checkout or installed.
"""

import hashlib
import os
import platform
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from admiss._version import __version__
from admiss.study.study import Study
from admiss.versions import processor

PACKAGES = ("formulations", "admiss")
# Rooms of admiss that compare, print or carry numbers. Only the seeds of cells come from the engine.
NO_NUMBERS = {
    "_version", "atomic_write", "cli", "compare", "demo", "drawing", "extras", "plots", "study", "terminal", "testing",
    "versions",
}  # fmt: skip
SEEDS = ("study", "study")
PRESENTATION = {"figures", "tables"}
# Data files of the packages list the data sets.
SUFFIXES = (".py", ".toml")


def study_sources(study: Study, scales: Iterable[str]) -> tuple[str, ...]:
    """Names of the packages, besides admiss, that hold the methods and instances of a study.

    Of a module ``a.b.c.d`` this is ``a.b``, since studies in neighbouring packages share methods; a module that is not
    inside a package stands for itself.
    """
    modules = {
        holder.__module__
        for scale in scales
        for product in study.products(scale)
        for holder in (*(method.run for method in product.methods), *map(type, product.instances))
    }
    parts = [module.split(".") for module in modules]
    return tuple(sorted({".".join(names[:-2]) or names[0] for names in parts if names[0] not in PACKAGES}))


def source_digest(sources: tuple[str, ...] = ()) -> str:
    """SHA-256 of the paths and texts of admiss and further sources, in 12 digits; line ends do not matter."""
    files = {name: path for source in (*PACKAGES, *sources) for name, path in _files(source)}
    text = hashlib.sha256()
    for name in sorted(files):
        content = files[name].read_bytes().replace(b"\r\n", b"\n")
        text.update(f"{name}\n{len(content)}\n".encode())
        text.update(content)
    return text.hexdigest()[:12]


def _files(source: str) -> Iterator[tuple[str, Path]]:
    """Names and paths of the files of a package or module that count; none if it cannot be imported here."""
    try:
        spec = find_spec(source)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return
    if spec.submodule_search_locations is None:
        yield source, Path(str(spec.origin))
        return
    for folder in map(Path, spec.submodule_search_locations):
        for path in folder.rglob("*"):
            inside = path.relative_to(folder)
            if path.suffix in SUFFIXES and _counts(source, inside.with_suffix("").parts):
                yield f"{source}/{inside.as_posix()}", path


def _counts(source: str, parts: tuple[str, ...]) -> bool:
    if source == "admiss" and parts[0] in NO_NUMBERS:
        return parts == SEEDS
    return not PRESENTATION.intersection(parts)


def machine() -> str:
    """Processor, cores and system."""
    return f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


@cache
def origin(sources: tuple[str, ...] = ()) -> dict[str, str]:
    """Version, digest and machine of this process, as of the first call."""
    return {"version": __version__, "digest": source_digest(sources), "machine": machine()}
