"""Colours, line styles and matplotlib, shared by all figures.

The colours are those of Okabe and Ito, which are distinguishable for everyone; markers and lines repeat the distinction
without colour.
"""

from typing import Any

from admiss.extras import optional_import

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#555555"
PURPLE, SKY, AMBER, BLACK = "#CC79A7", "#56B4E9", "#E69F00", "#000000"
WHITE, GRID = "#FFFFFF", "#E4E4E4"
DASHED, LONG, DASH_DOT, DASH_DOTS = (0, (4, 2)), (0, (8, 2)), (0, (6, 2, 1, 2)), (0, (6, 2, 1, 2, 1, 2))
DOTTED = (0, (1, 1.5))
# Colour, marker and line.
Style = tuple[str, str, Any]
# One colour per role in all figures; OTHER are partitions that are not trees.
GREEDY, EXACT, OTHER, REFERENCE = ORANGE, BLUE, GREEN, BLACK
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
