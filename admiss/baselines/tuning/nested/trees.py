"""Trees of every depth and forests of every size, read off one fit.

A tree cut at depth k predicts the value of the node reached there, and every node of a fitted tree stores its value, so
one descent of the deepest tree gives the predictions at all depths. A forest of T trees is the first T trees of a
larger one, and its predictions are running means.

Comparison with a separate fit with the same ``random_state``:

=================================== ================================================================================
number of trees                     equal to the last digit: the seed of tree t is the t-th draw of the forest
depth, all features in every split  equal up to rounding if no two splits of a node are equally good
depth, fewer ``max_features``       another draw from the same distribution
=================================== ================================================================================

Trees grow depth first, and a node draws the order in which it examines the features from one stream of random numbers,
of which a deeper tree has used more before it reaches that node. The order decides ties and, with fewer
``max_features``, which features are examined. Ties are the rule in small nodes (every feature separates two rows
equally well), and rare in nodes of some tens of rows. Since the draws of different nodes are independent, the truncated
tree has the distribution of a tree grown to that depth, given the rows and their weights.

The descent is that of scikit-learn: values are rounded to float32, and each node has a direction for NaN.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from formulations.arrays import FloatArray, IntArray
from formulations.jit import compiled

# Stands for None: a depth that no tree reaches.
UNBOUNDED = np.iinfo(np.int64).max


def nested_predictions(
    trees: Sequence[Any], X: FloatArray, depths: Sequence[int | None], counts: Sequence[int]
) -> FloatArray:
    """Predictions of the first trees of a forest, each cut at a depth.

    Parameters
    ----------
    trees : sequence of fitted scikit-learn trees
        ``forest.estimators_``, or one tree; all for regression, or all for the same classes.
    X : array of shape (n, d)
        Rows, NaN where missing.
    depths : sequence of int or None
        Depths at which the trees are cut; None for no cut.
    counts : sequence of int
        Numbers of trees, increasing.

    Returns
    -------
    array of shape (n_depths, n_counts, n), or (n_depths, n_counts, n, K) for probabilities of K classes

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    >>> forest = RandomForestRegressor(20, max_depth=4, random_state=0).fit(X, y)
    >>> found = nested_predictions(forest.estimators_, X, [1, 4], [10, 20])
    >>> found.shape, np.allclose(found[1, 1], forest.predict(X))
    ((2, 2, 60), True)
    """
    return np.stack([found for _, found in growing_forest(trees, X, depths, counts)], axis=1)


def growing_forest(
    trees: Sequence[Any], X: FloatArray, depths: Sequence[int | None], counts: Sequence[int]
) -> Iterator[tuple[int, FloatArray]]:
    """The same one count at a time, which saves memory: pairs of a count and an array over the depths."""
    if any(more <= fewer for fewer, more in zip([0, *counts], counts, strict=False)) or counts[-1] > len(trees):
        raise ValueError(f"counts must increase from at least 1 to at most {len(trees)} trees, not {list(counts)}.")
    if any(depth is not None and depth < 1 for depth in depths):
        raise ValueError(f"depths must be positive integers or None, not {list(depths)}.")
    limits = np.array([UNBOUNDED if depth is None else depth for depth in depths], dtype=np.int64)
    order = np.argsort(limits, kind="stable")
    limits = limits[order]
    with np.errstate(over="ignore"):  # beyond every threshold
        single = np.ascontiguousarray(X, dtype=np.float32)
    n_outputs = trees[0].tree_.value.shape[2]
    total = np.zeros((len(depths), len(X), n_outputs))
    done = 0
    for count in counts:
        for tree in trees[done:count]:
            _add_tree(single, *_nodes(tree.tree_), limits, order, total)
        done = count
        mean = total / count
        yield count, mean[:, :, 0] if n_outputs == 1 and not hasattr(trees[0], "classes_") else mean


def _nodes(tree: Any) -> tuple[IntArray, IntArray, IntArray, FloatArray, Any, FloatArray]:
    """Children, feature, threshold, direction of NaN and prediction of each node."""
    return (
        tree.children_left,
        tree.children_right,
        tree.feature,
        tree.threshold,
        tree.missing_go_to_left,
        tree.value[:, 0, :],
    )


@compiled
def _add_tree(X, left, right, feature, threshold, nan_left, value, limits, order, total):  # type: ignore[no-untyped-def]
    """Add the predictions at each depth to ``total``; ``limits`` increase, and ``order`` maps them to depths."""
    for i in range(len(X)):
        node, level = 0, 0
        for k in range(len(limits)):
            while level < limits[k] and left[node] >= 0:
                x = X[i, feature[node]]
                goes_left = nan_left[node] != 0 if np.isnan(x) else x <= threshold[node]
                node = left[node] if goes_left else right[node]
                level += 1
            for c in range(value.shape[1]):
                total[order[k], i, c] += value[node, c]
