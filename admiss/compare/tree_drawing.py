"""A tree of missingness patterns as SVG, from its root on the left to its leaves on the right.

Every split has two branches, a solid one for observed and a dashed one for missing values. Leaves stand below each
other in their order, so that many leaves make a drawing high and not small; the bar of a leaf is its share of the rows.
Colours are classes of the page's style sheet.
"""

import re
import unicodedata
from typing import Any

from admiss.compare.comparison import Comparison
from admiss.compare.setting import METHODS
from admiss.estimator.validation import feature_names
from admiss.web_page.markup import scrolling, text
from formulations.trees.dynamic_program import Tree, leaves_of

EXACT_METHODS = ("tree", "tree-mio", "split-assign")
# Sizes of a split, of the gap to the next one and of a leaf; the rows of leaves; lines of text in a split.
SPLIT, GAP, LEAF, BOX, ROW = 104, 56, 172, 40, 52
MARGIN, LINE, CHARACTERS = 4, 14, 13
# Smallest scale of a drawing, beyond which it scrolls.
SMALLEST = 0.85


def tree_figures(comparison: Comparison) -> str:
    """The greedy and the exact tree; leaves that hold the same patterns in both are grey."""
    exact = next((name for name in EXACT_METHODS if name in comparison.models), None)
    names = [name for name in ("greedy", exact) if name in comparison.models]
    if not names:
        return ""
    models = [comparison.models[name] for name in names]
    same = len(models) == 2 and models[0].partition_.tree == models[1].partition_.tree
    names, models = (names[1:], models[1:]) if same else (names, models)
    leaves = [[frozenset(m.partition_.members(q).tolist()) for q in range(m.partition_.n_leaves)] for m in models]
    common = set(leaves[0]).intersection(*leaves[1:]) if len(leaves) > 1 else set()
    figures = ""
    for name, model, held in zip(names, models, leaves, strict=True):
        tree = METHODS[name][1].split(",")[0].capitalize()
        title = f"<strong>{tree}</strong>, {leaf_count(model)}, cost {model.certificate_.objective:.6g}"
        shared = {q for q, patterns in enumerate(held) if patterns in common}
        svg = _tree_svg(model, tree, "greedy" if name == "greedy" else "exact", shared)
        figures += f"<figure><figcaption>{title}</figcaption>{scrolling(tree, svg, 'picture')}</figure>"
    words = "Branches: solid where the feature is observed, dashed where it is missing. Bars are shares of the rows."
    if same:
        words += " Greedy found the same tree."
    elif common:
        words += " Grey leaves hold the same patterns in both trees."
    least = SMALLEST * max(map(_tree_width, models)) + 40
    style = f'style="--least: {least:.0f}px"'
    return f'<h3>Trees</h3><p class="soft">{words}</p><div class="pair trees" {style}>{figures}</div>'


def leaf_count(model: Any) -> str:
    """Number of leaves in words."""
    count = model.partition_.n_leaves
    return f"{count:,} {'leaf' if count == 1 else 'leaves'}"


def _tree_width(model: Any) -> int:
    """Width of the drawing of a model's tree in pixels, before it is scaled."""
    return int(model.partition_.depth * (SPLIT + GAP) + LEAF + 2 * MARGIN)


def _tree_svg(model: Any, name: str, colour: str, shared: set[int]) -> str:
    """Draw the tree of a fitted finite model.

    Parameters
    ----------
    model : FiniteRegressor or FiniteClassifier
        With a partition that is a tree.
    name : str
        The tree in words.
    colour : str
        Class of the leaves that are not shared.
    shared : set of int
        Leaves that another tree has too.
    """
    partition, names = model.partition_, feature_names(model)
    leaf_x, all_rows = MARGIN + partition.depth * (SPLIT + GAP), max(1, int(model.leaf_rows_.sum()))
    branches: list[str] = []
    boxes: list[str] = []

    def draw(tree: Tree, depth: int, first: int) -> tuple[float, float]:
        """Draw a subtree whose first leaf is given, and return the middle of the left side of its root."""
        if tree is None:
            y = MARGIN + ROW * (first + 0.5)
            boxes.append(_leaf(model, first, leaf_x, y, "shared" if first in shared else colour, all_rows))
            return leaf_x, y
        j, observed, missing = tree
        ends = draw(observed, depth + 1, first), draw(missing, depth + 1, first + len(leaves_of(observed)))
        x, y = MARGIN + depth * (SPLIT + GAP), (ends[0][1] + ends[1][1]) / 2
        branches.extend(
            _branch(x + SPLIT, y, *end, word) for end, word in zip(ends, ("observed", "missing"), strict=True)
        )
        boxes.append(_split(names[j], x, y))
        return x, y

    draw(partition.tree, 0, 0)
    width, height = _tree_width(model), ROW * partition.n_leaves + 2 * MARGIN
    first = f", first split on {names[partition.tree[0]]}" if partition.tree else ""
    label = f"{name}: {partition.n_leaves} leaves{first}; its leaves are listed below"
    return (
        f'<svg class="tree" role="img" aria-label="{text(label)}" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" style="min-width:{SMALLEST * width:.0f}px">{"".join(branches + boxes)}</svg>'
    )


