"""Figures of fitted trees and of compared partitioners."""

from admiss.compare.figures import plot_comparison as plot_comparison
from admiss.compare.figures import plot_tree as plot_tree

__all__ = ["plot_comparison", "plot_tree"]
