"""The sources of cells: what computes them, wherever it lies, and whether it has changed since."""

from admiss.study.sources.cell_sources import CellSources as CellSources
from admiss.study.sources.cell_sources import Sources as Sources
