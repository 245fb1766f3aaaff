"""Draws docs/_static/frontier.png, the picture of the README: ``python docs/frontier.py``.

The file carries the costs that it shows, which a test compares with those of the present code.
"""

import json
from pathlib import Path

import matplotlib

from admiss.compare.partitions import compare_partitions
from admiss.compare.setting import Setting
from admiss.datasets import make_interacting, make_synthetic
from admiss.drawing import EXACT, GREEDY, pyplot

PICTURE = Path(__file__).parent / "_static" / "frontier.png"
LINES = {"greedy": ("s--", GREEDY, "greedy splitting"), "optimum": ("o-", EXACT, "proven optimum")}


def frontier_costs() -> dict[str, dict[str, list[float]]]:
    """For each data set the cost of greedy and the optimum against the number of leaves, in % of no split."""
    setting = Setting(max_depth=3, max_leaves=8, folds=0, references=False)
    data = {
        "patterns interact": make_interacting(n=1000, random_state=0),
        "missing completely at random": make_synthetic(n=1000, mechanism="mcar", missing_fraction=0.3, random_state=0),
    }
    costs = {}
    for title, rows in data.items():
        curves = compare_partitions(rows.X_train, rows.y_train, setting=setting).curves
        no_split = curves["optimum"][0]
        costs[title] = {name: [round(100 * cost / no_split, 4) for cost in curves[name]] for name in LINES}
    return costs


def draw(path: Path) -> None:
    """Draw both data sets side by side on one axis from 0."""
    matplotlib.use("agg")
    plt = pyplot()
    costs = frontier_costs()
    figure, axes = plt.subplots(1, len(costs), figsize=(9.9, 3.9), dpi=100, layout="constrained", sharey=True)
    for ax, (title, curves) in zip(axes, costs.items(), strict=True):
        for name, (line, colour, label) in LINES.items():
            ax.plot(range(1, len(curves[name]) + 1), curves[name], line, color=colour, label=label)
        ax.set(title=title, xlabel="leaves, at most", ylim=(0, 105))
        ax.grid(color="#dddddd")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("training cost, % of no split")
    axes[0].legend(loc="lower left", frameon=False)
    figure.savefig(path, metadata={"Description": json.dumps(costs)})


if __name__ == "__main__":
    draw(PICTURE)
