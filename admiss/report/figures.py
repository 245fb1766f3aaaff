"""Figures of pages and of print: size and style, panels, legends, files, and SVG that follows light and dark.

Figures are as wide as two columns of a journal, and those with a narrow version as one, with text of 7 to 8 points.
Files have their fonts embedded (PDF) or as outlines (SVG), and the same figure gives the same bytes. In a page the text
of an SVG stays text, and its colours are variables of the style sheet.
"""

import io
import re
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from html import escape
from typing import Any

from admiss import drawing
from admiss.extras import optional_import

# Inches.
TWO_COLUMNS, ONE_COLUMN = 7.0, 3.4
# Ending of the names of narrow versions.
NARROW = "-one-column"
# Width of a character and of a handle of a legend in inches, at the size of this style.
CHARACTER, HANDLE = 0.062, 0.5
# Characters in half of a figure.
LONGEST = int(TWO_COLUMNS / 2 / CHARACTER)
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
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
# Colours that the style sheet has as variables.
VARIABLES = ("blue", "orange", "green", "grey", "purple", "sky", "amber", "black", "white", "grid")
COLOURS = {getattr(drawing, name.upper()).lower(): f"var(--{name})" for name in VARIABLES}


@dataclass(frozen=True)
class Drawing:
    """A figure with its caption and its numbers.

    ``narrow`` makes the same figure for one column of print and for phones. A page folds a figure of a further
    ``metric`` away.
    """

    name: str
    title: str
    caption: str
    figure: Any
    header: list[str]
    rows: list[list[Any]]
    narrow: Callable[[], Any] | None = None
    metric: str = ""

    def svg(self, figure: Any = None, salt: str = "") -> str:
        """The figure as an element of a page, or another one of the same numbers."""
        options: dict[str, Any] = {"text": "none", "bbox_inches": "tight", **FORMS["svg"]}
        content = _saved(figure or self.figure, f"{self.name}{salt}", "svg", **options).decode()
        content = content[content.index("<svg") :]
        # metadata and namespaces hold addresses, the style would apply to the whole page, and names of groups repeat
        content = re.sub(
            r"<metadata>.*?</metadata>|<style.*?</style>| xmlns(:xlink)?=\"[^\"]*\"", "", content, flags=re.S
        )
        content = re.sub(r"<g id=\"[^\"]*\"", "<g", content)
        content = content.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")  # about as wide
        content = re.sub(r"#[0-9a-f]{6}\b", lambda found: COLOURS.get(found[0], found[0]), content)
        # shown larger than in print, and not so small that it cannot be read
        points = float(content.partition('width="')[2].partition("pt")[0])
        size = f"max-width: {1.3 * points:.0f}pt; min-width: {0.85 * points:.0f}pt"
        # not a title element, which browsers show at the pointer
        words = escape(f"{self.title}. {'Its numbers are in the table below.' if self.rows else self.caption}")
        label = f'role="img" aria-label="{words}" style="{size}"'
        return content.replace("<svg ", f"<svg {label} ", 1)

    def phone_svg(self) -> str:
        """The narrow version as an element of a page; empty without one."""
        return self.svg(self._narrow(), NARROW) if self.narrow else ""

    def _narrow(self) -> Any:
        with print_style():
            return self.narrow() if self.narrow else None

    def files(self) -> dict[str, bytes]:
        """The figure as SVG, PDF and PNG, and its narrow version as SVG and PDF, by file name."""
        files = {f"{self.name}.{form}": _saved(self.figure, self.name, form, **FORMS[form]) for form in FORMS}
        if self.narrow is not None:
            name, figure = f"{self.name}{NARROW}", self._narrow()
            files |= {f"{name}.{form}": _saved(figure, name, form, **FORMS[form]) for form in FORMS if form != "png"}
        return files


def print_style(**further: Any) -> AbstractContextManager[None]:
    """The style of figures, within which they are both made and drawn."""
    with optional_import("A figure", "plots"):
        import matplotlib
    rc: Any = {**STYLE, **further}
    return matplotlib.rc_context(rc)


def _saved(figure: Any, salt: str, form: str, text: str = "path", **options: Any) -> bytes:
    out = io.BytesIO()
    with print_style(**{"svg.hashsalt": salt, "svg.fonttype": text}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # browsers have other fonts
        figure.savefig(out, format=form, facecolor="none" if text == "none" else "white", **options)
    return out.getvalue()


def panels(
    count: int, height: float = 2.2, width: float = TWO_COLUMNS, columns: int | None = None, **options: Any
) -> tuple[Any, list[Any]]:
    """Make a figure with some panels, at most four in a row."""
    with optional_import("A figure", "plots"):
        from matplotlib.figure import Figure
    columns = columns or (count if count <= 3 else 2 if count == 4 else 4 if count > 6 else 3)
    lines = -(-count // columns)
    figure = Figure(figsize=(width, height * lines + 0.4), layout="constrained")
    axes = list(figure.subplots(lines, columns, squeeze=False, **options).flat)
    for ax in axes[:count]:
        ax.grid(color=drawing.GRID, linewidth=0.5)
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
    figure.legend(
        entries.values(),
        entries.keys(),
        loc="outside lower center",
        ncols=-(-len(entries) // lines),
        handlelength=3.0,
        columnspacing=1.2,
    )


def method_axis(ax: Any, methods: Iterable[str]) -> None:
    """Name methods on the vertical axis, the first one on top; longer names than half of a figure are abridged."""
    names = [name if len(name) <= LONGEST else f"{name[: LONGEST - 3]} .." for name in methods]
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
