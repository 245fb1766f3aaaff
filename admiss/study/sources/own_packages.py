"""The part of admiss and formulations: a hash of all their files that compute numbers, and the packages they need.

Rooms of admiss that compare, print or carry numbers do not count; modules and folders called ``tables`` or ``figures``
never do. The packages are found by their import names, in a checkout or installed. Line ends do not matter.
"""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from admiss.study.sources.distributions import version_part
from admiss.study.sources.places import place_of

PACKAGES = ("formulations", "admiss")
NO_NUMBERS = {
    "_version", "atomic_write", "cli", "compare", "dask_connection", "drawing", "extras", "plots", "study",
    "terminal", "testing", "versions", "web_page",
}  # fmt: skip
PRESENTATION = {"figures"}
# Data files of the packages list the data sets.
SUFFIXES = (".py", ".toml")
# Installed with admiss.
REQUIREMENTS = ("numpy", "scipy", "scikit-learn", "cvxpy", "pyomo", "highspy", "numba", "xgboost", "narwhals")


@cache
def own_parts() -> dict[str, str]:
    """Hashes of both packages and versions of what they need, as of the first call."""
    parts = {package: package_hash(package) for package in PACKAGES}
    for requirement in REQUIREMENTS:
        parts |= version_part(requirement)
    return parts


def package_hash(package: str) -> str:
    """SHA-256 of the names and texts of the files of a package that count, in 12 digits."""
    text = hashlib.sha256()
    for name, path in sorted(_files(package)):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        text.update(f"{name}\n{len(content)}\n".encode())
        text.update(content)
    return text.hexdigest()[:12]


def _files(package: str) -> Iterator[tuple[str, Path]]:
    for folder in map(Path, place_of(package).folders or ()):
        for path in folder.rglob("*"):
            inside = path.relative_to(folder)
            if path.suffix in SUFFIXES and _counts(package, inside.with_suffix("").parts):
                yield inside.as_posix(), path


def _counts(package: str, parts: tuple[str, ...]) -> bool:
    return not PRESENTATION.intersection(parts) and not (package == "admiss" and parts[0] in NO_NUMBERS)
