"""Figures of stored measurements on logarithmic axes: no measurement is typed into the documentation.

    ```{stored-figure} bench/waits.csv
    :x: n; d
    :y: admiss; linear; LightGBM
    :unit: CPU seconds
    ```

draws a panel for each column of ``:x:``, and in it the points of each column of ``:y:`` (``name`` or
``name = heading``). ``:where:`` keeps rows as in :mod:`stored_results`. Cells may have a mark (~) and separators of
thousands; cells without a number are left out.
"""

import io
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from matplotlib.figure import Figure
from sphinx.application import Sphinx
from stored_results import Row, StoredTable, kept, stored_rows

from admiss.drawing import BLUE, GREEN, GRID, ORANGE, PURPLE

# Inches of a panel: two fill the column of a page.
WIDTH = 3.7
STYLES = [(BLUE, "o"), (ORANGE, "s"), (GREEN, "D"), (PURPLE, "^")]


class StoredFigure(StoredTable):
    """Points of columns against columns."""

    option_spec: ClassVar[dict[str, Any]] = dict.fromkeys(("where", "x", "y", "unit"), directives.unchanged_required)

    def run(self) -> list[nodes.Node]:
        try:
            rows = [row for name in self.arguments for row in stored_rows(self.env, name)]
            drawing = drawn(
                kept(rows, self._list("where", ";")), self._list("x", ";"), self._list("y", ";"), self.options["unit"]
            )
        except (KeyError, ValueError, OSError) as error:
            raise self.error(f"{self.arguments[0]}: {error}") from None
        return [nodes.raw("", drawing, format="html")]


def drawn(rows: list[Row], x: list[str], y: list[str], unit: str) -> str:
    """The figure as SVG."""
    figure = Figure(figsize=(WIDTH * len(x), 3.6), layout="constrained")
    panels = figure.subplots(1, len(x), sharey=True, squeeze=False)[0]
    for panel, across in zip(panels, x, strict=True):
        for (colour, marker), column in zip(STYLES, y, strict=False):
            name, _, heading = column.partition(" = ")
            points = [(number(row[across]), number(row[name])) for row in rows]
            shown = [(place, value) for place, value in points if place and value]
            if not shown:
                raise ValueError(f"no row has numbers in {across!r} and {name!r}.")
            panel.plot(*zip(*shown, strict=True), marker, color=colour, label=heading or name, alpha=0.7, markersize=5)
        panel.set(xscale="log", yscale="log", xlabel=across)
        panel.xaxis.set_minor_formatter("")
        panel.grid(color=GRID)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(unit)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(y), frameon=False)
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True)
    content = file.getvalue()[file.getvalue().index("<svg") :]
    # text and axes have the colour of the page's text, light or dark
    content = content.replace("#000000", "currentColor")
    return content.replace("<svg ", '<svg style="max-width: 100%; height: auto; fill: currentColor" ', 1)


def number(cell: str) -> float | None:
    """The positive number of a cell, None if it has none."""
    try:
        return float(cell.lstrip("~").replace(",", ""))
    except ValueError:
        return None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("stored-figure", StoredFigure)
    return {"parallel_read_safe": True}