def _split(name: str, x: float, y: float) -> str:
    """The box of a split with the name of its feature, in full at the pointer."""
    lines = name_lines(name)
    start = y + 4 - LINE / 2 * (len(lines) - 1)
    words = "".join(
        f'<text x="{x + SPLIT / 2}" y="{start + LINE * i}" text-anchor="middle">{text(line)}</text>'
        for i, line in enumerate(lines)
    )
    return (
        f'<g class="split"><title>Is {text(name)} missing?</title>'
        f'<rect x="{x}" y="{y - BOX / 2}" width="{SPLIT}" height="{BOX}" rx="4"/>{words}</g>'
    )


def _leaf(model: Any, leaf: int, x: float, y: float, colour: str, all_rows: int) -> str:
    """The box of a leaf with its number, cost, rows and their share."""
    rows, top, right = int(model.leaf_rows_[leaf]), y - BOX / 2, f'x="{x + LEAF - 10}" text-anchor="end"'
    share, cost = rows / all_rows, f"cost {model.leaf_costs_[leaf]:.4g}"
    return (
        f'<g class="leaf {colour}"><title>Leaf {leaf}: {text(model.leaf_name(leaf))}\n{rows:,} rows, {cost}</title>'
        f'<rect x="{x}" y="{top}" width="{LEAF}" height="{BOX}" rx="10"/>'
        f'<rect class="bar" x="{x + 10}" y="{top + BOX - 6}" width="{(LEAF - 20) * share:.1f}" height="3"/>'
        f'<text x="{x + 10}" y="{top + 15}" class="name">leaf {leaf}</text>'
        f'<text {right} y="{top + 15}">{cost}</text>'
        f'<text x="{x + 10}" y="{top + 29}" class="soft">{rows:,} rows</text>'
        f'<text {right} y="{top + 29}" class="soft">{100 * share:.0f} %</text></g>'
    )


def _branch(x: float, y: float, end_x: float, end_y: float, word: str) -> str:
    """A curve to the box below, which its word stands at: above a branch that rises, below one that falls."""
    middle, joint = x + GAP / 2, x + GAP
    word_y = end_y - 5 if end_y < y else end_y + 12
    return (
        f'<path class="branch {word}" d="M{x} {y}C{middle} {y} {middle} {end_y} {joint} {end_y}H{end_x}"/>'
        f'<text class="word" x="{joint - 3}" y="{word_y}" text-anchor="end">{word}</text>'
    )


def name_lines(name: str) -> list[str]:
    """A name in one or two lines that fit into a split, abridged if it is longer.

    Examples
    --------
    >>> name_lines("age"), name_lines("household_income_total"), name_lines("x" * 40)
    (['age'], ['household_', 'income_total'], ['xxxxxxxxxxxxx', 'xxxxxxxxxxxx…'])
    """
    name = " ".join(name.split()) or "(no name)"
    if _width(name) <= CHARACTERS:
        return [name]
    head = _start(name, CHARACTERS)
    ends = [match.end() for match in re.finditer(r"[ _./-]", head)]
    cut = ends[-1] if ends and ends[-1] > CHARACTERS // 3 else len(head)
    rest = name[cut:]
    return [name[:cut], rest if _width(rest) <= CHARACTERS else _start(rest, CHARACTERS - 1) + "…"]


def _width(name: str) -> float:
    """Estimated width in average characters."""
    return sum(
        0.0
        if unicodedata.combining(letter)
        else 2.0
        if unicodedata.east_asian_width(letter) in "WF"
        else 1.3
        if letter.isupper() or letter in "mw@%—"
        else 1.0
        for letter in name
    )


def _start(name: str, width: float) -> str:
    """The longest start of a name that has a width."""
    return next(name[:end] for end in range(2 * CHARACTERS, -1, -1) if _width(name[:end]) <= width)
