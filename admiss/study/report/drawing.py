"""Parts shared by the figures of a report: panels, legends, and SVG that can be embedded in a page."""

import io
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from admiss.extras import optional_import

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


@dataclass(frozen=True)
class Drawing:
    """A figure with its caption, an alternative text, and its numbers."""

    name: str
    title: str
    caption: str
    alternative: str
    figure: Any
    header: list[str]
    rows: list[list[Any]]


def panels(
    count: int, height: float = 3.1, width: float = 10.0, columns: int | None = None, **options: Any
) -> tuple[Any, list[Any]]:
    """Make a figure with some panels, at most four in a row, without the top and right spines."""
    with optional_import("A figure", "plots"):
        from matplotlib.figure import Figure
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
    """Draw one legend for all panels, beside them."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9, handlelength=3.2)


def inline_svg(drawing: Drawing) -> str:
    """Render the figure as an SVG element: its ids begin with its name, its label is the alternative text."""
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": drawing.name}):
        drawing.figure.savefig(out, format="svg", metadata={"Date": None})
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    root = ElementTree.fromstring(out.getvalue())
    # the metadata hold addresses, and the style would apply to the whole page
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
    _prefix_ids(root, f"{drawing.name}-")
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
