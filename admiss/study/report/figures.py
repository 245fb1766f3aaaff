"""All figures of a study, drawn from its table; each only where its columns are."""

from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from admiss.study.report.curves import curve_drawings
from admiss.study.report.dots import dot_drawings
from admiss.study.report.drawing import Drawing
from admiss.study.report.rows import scored_rows
from admiss.study.study import Study
from experiments.studies.partitions.figures import partition_drawings


def drawings(rows: pl.DataFrame) -> list[Drawing]:
    """The figures of scored rows, with what they say in words."""
    if not rows.height:
        return []
    return [*curve_drawings(rows), *partition_drawings(rows), *dot_drawings(rows)]


def figures(table: pl.DataFrame, study: Study) -> dict[str, Any]:
    """The matplotlib figures of a study by name."""
    return {drawing.name: drawing.figure for drawing in drawings(scored_rows(table, study))}


def save_figures(table: pl.DataFrame, study: Study, folder: Path, form: str = "png") -> list[Path]:
    """Write the figures, and that of the study's own function ``plot``, into a folder, as PNG or SVG."""
    import matplotlib

    if form not in ("png", "svg"):
        raise ValueError(f"Unknown form {form!r} of figures: choose png or svg.")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, figure in figures(table, study).items():
        paths.append(folder / f"{name}.{form}")
        with matplotlib.rc_context({"svg.hashsalt": name}):
            # without a date, so that the same table gives the same file
            metadata = {"Date": None} if form == "svg" else None
            figure.savefig(paths[-1], dpi=130, facecolor="white", metadata=metadata)
    plot = getattr(import_module(f"experiments.studies.{study.name.replace('-', '_')}"), "plot", None)
    if plot is not None:
        paths.append(folder / f"{study.name}.{form}")
        plot(table, paths[-1])
    return paths
