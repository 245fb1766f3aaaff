"""Figures of fitted trees and of compared partitioners."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from admiss.compare.comparison import Comparison
from admiss.compare.setting import EXACT_TREES, METHODS
from admiss.drawing import EXACT, GREEDY, GREEN, GREY, pyplot
from admiss.estimator.validation import feature_names
from formulations.trees.dynamic_program import Tree

# Largest number of leaves of a tree that is drawn in a comparison.
MOST_LEAVES = 24


def plot_tree(model: Any, ax: Any = None, title: str | None = None, fontsize: float = 7) -> Any:
    """Draw the tree of a fitted finite model.

    Parameters
    ----------
    model : FiniteRegressor, FiniteClassifier or their CV
        With a partitioner that makes trees.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    title : str, optional
        Text above the tree.
    fontsize : float
        Size of the text in nodes, in points.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from admiss import FiniteRegressor
    >>> from admiss.datasets import make_interacting
    >>> from admiss.plots import plot_tree
    >>> data = make_interacting(n=300, d=4, random_state=0)
    >>> ax = plot_tree(FiniteRegressor().fit(data.X_train, data.y_train), title="greedy")
    >>> ax.get_title()
    'greedy'
    """
    check_is_fitted(model)
    fitted = getattr(model, "best_estimator_", model)
    partition = fitted.partition_
    if not partition.is_tree:
        raise ValueError("The leaves of this model do not form a tree: print(model.leaf_table()) lists them.")
    ax = pyplot().figure(figsize=(1.6 * max(3, partition.n_leaves), 4)).gca() if ax is None else ax
    names, leaves = feature_names(fitted), iter(range(partition.n_leaves))
    deepest = max(1, partition.depth)

    def draw(tree: Tree, depth: int) -> float:
        """Draw a subtree, its leaves side by side, and return the position of its root."""
        y = -float(depth)
        if tree is None:
            leaf = next(leaves)
            text = f"leaf {leaf}\n{fitted.leaf_rows_[leaf]:,} rows\ncost {fitted.leaf_costs_[leaf]:.4g}"
            _node(ax, leaf, y, text, GREEN, "round,pad=0.35", fontsize)
            return float(leaf)
        j, observed, missing = tree
        sides = [draw(below, depth + 1) for below in (observed, missing)]
        x = sum(sides) / 2
        for side, word, style in zip(sides, ("observed", "missing"), ("-", "--"), strict=True):
            ax.plot([x, side], [y, y - 1], style, color=GREY, linewidth=1.2, zorder=1)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
            place = x + 0.65 * (side - x), y - 0.65
            ax.text(*place, word, fontsize=fontsize, color=GREY, ha="center", va="center", bbox=box, zorder=2)
        _node(ax, x, y, f"{names[j]}?", GREY, "square,pad=0.35", fontsize)
        return x

    draw(partition.tree, 0)
    ax.set_xlim(-0.7, partition.n_leaves - 0.3)
    ax.set_ylim(-deepest - 0.5, 0.4)
    ax.axis("off")
    if title:
        ax.set_title(title, fontsize=10, parse_math=False)
    return ax


def _node(ax: Any, x: float, y: float, text: str, colour: str, shape: str, fontsize: float) -> None:
    box = {"boxstyle": shape, "facecolor": "white", "edgecolor": colour, "linewidth": 1.4}
    ax.text(x, y, text, ha="center", va="center", fontsize=fontsize, bbox=box, zorder=3, parse_math=False)


def plot_comparison(comparisons: Sequence[Comparison], path: str | Path) -> None:
    """Save a figure with one row per data set: costs, trees close to the optimum, the greedy and the exact tree.

    Parameters
    ----------
    comparisons : sequence of Comparison
        One for each data set, see :func:`~admiss.compare.partitions.compare_partitions`.
    path : path
        The file; its ending says the format (PNG, SVG, PDF).

    Examples
    --------
    >>> import tempfile
    >>> from admiss.compare.partitions import compare_partitions
    >>> from admiss.compare.setting import Setting
    >>> from admiss.datasets import make_interacting
    >>> data = make_interacting(n=300, d=4, random_state=0)
    >>> found = compare_partitions(data.X_train, data.y_train, setting=Setting(max_depth=2, folds=0, references=False))
    >>> path = Path(tempfile.mkdtemp()) / "trees.png"
    >>> plot_comparison([found], path)
    >>> path.exists()
    True
    """
    plt = pyplot()
    exact = [next((name for name in EXACT_TREES if name in c.models), "") for c in comparisons]
    trees = [("greedy", name) for name in exact]
    widths = []
    for names in zip(*trees, strict=True):
        models = [c.models[name] for c, name in zip(comparisons, names, strict=True) if name in c.models]
        leaves = [model.n_leaves_ for model in models if model.n_leaves_ <= MOST_LEAVES]
        widths.append(max(4.0, 1.1 * (max(leaves, default=0) + 0.5)))  # inches, for costs of 14 characters
    figure, axes = plt.subplots(
        len(comparisons),
        4,
        figsize=(9.0 + sum(widths), 4.4 * len(comparisons)),
        dpi=130,
        width_ratios=[5.5, 3.5, *widths],
        squeeze=False,
        layout="constrained",
    )
    for row, comparison, names in zip(axes, comparisons, trees, strict=True):
        _plot_costs(row[0], comparison)
        _plot_near_optimal(row[1], comparison)
        for ax, name in zip(row[2:], names, strict=True):
            if name in comparison.models and comparison.models[name].n_leaves_ > MOST_LEAVES:
                ax.text(0.5, 0.5, f"{comparison.models[name].n_leaves_} leaves: the JSON file lists them", ha="center")
                ax.axis("off")
            elif name in comparison.models:
                model = comparison.models[name]
                kind, certificate = METHODS[name][1].split(",")[0], model.certificate_
                unproven = f" ({certificate.status})" if certificate.status not in ("heuristic", "optimal") else ""
                plot_tree(model, ax, f"{comparison.title}: {kind}{unproven}, cost {certificate.objective:.5g}")
            else:
                ax.axis("off")
    if Path(path).suffix == ".png":
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        FigureCanvasAgg(figure).print_png(path)  # draws once, savefig twice
    else:
        figure.savefig(path)
    plt.close(figure)


def _plot_costs(ax: Any, comparison: Comparison) -> None:
    """Training cost against the number of leaves."""
    styles = {"greedy": ("s--", GREEDY, "greedy tree"), "optimum": ("o-", EXACT, "best tree = proven bound")}
    for name, costs in comparison.curves.items():
        line, colour, label = styles[name]
        ax.plot(range(1, len(costs) + 1), costs, line, color=colour, label=label, markersize=5, markerfacecolor="white")
    for method, marker in (("boxes", "D"), ("groups", "*"), ("split-assign", "x")):
        if method in comparison.models:
            model = comparison.models[method]
            certificate = model.certificate_
            ax.plot(
                [model.n_leaves_], [certificate.objective], marker, color=GREEN, markersize=9, label=METHODS[method][1]
            )
            ax.plot([model.n_leaves_], [max(certificate.bound, 0)], "_", color=GREEN, markersize=14, label="its bound")
    ax.set_xlabel("leaves, at most")
    ax.set_ylabel(f"training cost ({comparison.setting.loss} loss)")
    ax.set_title(f"{comparison.title}: cost and bound", fontsize=10, parse_math=False)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_ylim(0, 1.05 * ax.get_ylim()[1])
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=8, frameon=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _plot_near_optimal(ax: Any, comparison: Comparison) -> None:
    """Number of trees against their cost above the optimum, and the greedy tree among them."""
    near = comparison.near
    if near is None or not near.curve:
        ax.axis("off")
        return
    percents, least, most = zip(*((percent, b.least, b.most) for percent, b in near.curve), strict=True)
    ax.fill_between(percents, least, most, color=EXACT, alpha=0.3, linewidth=0)
    ax.plot(percents, most, color=EXACT, linewidth=1.4)
    if near.better.least and near.greedy_percent <= percents[-1]:
        ax.axvline(near.greedy_percent, color=GREEDY, linestyle="--", linewidth=1.2, label="greedy tree")
        ax.legend(fontsize=8, frameon=False)
    ax.set_yscale("log")
    ax.set_xlim(0, percents[-1])
    ax.set_ylim(bottom=0.8)
    ax.set_xlabel("cost above the optimum, at most, %")
    ax.set_ylabel("number of trees")
    ax.set_title("trees close to the optimum", fontsize=10)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
