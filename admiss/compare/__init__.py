"""Comparisons of adaptivity classes and of partitioners on one data set."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from admiss.compare.classes import compare_classes as compare_classes
    from admiss.compare.comparison import Comparison as Comparison
    from admiss.compare.partitions import compare_partitions as compare_partitions
    from admiss.compare.setting import METHODS as METHODS
    from admiss.compare.setting import Setting as Setting
    from admiss.compare.statistics import compare_statistics as compare_statistics

# Imported on first use: a comparison of classes needs no partitions.
_LATER = {
    "METHODS": "admiss.compare.setting",
    "Comparison": "admiss.compare.comparison",
    "Setting": "admiss.compare.setting",
    "compare_classes": "admiss.compare.classes",
    "compare_partitions": "admiss.compare.partitions",
    "compare_statistics": "admiss.compare.statistics",
}
__all__ = [*_LATER]

if not TYPE_CHECKING:  # type checkers would take every unknown name for an attribute

    def __getattr__(name: str) -> Any:
        if name in _LATER:
            return getattr(import_module(_LATER[name]), name)
        raise AttributeError(f"module 'admiss.compare' has no attribute {name!r}")
