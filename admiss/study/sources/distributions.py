"""Names and versions of the distributions that installed modules belong to, read from their lists of files.

A module without distribution counts by the bytes of its files.
"""

import hashlib
import re
import sys
from functools import cache
from importlib.metadata import PathDistribution
from pathlib import Path

from admiss.study.sources.places import place_of

METADATA = (".dist-info", ".egg-info")
LISTS = ("RECORD", "installed-files.txt", "SOURCES.txt", "top_level.txt")


@cache
def parts_of(module: str) -> dict[str, str]:
    """Versions by ``package NAME`` of the distributions that hold a top-level module, as of the first call."""
    place = place_of(module)
    folders = place.folders or (str(place.file),)
    beginnings = [f"\n{module}{end}".encode() for end in ("/", "\\", ".", "\n", "\r")]
    found = {}
    for holder in dict.fromkeys(Path(folder).parent for folder in folders):
        for folder, files in _lists(holder):
            if any(beginning in files for beginning in beginnings):
                distribution = PathDistribution(folder)
                found[f"package {normalised(distribution.name)}"] = distribution.version
    return found or {f"package {module}": _content(folders)}


def version_part(distribution: str) -> dict[str, str]:
    """The version of a distribution by its name, if it is installed."""
    name = normalised(distribution)
    folder = next((folders[name] for folders in map(_installed, sys.path) if name in folders), None)
    return {} if folder is None else {f"package {name}": PathDistribution(folder).version}


def normalised(name: str) -> str:
    """A name of a distribution in the form in which all spellings are the same.

    Examples
    --------
    >>> normalised("Scikit_Learn")
    'scikit-learn'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _installed(holder: str) -> dict[str, Path]:
    """The folders with the metadata of distributions in a folder, by name."""
    folder = Path(holder)
    if not folder.is_dir():
        return {}
    found = [path for path in folder.iterdir() if path.suffix in METADATA and path.is_dir()]
    return {normalised(path.stem.partition("-")[0]): path for path in sorted(found)}


@cache
def _lists(holder: Path) -> list[tuple[Path, bytes]]:
    """The distributions in a folder, each with its list of files."""
    found = []
    for folder in _installed(str(holder)).values():
        lists = (folder / name for name in LISTS)
        path = next((each for each in lists if each.is_file()), None)
        if path is not None:
            found.append((folder, b"\n" + path.read_bytes() + b"\n"))
    return found


def _content(folders: tuple[str, ...]) -> str:
    text = hashlib.sha256()
    for folder in map(Path, folders):
        files = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.is_file())
        for path in files:
            if "__pycache__" not in path.parts:
                text.update(f"{path.relative_to(folder).as_posix()}\n".encode())
                text.update(path.read_bytes())
    return text.hexdigest()[:12]
