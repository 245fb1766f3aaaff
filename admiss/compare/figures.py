"""Figures of fitted trees and of compared partitioners, for pages and for files.

Costs are in per cent of the cost without a split, on axes that begin at 0.

A tree has its root on the left and its leaves on the right, below each other in their order, so that many leaves make a
drawing high and not small. A solid branch is for observed values, a dashed one for missing values.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from math import isfinite, nan
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from admiss.compare.comparison import Comparison
from admiss.compare.near_optimal import NearOptimal
from admiss.compare.setting import EXACT_TREES, METHODS
from admiss.drawing import EXACT, GREEDY, GREEN, GREY, OTHER, ROLES, WHITE, pyplot
from admiss.estimator.validation import feature_names
from admiss.report.figures import CHARACTER, Drawing, panels, print_style
from formulations.trees.dynamic_program import Tree, leaves_of

# Inches of a leaf, between leaves, and of the word at a branch, at 7 points.
LEAF, ROW, BRANCH = 1.75, 0.45, 0.62
# Largest number of leaves of a tree that is drawn.
MOST_LEAVES = 24


def no_split_cost(comparison: Comparison) -> float:
    """Training cost of one leaf, NaN if it is not known."""
    costs = [curve[0] for curve in comparison.curves.values() if curve]
    if "none" in comparison.models:
        costs.append(float(comparison.models["none"].certificate_.objective))
    return next((cost for cost in costs if isfinite(cost) and cost > 0), nan)


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
    if not fitted.partition_.is_tree:
        raise ValueError("The leaves of this model do not form a tree: print(model.leaf_table()) lists them.")
    ax = pyplot().figure(figsize=_tree_size(fitted)).gca() if ax is None else ax
    _TreeDrawing(ax, fitted, GREEN, float(fitted.leaf_costs_.sum()), fontsize).draw()
    if title:
        ax.set_title(title, fontsize=10, parse_math=False)
    return ax


def _split_name(name: str) -> str:
    """A name in at most two lines that fit into a split; letters beyond ASCII may be twice as wide.

    Examples
    --------
    >>> _split_name("age"), _split_name("household_income_total"), _split_name(" ")
    ('age', 'household_inc\\nome_total', '(no name)')
    """
    return "\n".join(wrap(name, 13 if name.isascii() else 7, max_lines=2, placeholder="…")) or "(no name)"


def _split_width(model: Any) -> float:
    """Inches of the widest split."""
    lines = "\n".join(map(_split_name, feature_names(model))).splitlines()
    return 0.15 + CHARACTER * max(len(line) * (1 if line.isascii() else 2) for line in lines)


def _tree_size(model: Any) -> tuple[float, float]:
    return (_split_width(model) + BRANCH) * model.partition_.depth + LEAF, ROW * model.n_leaves_ + 0.3


@dataclass
class _TreeDrawing:
    """The tree of a model; costs are in per cent of ``whole``, and leaves of ``shared`` are grey.

    Splits of depth k are at x = k, and a unit of x is a split with the word at its branch.
    """

    ax: Any
    model: Any
    colour: str
    whole: float
    fontsize: float = 7
    shared: Collection[int] = ()

    def draw(self) -> None:
        """Draw everything."""
        partition = self.model.partition_
        self.names = feature_names(self.model)
        self.last = partition.depth
        self.step = _split_width(self.model) + BRANCH
        self.half = _split_width(self.model) / 2 / self.step
        self._draw(partition.tree, 0, 0)
        self.ax.set_xlim(-self.half, self.last - self.half + LEAF / self.step)
        self.ax.set_ylim(-partition.n_leaves + 0.45, 0.55)
        self.ax.axis("off")

    def _draw(self, tree: Tree, depth: int, first: int) -> float:
        """Draw a subtree whose first leaf is given, and return the height of its root."""
        if tree is None:
            self._draw_leaf(first)
            return -float(first)
        j, observed, missing = tree
        second = first + len(leaves_of(observed))
        upper = self._draw(observed, depth + 1, first)
        lower = self._draw(missing, depth + 1, second)
        y = (upper + lower) / 2
        joint = depth + self.half + 0.06 / self.step
        self.ax.plot([depth, joint], [y, y], color=GREY, linewidth=1, zorder=1)
        for end, below, word, line in ((upper, observed, "observed", "-"), (lower, missing, "missing", "--")):
            x = depth + 1 if below else self.last - self.half
            self.ax.plot([joint, joint, x], [y, end, end], line, color=GREY, linewidth=1, zorder=1)
            self.ax.annotate(
                word,
                (joint, end),
                xytext=(2, 1.5 if end > y else -2.5),
                textcoords="offset points",
                va="bottom" if end > y else "top",
                fontsize=self.fontsize - 0.5,
                color=GREY,
            )
        self._draw_node(depth, y, _split_name(self.names[j]), GREY, "square,pad=0.35", ha="center")
        return y

    def _draw_leaf(self, leaf: int) -> None:
        rows = int(self.model.leaf_rows_[leaf])
        share = 100 * rows / max(1, int(self.model.leaf_rows_.sum()))
        cost = 100 * float(self.model.leaf_costs_[leaf]) / self.whole if self.whole > 0 else 0.0
        text = f"leaf {leaf}: {rows:,} rows ({share:.0f}%)\ncost {cost:.3g}%"
        colour = GREY if leaf in self.shared else self.colour
        self._draw_node(
            self.last - self.half + 0.03 / self.step, -float(leaf), text, colour, "round,pad=0.35", ha="left"
        )

    def _draw_node(self, x: float, y: float, text: str, colour: str, shape: str, ha: str) -> None:
        box = {"boxstyle": shape, "facecolor": WHITE, "edgecolor": colour, "linewidth": 1.2}
        self.ax.text(x, y, text, ha=ha, va="center", fontsize=self.fontsize, bbox=box, zorder=3, parse_math=False)


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
    trees = [_two_trees(comparison) for comparison in comparisons]
    sizes = np.array([[_tree_size(c.models[name]) if _is_drawn(c, name) else (3.0, 2.0) for name in names]
                      for c, names in zip(comparisons, trees, strict=True)])  # fmt: skip
    widths = [4.2, 3.4, *sizes[:, :, 0].max(axis=0)]
    heights = np.maximum(3.2, sizes[:, :, 1].max(axis=1))
    with print_style():
        figure, axes = plt.subplots(
            len(comparisons),
            4,
            figsize=(sum(widths) + 0.5, sum(heights)),
            dpi=130,
            width_ratios=widths,
            height_ratios=heights,
            squeeze=False,
            layout="constrained",
        )
        for (costs, near, *others), comparison, names in zip(axes, comparisons, trees, strict=True):
            draw_costs(costs, comparison)
            costs.set_title(f"{comparison.title}: cost and bound", parse_math=False)
            if comparison.near is not None and is_informative(comparison.near):
                draw_near_optimal(near, comparison.near)
            else:
                near.axis("off")
            for ax, name in zip(others, names, strict=True):
                ax.axis("off")
                if name:
                    ax.set_title(f"{comparison.title}: {tree_title(comparison, name)}", parse_math=False)
                if _is_drawn(comparison, name):
                    _draw_tree(ax, comparison, name)
                elif name:
                    leaves = comparison.models[name].n_leaves_
                    ax.text(0.5, 0.5, f"{leaves} leaves: the JSON file lists them", ha="center")
        if Path(path).suffix == ".png":
            from matplotlib.backends.backend_agg import FigureCanvasAgg

            FigureCanvasAgg(figure).print_png(path)  # draws once, savefig twice
        else:
            figure.savefig(path)
    plt.close(figure)


def _two_trees(comparison: Comparison) -> tuple[str, str]:
    """The greedy and the exact tree that were finished, by name; empty if there is none."""
    exact = next((name for name in EXACT_TREES if name in comparison.models), "")
    return "greedy" if "greedy" in comparison.models else "", exact


def _is_drawn(comparison: Comparison, name: str) -> bool:
    return name in comparison.models and comparison.models[name].n_leaves_ <= MOST_LEAVES


def _draw_tree(ax: Any, comparison: Comparison, name: str, shared: Collection[int] = ()) -> None:
    colour = GREEDY if name == "greedy" else EXACT
    _TreeDrawing(ax, comparison.models[name], colour, no_split_cost(comparison), shared=shared).draw()


def tree_title(comparison: Comparison, name: str) -> str:
    """A tree with its leaves, status and cost in words."""
    model = comparison.models[name]
    certificate = model.certificate_
    leaves = f"{model.n_leaves_:,} {'leaf' if model.n_leaves_ == 1 else 'leaves'}"
    status = f" ({certificate.status})" if certificate.status not in ("heuristic", "optimal") else ""
    whole = no_split_cost(comparison)
    cost = f", cost {100 * certificate.objective / whole:.3g}% of no split" if isfinite(whole) else ""
    return f"{METHODS[name][1].split(',')[0]}{status}, {leaves}{cost}"


def draw_costs(ax: Any, comparison: Comparison) -> None:
    """Training cost against the number of leaves, in per cent of no split."""
    whole = no_split_cost(comparison)
    names = {"greedy": ("greedy", "greedy tree"), "optimum": ("exact", "best tree (proven bound)")}
    curves = {name: [100 * cost / whole for cost in costs] for name, costs in comparison.curves.items()}
    for name, costs in reversed(curves.items()):  # greedy above all, where it is the optimum
        role, label = names[name]
        colour, marker, line = ROLES[role]
        face = WHITE if len(costs) <= 30 else colour
        ax.plot(range(1, len(costs) + 1), costs, marker=marker, linestyle=line, color=colour, markerfacecolor=face,
                label=label, markersize=5 if len(costs) <= 30 else 0)  # fmt: skip
    if len(curves) == 2:
        greedy, optimum = curves.values()
        shared = min(len(greedy), len(optimum))
        ax.fill_between(range(1, shared + 1), greedy[:shared], optimum[:shared], color=GREEDY, alpha=0.15, linewidth=0)
    for method, marker in (("boxes", "D"), ("groups", "*"), ("split-assign", "x")):
        if method in comparison.models:
            model = comparison.models[method]
            cost = 100 * model.certificate_.objective / whole
            bound = 100 * max(model.certificate_.bound, 0) / whole
            label = METHODS[method][1].split(",")[0]
            ax.plot([model.n_leaves_], [cost], marker, color=OTHER, markersize=7, markerfacecolor=WHITE, label=label)
            ax.plot([model.n_leaves_], [bound], "_", color=OTHER, markersize=12, label="its bound")
    ax.set_xlabel("leaves, at most")
    ax.set_ylabel(f"training cost ({comparison.setting.loss_name} loss), % of no split")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_ylim(0, max(105.0, 1.05 * ax.get_ylim()[1]))
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="lower left")


def draw_near_optimal(ax: Any, near: NearOptimal) -> None:
    """Number of trees (a band if only bounds are known) against their cost above the optimum, and the greedy tree."""
    points = [(percent, b.least, b.most) for percent, b in near.curve if isfinite(b.most)]
    percents, least, most = zip(*points, strict=True)
    ax.fill_between(percents, least, most, color=EXACT, alpha=0.25, linewidth=0)
    ax.plot(percents, most, color=EXACT, label="trees")
    if near.better.least and near.greedy_percent <= percents[-1]:
        ax.axvline(near.greedy_percent, color=GREEDY, linestyle="--", label="greedy tree")
    ax.set_yscale("log")
    ax.set_xlim(0, percents[-1])
    ax.set_ylim(bottom=0.8)
    ax.set_xlabel("cost above the optimum, at most, %")
    ax.set_ylabel("number of trees")
    ax.legend()


def is_informative(near: NearOptimal) -> bool:
    """Whether there are ten trees to count."""
    known = [number.most for _, number in near.curve if isfinite(number.most)]
    return len(known) > 1 and max(known) >= 10


def chart_drawings(comparison: Comparison, prefix: str) -> list[Drawing]:
    """Cost against leaves, and the number of trees close to the optimum."""
    drawn = []
    curves, near = list(comparison.curves.values()), comparison.near
    if curves and isfinite(no_split_cost(comparison)):
        figure = _figure(lambda ax: draw_costs(ax, comparison))
        by_leaves = zip_longest(*curves, fillvalue=nan)
        rows = [[str(q), *(f"{c:.6g}" if isfinite(c) else None for c in costs)] for q, costs in enumerate(by_leaves, 1)]
        is_lost = len(curves) == 2 and any(a > b * (1 + 1e-6) for a, b in zip(*curves, strict=False))
        caption = "The shaded area is the loss of greedy splitting." if is_lost else "Training cost of each tree."
        header = ["leaves", *comparison.curves]
        drawn.append(Drawing(f"{prefix}costs", "Cost and leaves", caption, figure, header, rows))
    if near is not None and is_informative(near):
        figure = _figure(lambda ax: draw_near_optimal(ax, near))
        title = "Trees close to the optimum"
        caption = "How many trees cost at most so much more than the best one, on a logarithmic scale."
        rows = [[f"{p:.3g}", f"{b.least:,.0f}", f"{b.most:,.0f}"] for p, b in near.curve]
        header = ["% above the optimum", "trees, at least", "trees, at most"]
        drawn.append(Drawing(f"{prefix}near", title, caption, figure, header, rows))
    return drawn


def _figure(draw: Callable[[Any], None], width: float = 4.6, height: float = 2.6) -> Any:
    """A figure of one panel for a page."""
    with print_style():
        figure, (ax,) = panels(1, width=width, height=height)
        draw(ax)
    return figure


def tree_drawings(comparison: Comparison, prefix: str) -> list[Drawing]:
    """The greedy and the exact tree, once if they are the same; leaves with the same patterns in both are grey."""
    names = [name for name in _two_trees(comparison) if name]
    caption = "Costs of leaves are in per cent of the cost without a split. Solid: observed, dashed: missing."
    if has_one_tree(comparison):
        names = names[1:]
        caption = f"Greedy found the same tree. {caption}"
    leaves = {name: _leaf_patterns(comparison.models[name]) for name in names}
    common = set.intersection(*map(set, leaves.values())) if len(leaves) > 1 else set()
    if common:
        caption += " Grey leaves hold the same patterns in both trees."
    drawn = []
    for name, patterns in leaves.items():
        title = tree_title(comparison, name)
        shared = {q for q, members in enumerate(patterns) if members in common}
        figure = _figure(partial(_draw_tree, comparison=comparison, name=name, shared=shared),
                         *_tree_size(comparison.models[name]))  # fmt: skip
        drawn.append(Drawing(f"{prefix}tree-{name}", title[0].upper() + title[1:], caption, figure, [], []))
    return drawn


def _leaf_patterns(model: Any) -> list[frozenset[int]]:
    """The patterns of each leaf."""
    return [frozenset(model.partition_.members(q).tolist()) for q in range(model.n_leaves_)]


def has_one_tree(comparison: Comparison) -> bool:
    """Whether greedy found the exact tree."""
    greedy, exact = (comparison.models.get(name) for name in _two_trees(comparison))
    return greedy is not None and exact is not None and greedy.partition_.tree == exact.partition_.tree
