"""Parts shared by the figures of a report: sizes and style for print, panels, legends, and files.

Figures are as wide as two columns of a journal, and those with a narrow version as one, with text of 7 to 8 points.
Files have their fonts embedded (PDF) or as outlines (SVG), and the same figure gives the same bytes; in a page, text of
an SVG stays text.
"""

import io
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from admiss.extras import optional_import

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
# Inches.
TWO_COLUMNS, ONE_COLUMN = 7.0, 3.4
# Width of a character and of a handle of a legend, in inches.
CHARACTER, HANDLE = 0.062, 0.5
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "lines.markersize": 4,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
}
# No date: the same figure gives the same file.
FORMS: dict[str, dict[str, Any]] = {
    "svg": {"metadata": {"Date": None}},
    "pdf": {"metadata": {"CreationDate": None}},
    "png": {"dpi": 200},
}


@dataclass(frozen=True)
class Drawing:
    """A figure with its caption, an alternative text, and its numbers.

    ``narrow`` is the same figure with its panels below each other, for one column and for phones. The page folds a
    figure of a further ``metric`` away.
    """

    name: str
    title: str
    caption: str
    alternative: str
    figure: Any
    header: list[str]
    rows: list[list[Any]]
    narrow: Any = None
    metric: str = ""


def print_style(**further: Any) -> AbstractContextManager[None]:
    """The style of figures, within which they are both made and drawn."""
    with optional_import("A figure", "plots"):
        import matplotlib
    rc: Any = {**STYLE, **further}
    return matplotlib.rc_context(rc)


def panels(
    count: int, height: float = 2.2, width: float = TWO_COLUMNS, columns: int | None = None, **options: Any
) -> tuple[Any, list[Any]]:
    """Make a figure with some panels, at most four in a row, without the top and right spines."""
    with optional_import("A figure", "plots"):
        from matplotlib.figure import Figure
    columns = columns or (count if count <= 3 else 2 if count == 4 else 4 if count > 6 else 3)
    lines = -(-count // columns)
    figure = Figure(figsize=(width, height * lines + 0.4), layout="constrained")
    axes = list(figure.subplots(lines, columns, squeeze=False, **options).flat)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#e4e4e4", linewidth=0.5)
        ax.set_axisbelow(True)
    for ax in axes[count:]:
        ax.axis("off")
    return figure, axes[:count]


def legend(figure: Any, axes: Iterable[Any]) -> None:
    """Draw one legend for all panels, below them; the figure becomes higher by its lines."""
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if not entries:
        return
    width, height = figure.get_size_inches()
    columns = max(1, int((width - 0.2) // (CHARACTER * max(map(len, entries)) + HANDLE)))
    lines = -(-len(entries) // columns)
    figure.set_size_inches(width, height + 0.16 * lines)
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=-(-len(entries) // lines),
                  frameon=False, handlelength=3.0, columnspacing=1.2)  # fmt: skip


def figure_files(drawing: Drawing) -> dict[str, bytes]:
    """The figure as SVG, PDF and PNG, and its narrow version as SVG and PDF, by file name."""
    figures = {drawing.name: (drawing.figure, FORMS)}
    if drawing.narrow is not None:
        vector = {form: options for form, options in FORMS.items() if form != "png"}
        figures[f"{drawing.name}-one-column"] = (drawing.narrow, vector)
    return {
        f"{name}.{form}": _saved(figure, name, form, **options)
        for name, (figure, forms) in figures.items()
        for form, options in forms.items()
    }


def _saved(figure: Any, salt: str, form: str, text: str = "path", **options: Any) -> bytes:
    out = io.BytesIO()
    with print_style(**{"svg.hashsalt": salt, "svg.fonttype": text}):
        figure.savefig(out, format=form, facecolor="white", **options)
    return out.getvalue()


def inline_svg(drawing: Drawing, figure: Any, suffix: str = "") -> str:
    """Render a figure as an SVG element: its ids begin with the name, its label is the alternative text."""
    name = f"{drawing.name}{suffix}"
    content = _saved(figure, name, "svg", text="none", **FORMS["svg"]).decode()
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    root = ElementTree.fromstring(content)
    # the metadata hold addresses, and the style would apply to the whole page
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
    _prefix_ids(root, f"{name}-")
    root.set("role", "img")
    # not a title element, which browsers show at the pointer
    root.set("aria-label", drawing.alternative)
    return ElementTree.tostring(root, encoding="unicode")


def _prefix_ids(root: ElementTree.Element, prefix: str) -> None:
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "id":
                element.set(name, prefix + value)
            elif name in ("href", f"{{{XLINK}}}href") and value.startswith("#"):
                element.set(name, f"#{prefix}{value[1:]}")
            elif "url(#" in value:
                element.set(name, value.replace("url(#", f"url(#{prefix}"))
