"""Colours, line styles and matplotlib, shared by all figures.

The colours are those of Okabe and Ito, which are distinguishable for everyone; markers and lines repeat the distinction
without colour.
"""

from typing import Any

from admiss.extras import optional_import

BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
AMBER = "#E69F00"
BLACK = "#000000"
GREY = "#555555"
GRID = "#E4E4E4"
WHITE = "#FFFFFF"
# Lengths of strokes and gaps, in widths of the line.
DASHED = (0, (4, 2))
LONG = (0, (8, 2))
DASH_DOT = (0, (6, 2, 1, 2))
DASH_DOTS = (0, (6, 2, 1, 2, 1, 2))
DOTTED = (0, (1, 1.5))
# Colour, marker and line.
Style = tuple[str, str, Any]
# One colour per role in all figures; OTHER are partitions that are not trees.
GREEDY = ORANGE
EXACT = BLUE
OTHER = GREEN
REFERENCE = BLACK
ROLES: dict[str, Style] = {
    "greedy": (GREEDY, "s", DASHED),
    "exact": (EXACT, "o", "-"),
    "reference": (REFERENCE, "X", DASH_DOT),
}
STYLES: tuple[Style, ...] = (
    (BLUE, "o", "-"),
    (ORANGE, "s", DASHED),
    (PURPLE, "P", DASH_DOT),
    (AMBER, "D", LONG),
    (SKY, "v", DASH_DOTS),
    (GREEN, "^", DASHED),
    (BLACK, "X", DASH_DOT),
)
LINE_STYLES: tuple[Style, ...] = (*STYLES, (GREY, "*", DOTTED))


def pyplot() -> Any:
    """Import ``matplotlib.pyplot``; without it, raise one sentence with the command that installs it."""
    with optional_import("A figure", "plots"):
        import matplotlib.pyplot as plt
    return plt
