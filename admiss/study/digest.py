"""What a number depends on besides its recipe: the sources, the versions of what they use, and the machine."""

import hashlib
import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from experiments.bench.records import processor

ROOT = Path(__file__).parents[2]
# The engine and the report only carry numbers. Data files of the packages say which data sets there are.
SOURCES = ("formulations", "admiss", "experiments/study.py", "experiments/studies")
ENDINGS = (".py", ".toml")
PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "xgboost",
    "cvxpy",
    "pyomo",
    "highspy",
    "numba",
    "polars",
)


def source_digest(root: Path = ROOT) -> str:
    """The SHA-256 of paths and texts of the sources, in 12 digits; the same whatever the line ends are."""
    found: dict[str, Path] = {}
    for source in SOURCES:
        place = root / source
        for path in [place] if place.suffix else place.rglob("*"):
            if path.suffix in ENDINGS:
                found[path.relative_to(root).as_posix()] = path
    text = hashlib.sha256()
    for name in sorted(found):
        content = found[name].read_bytes().replace(b"\r\n", b"\n")
        text.update(f"{name}\n{len(content)}\n".encode())
        text.update(content)
    return text.hexdigest()[:12]


def versions() -> dict[str, str]:
    """Python, admiss, and what computes for it."""
    found = {"python": platform.python_version(), "admiss": package_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def package_version() -> str:
    """The version of admiss; read from its file, as importing admiss takes seconds."""
    namespace: dict[str, str] = {}
    exec((ROOT / "admiss" / "_version.py").read_text(), namespace)
    return namespace["__version__"]


def machine() -> str:
    """Processor, cores and system."""
    return f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


@cache
def origin() -> dict[str, str]:
    """Version, digest and machine of this process, as they were when it first asked."""
    return {"version": package_version(), "digest": source_digest(), "machine": machine()}
