"""Colours and matplotlib, as all figures use them.

The colours are those of Okabe and Ito, which everyone can tell apart; markers, lines and words say the same without
colour.
"""

from typing import Any

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#555555"
NEEDS_MATPLOTLIB = "Figures need matplotlib: run 'pip install admiss[plots]', or 'pip install matplotlib'."


def pyplot() -> Any:
    """matplotlib.pyplot, or one sentence on how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(NEEDS_MATPLOTLIB) from error
    return plt
