"""Whether the certificate of a fitted partition is true, by an exact optimum that shares no code with the solvers.

With the exact optimum V, the exact cost C of the returned partition, the cost R without a split, and E the rounding
errors of an exact fit (1e-20 of the sum of squares of y; 1e-15 of its absolute values for losses that grow linearly):

    bound <= V                           exactly; to 1e-6 V + 1e-9 R if the status is "solver's bound"
    objective >= C                       to 1e-12 C + 1e-18 R + E: the rounding of a float
    tolerance <= T                       with T = max{1e-9 objective, 1e-12 R}, to 1e-6 of it
    objective <= V + T                   if the status is "optimal"; to 1e-6 V + 1e-9 R if it is "solver's bound"
    the partition is within its limits
"""

import math
import warnings

import numpy as np

from admiss import FiniteClassifier, FiniteRegressor
from admiss.partition import BoxPartition, OptimalTree, PatternGroups, SplitAssignTree
from admiss.streaming import RowStatistics
from tests.admiss.partition.exact_leaves import ExactLeaves, fraction
from tests.admiss.partition.exact_logistic import LogisticLeaves
from tests.admiss.partition.exact_losses import AbsoluteLeaves, HuberLeaves, QuantileLeaves
from tests.admiss.partition.exact_partitions import ExactOptimum

PARTITIONERS = {
    "tree": OptimalTree,
    "both": lambda **limits: OptimalTree(method="both", **limits),
    "mio": lambda **limits: OptimalTree(method="mio", **limits),
    "split-assign": SplitAssignTree,
    "boxes": BoxPartition,
    "groups": lambda max_leaves, min_rows=None, **_: PatternGroups(max_leaves or 4, min_rows, time_limit=5.0),
}
# Rows of a block of statistics.
BLOCK = 17
LEAVES = {
    "squared": ExactLeaves,
    "absolute": AbsoluteLeaves,
    "quantile": QuantileLeaves,
    "huber": HuberLeaves,
    "logistic": LogisticLeaves,
}


