"""Trees of every depth and forests of every size, read off one fit.

A tree that stops at depth k predicts the value of the node it has reached, and every node of a fitted tree knows its
value; so one walk down the deepest tree gives the predictions of all depths. A forest of T trees is the first T trees
of a larger one, and its predictions are running means.

What is read off, against a separate fit with the same ``random_state``:

=================================== ================================================================================
number of trees                     the same to the last digit: the seed of tree t is the t-th draw of the forest
depth, all features in every split  the same to rounding where no two splits of a node are equally good
depth, ``max_features`` below that  another draw of the same law
=================================== ================================================================================

The reason is in the order of growing, depth first: a node draws the order in which it looks at the features from one
stream of random numbers, and a deeper tree has drawn more of them before it comes to that node. The order decides ties,
and, where only some features are looked at, which ones. Ties are the rule in small nodes (two rows are parted equally
well by every feature), and rare in nodes of some tens of rows. Since the draws of a node do not depend on those of
others, the truncated tree has the law of the tree that was grown to that depth, given the rows and their weights.

A walk is that of scikit-learn: values are rounded to float32, NaN goes where the node sends it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from formulations.arrays import FloatArray, IntArray
from formulations.jit import compiled

# A depth that no tree reaches, for None.
UNBOUNDED = np.iinfo(np.int64).max


def nested_predictions(
    trees: Sequence[Any], X: FloatArray, depths: Sequence[int | None], counts: Sequence[int]
) -> FloatArray:
    """Predictions of the forests of the first trees, each tree cut at a depth.

    Parameters
    ----------
    trees : sequence of fitted scikit-learn trees
        ``forest.estimators_``, or one tree; all for regression, or all for the same classes.
    X : array of shape (n, d)
        Rows, NaN where missing.
    depths : sequence of int or None
        Depths at which the trees are cut; None is as deep as they are.
    counts : sequence of int
        Numbers of trees, increasing.

    Returns
    -------
    array of shape (n_depths, n_counts, n), or (n_depths, n_counts, n, K) with the probabilities of K classes

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
    """The same count by count, so that one count is held at a time: pairs of a count and an array over the depths."""
    if any(more <= fewer for fewer, more in zip([0, *counts], counts, strict=False)) or counts[-1] > len(trees):
        raise ValueError(f"counts must increase from at least 1 to at most {len(trees)} trees, not {list(counts)}.")
    if any(depth is not None and depth < 1 for depth in depths):
        raise ValueError(f"depths must be whole numbers from 1 on, or None, not {list(depths)}.")
    limits = np.array([UNBOUNDED if depth is None else depth for depth in depths], dtype=np.int64)
    order = np.argsort(limits, kind="stable")
    limits = limits[order]
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
    """Children, feature, threshold and way of NaN of each node, and what it predicts."""
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
    """Add to ``total`` what the tree predicts at each depth; ``limits`` increase, in the given order of depths."""
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
