"""What figures share: how methods look, panels, what a figure says in words, and SVG that can stand inside a page.

Colours are those of Okabe and Ito, which everyone can tell apart; markers and lines say the same without colour. A
method looks the same in all figures.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from admiss.bounds.figures import AMBER, BLACK, DASH_DOT, DASH_DOTS, DASHED, LONG, PURPLE, SKY
from admiss.bounds.figures import STYLES as BOUND_STYLES
from admiss.drawing import BLUE, GREEN, GREY, NEEDS_MATPLOTLIB, ORANGE

DOTTED = (0, (1, 1.5))
Style = tuple[str, str, Any]
STYLES: tuple[Style, ...] = (*BOUND_STYLES, (GREY, "*", DOTTED))
LOOKS: dict[str, Style] = {
    "Adaptive LR - best": (BLUE, "o", "-"),
    "Joint - best": (ORANGE, "s", DASHED),
    "Mean - best": (BLACK, "X", "-"),
    "mice - best": (PURPLE, "P", DASH_DOT),
    "CART MIA": (SKY, "v", DASH_DOTS),
    "RF MIA": (GREEN, "^", DASHED),
    "XGBoost": (AMBER, "D", LONG),
    "Complete features - best": (SKY, "<", DOTTED),
    "Oracle - best": (GREY, "*", DOTTED),
    "Affine intercept": (SKY, "v", DASHED),
    "Affine": (GREEN, "^", DASH_DOT),
    "Finite": (ORANGE, "D", LONG),
    "greedy": (ORANGE, "s", DASHED),
    "exact": (BLUE, "o", "-"),
    "none": (BLACK, "X", DASH_DOT),
}
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


@dataclass(frozen=True)
class Drawing:
    """A figure with what it says in words, and its numbers."""

    name: str
    title: str
    caption: str
    alternative: str
    figure: Any
    header: list[str]
    rows: list[list[Any]]


def looks(names: Sequence[str]) -> dict[str, Style]:
    """A style for each name; names that have none of their own get those that are free."""
    taken = {LOOKS[name][:2] for name in names if name in LOOKS}
    free = [style for style in STYLES if style[:2] not in taken] or list(STYLES)
    others = [name for name in names if name not in LOOKS]
    return {name: LOOKS[name] for name in names if name in LOOKS} | {
        name: free[place % len(free)] for place, name in enumerate(others)
    }


def panels(
    count: int, height: float = 3.1, width: float = 10.0, columns: int | None = None, **options: Any
) -> tuple[Any, list[Any]]:
    """A figure with some panels, at most four in a line, and its axes without the upper and the right line."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(NEEDS_MATPLOTLIB) from error
    columns = columns or (count if count <= 3 else 2 if count == 4 else 4)
    lines = -(-count // columns)
    figure = Figure(figsize=(width, height * lines + 0.5), layout="constrained")
    axes = list(figure.subplots(lines, columns, squeeze=False, **options).flat)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#e4e4e4", linewidth=0.6)
        ax.set_axisbelow(True)
    for ax in axes[count:]:
        ax.axis("off")
    return figure, axes[:count]


def legend(figure: Any, ax: Any) -> None:
    """One legend for all panels, beside them."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9, handlelength=3.2)


def inline_svg(drawing: Drawing) -> str:
    """The figure as an SVG element whose ids begin with its name, with the alternative text as its label."""
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": drawing.name}):
        drawing.figure.savefig(out, format="svg", metadata={"Date": None})
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    root = ElementTree.fromstring(out.getvalue())
    # the metadata are addresses, and the style would hold for the whole page
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
    _prefix_ids(root, f"{drawing.name}-")
    root.set("role", "img")
    # not a title element: browsers show that beside the pointer
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