def fitted(kind, table):
    """The model with a partition of this kind."""
    estimator = FiniteClassifier if table.settings.get("loss") == "logistic" else FiniteRegressor
    model = estimator(PARTITIONERS[kind](**table.limits), **table.settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # features that were never observed
        return model.fit(table.X, table.y, sample_weight=table.weights)


def fitted_from_statistics(kind, table):
    """The same from statistics of blocks, half of them merged."""
    model = FiniteRegressor(PARTITIONERS[kind](**table.limits), **table.settings)
    weights = np.ones(len(table.y)) if table.weights is None else table.weights
    halves = [RowStatistics([], tree_depth=None, patterns=True) for _ in range(2)]
    for begin in range(0, len(table.y), BLOCK):
        part = slice(begin, begin + BLOCK)
        halves[2 * begin // len(table.y)].update(table.X[part], table.y[part], weights[part])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit_statistics(halves[0].merge(halves[1]))


def exact_leaves(table, coordinates):
    """Exact costs of the leaves that the settings of a table state.

    Features are x - c, rounded once, divided by a power of two: the centre, the scale and that unit are those of the
    fitted model, after a check. The ridge of a feature is  ridge (scale / unit)^2,  rounded after each operation.
    """
    weights = np.ones(len(table.y)) if table.weights is None else table.weights
    used = weights > 0
    X, y, s = table.X[used], table.y[used], weights[used]
    M = np.isnan(X)
    observed = ~M.all(axis=0)
    centre, scale, unit = coordinates.centre, coordinates.scale, coordinates.unit
    _check_coordinates(table, X, s, centre, scale, unit)
    A = np.where(M, 0.0, (X - centre) / unit)[:, observed]
    weights = ((scale / unit) ** 2)[observed]
    if table.settings["leaf_model"] == "affine_intercept":
        _, first = np.unique(M, axis=1, return_index=True)  # features that are missing together have one indicator
        once = np.isin(np.arange(M.shape[1]), first)
        A = np.hstack([A, M[:, observed & M.any(axis=0) & once]])
        weights = np.append(weights, np.ones(A.shape[1] - len(weights)))
    leaves = LEAVES[table.settings.get("loss", "squared")]
    return leaves(M, A, y, s, table.settings["ridge"] * weights, table.settings["ridge_scale"])


def _check_coordinates(table, X, s, centre, scale, unit):
    """Means and deviations are those of the observed values, to 1e-9 and the rounding of large offsets."""
    assert np.all(np.frexp(unit)[0] == 0.5)
    assert table.settings.get("center", True) or not centre.any()
    assert table.settings.get("scale", True) or np.all(scale == 1.0)
    for x, c, divisor in zip(X.T, centre, scale, strict=True):
        seen = ~np.isnan(x)
        if not seen.any():
            continue
        share, size = s[seen] / s[seen].sum(), np.abs(x[seen]).max() or 1.0
        mean = share @ x[seen]
        deviation = np.sqrt(share @ (x[seen] - mean) ** 2)
        if table.settings.get("center", True):
            assert abs(c - mean) <= 1e-9 * deviation + 1e-14 * size
        if table.settings.get("scale", True):
            constant = deviation <= 1e-11 * size
            assert abs(divisor - deviation) <= 1e-9 * deviation + 1e-14 * size or (constant and divisor in (size, 1.0))


def violations(kind, table, model, leaves=None):
    """Sentences about what is false in the certificate of a fitted model; none if it is true."""
    limits, certificate = table.limits, model.certificate_
    leaves = leaves or exact_leaves(table, model.leaf_features_)
    exact = ExactOptimum(leaves, limits.get("min_rows"))
    _, optimum = exact.groups(limits["max_leaves"] or 4) if kind == "groups" else _by_boxes(kind, exact, limits)
    masks = [_mask(leaves, model.partition_, leaf) for leaf in range(model.n_leaves_)]
    (cost, _), (_, root) = exact.partition_cost(masks), exact.partition_cost([leaves.everything])
    bound, objective, noise = certificate.bound, fraction(certificate.objective), _rounding(table, leaves)
    found = list(_broken_limits(kind, exact, limits, model.partition_, masks))

    by_solver = fraction(1e-6) * optimum + fraction(1e-9) * root if certificate.status == "solver's bound" else 0
    tolerance = max(fraction(1e-9) * objective, fraction(1e-12) * root)
    if bound > -math.inf and fraction(bound) > optimum + by_solver:
        found.append(f"the bound is above the optimum by {_size(fraction(bound) - optimum, optimum)}")
    if objective < cost - fraction(1e-12) * cost - fraction(1e-18) * root - noise:
        found.append(f"the objective is below the cost of its partition by {_size(cost - objective, cost)}")
    if fraction(certificate.tolerance) > fraction(1.000001) * tolerance:
        found.append(f"the tolerance is larger than stated: {certificate.tolerance:.3g}, not {_float(tolerance):.3g}")
    if certificate.status in ("optimal", "solver's bound") and objective > optimum + tolerance + by_solver:
        found.append(f"the objective is above the optimum by {_size(objective - optimum, optimum)}")
    return found


def _by_boxes(kind, exact, limits):
    return (exact.boxes if kind == "boxes" else exact.tree)(limits["max_depth"], limits["max_leaves"])


def _rounding(table, leaves):
    """E."""
    if isinstance(leaves, ExactLeaves):
        return fraction(1e-20 * (leaves.s @ leaves.y**2))
    size = np.ones_like(leaves.s) if table.settings["loss"] == "logistic" else np.abs(leaves.y)
    return fraction(1e-15 * (leaves.s @ size))


def _mask(leaves, partition, leaf):
    """The patterns of a leaf as a mask of the oracle's patterns."""
    index = {pattern.tobytes(): p for p, pattern in enumerate(leaves.patterns)}
    return sum(1 << index[pattern.tobytes()] for pattern in partition.patterns[partition.leaf == leaf])


def _broken_limits(kind, exact, limits, partition, masks):
    if sum(masks) != exact.leaves.everything or not all(map(exact.allowed, masks)):
        yield "the leaves are not a partition, or have too few rows"
    if len(masks) > (limits["max_leaves"] or (4 if kind == "groups" else math.inf)):
        yield "there are too many leaves"
    if kind != "groups" and partition.depth > limits["max_depth"]:
        yield "the partition is too deep"


def _size(difference, whole):
    """A difference, and its share of the whole."""
    share = f", {_float(difference / whole):.3g} of it" if whole else ""
    return f"{_float(difference):.3g}{share}"


def _float(value):
    return int(value.p) / int(value.q)
