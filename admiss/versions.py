"""Versions of the packages that a result may depend on, and the processor that computed it."""

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "admiss", "numpy", "scipy", "scikit-learn", "cvxpy", "clarabel", "pyomo", "highspy", "numba", "xgboost", "narwhals",
    "pandas", "polars", "matplotlib", "python-flint",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Versions by package, without importing any of them.

    Examples
    --------
    >>> versions()["scikit-learn"] != "not installed"
    True
    """
    known = {"python": platform.python_version(), "platform": platform.platform()}
    for package in PACKAGES:
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            known[package] = "not installed"
    return known


def show_versions() -> None:
    """Print the versions, for bug reports and beside results.

    Examples
    --------
    >>> show_versions()  # doctest: +ELLIPSIS
    python ...
    """
    for name, value in versions().items():
        print(f"{name:<13} {value}")


def how_to_report(command: str) -> str:
    """The line that comes before the traceback of an unexpected error of a command."""
    known = ", ".join(f"{name} {value}" for name, value in versions().items() if value != "not installed")
    return f"{command}: unexpected error: please report it with the lines below and these versions: {known}"


def processor() -> str:
    """Model name of the processor, or its architecture if the system does not report a name."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        if models:
            return models[0]
    return platform.processor() or platform.machine()
