"""The look of the gallery's pictures: legible at a phone's width, colours that all can tell apart (Okabe and Ito)."""

from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")


def apply(gallery_conf: dict[str, Any], file: str) -> None:
    """Set the defaults of matplotlib before each page, after sphinx-gallery has reset them."""
    import matplotlib.pyplot as plt
    from cycler import cycler

    plt.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=COLOURS),
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": "medium",
            "axes.titleweight": "bold",
            "figure.figsize": (5.6, 4.0),
            "font.size": 11,
            "grid.color": "#dddddd",
            "legend.frameon": False,
            "lines.linewidth": 1.8,
        }
    )
