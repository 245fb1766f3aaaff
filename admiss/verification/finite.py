"""Primal and dual of finitely adaptive models.

The leaves must be a partition of the class within its limits, and cost what is stated, leaf by leaf. A leaf may be
stated to cost what its coefficients cost, which is more than its minimum if these are rounded, or anything above it if
the status is "not proven": the objective is then an upper bound. The bound is compared with the lowest cost of all
partitions of the class, for the squared loss; for other losses the value of the leaf models is proven alone.

The tolerance is 1e-9 of the objective or 1e-12 of the cost without a split, whatever the certificate says it is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from admiss.patterns import alike, is_first
from admiss.verification.claim import (
    NotCoveredError,
    Recomputed,
    Rows,
    as_float,
    check_coordinates,
    require,
)
from admiss.verification.dual import PenalisedRisk, stated_loss
from admiss.verification.exact import PatternSums, leaf_features, pattern_sums, ridges_of
from admiss.verification.partitions import BoxSums, best_groups_cost, best_tree_cost, no_cover_below
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.certificate import Certificate

# Share of the sum of squares of y by which the rounding of residuals may raise a stated cost.
ROUNDED = Fraction(1, 10**20)
# Costs are rounded up, except for the last rounding of their sum: share of them.
BELOW = Fraction(1, 10**14)
# The same for the value of models with other losses.
STATED = Fraction(1, 10**8)
MODELS, COORDINATES = ("leaf_intercepts", "leaf_weights"), ("centre", "scale", "unit")
TREES = ("Greedy", "OptimalTree")
BOXES = ("BoxPartition",)
GROUPS = ("PatternGroups",)


@dataclass(frozen=True)
class Limits:
    """Limits of a class of partitions."""

    depth: int
    leaves: int
    rows: int
    features: IntArray


def recompute_finite(certificate: Certificate, evidence: Mapping[str, Any], rows: Rows) -> Recomputed:
    """Value of the leaf models, and the lowest cost of the class."""
    program = evidence["program"]
    solution = evidence["solution"]
    arrays = evidence["arrays"]
    numbers = all(bool(np.isfinite(arrays[name]).all()) for name in ("leaf_costs", *MODELS, *COORDINATES))
    require(numbers, "a cost, a coefficient or a coordinate is not a number")
    centre, scale, unit = (arrays[name] for name in COORDINATES)
    check_coordinates(rows, centre, scale, program["center"], program["scale"])
    _check_unit(rows.X, centre, unit)
    A = leaf_features(rows.X, centre, unit, program["leaf_model"])
    ridges = ridges_of(rows.X, scale, unit, A.shape[1], program["ridge"])
    arrays = {**arrays, "leaf_weights": _in_units(arrays["leaf_weights"], rows.X, unit)}
    sums = pattern_sums(rows.X, rows.y[:, 0], rows.s, A, ridges, program["ridge_scale"])
    limits = _limits(program, sums, rows.y)
    leaves = _checked_leaves(program, solution, arrays, sums, limits)
    lines = (f"the {len(leaves)} leaves are a partition of the {len(sums.rows)} patterns within all limits",)

    if program["loss"]["name"] != "Squared":
        value = _value_of_any_loss(program, arrays, rows, sums, A, ridges)
        stated = STATED * value
        return Recomputed((value, value), stated, stated, Fraction(certificate.tolerance), _not_covered(program), lines)
    everything = sums.unit * sums.enclose_members(range(len(sums.rows)))[1]
    tolerance = max(Fraction(certificate.objective) / 10**9, everything / 10**12)
    above = tolerance + ROUNDED * sums.squares
    low, value, high = _checked_costs(certificate, arrays, sums, leaves, tolerance, above)
    # the objective is neither below the lowest cost of the leaves nor, but for the tolerance, below that of the models
    below = min(value - low * (1 - BELOW), len(leaves) * tolerance)

    def optimum(enough: Fraction) -> Fraction:
        return _lowest_cost(program["partitioner"], sums, limits, enough)

    return Recomputed((value, high), below, above, tolerance, optimum, lines)


def _not_covered(program: Mapping[str, Any]) -> Callable[[Fraction], Fraction]:
    def optimum(enough: Fraction) -> Fraction:
        raise NotCoveredError(f"bounds of partitions are verified for the squared loss, not {program['loss']['name']}")

    return optimum


def _check_unit(X: FloatArray, centre: FloatArray, unit: FloatArray) -> None:
    """Reject units that are not powers of two, or by which features cannot be divided exactly."""
    require(unit.shape == centre.shape, "the number of features is not that of the model")
    powers = bool(np.all(np.frexp(unit)[0] == 0.5))
    moved = X - centre
    require(powers and np.array_equal(moved / unit * unit, moved, equal_nan=True), "a unit is not a power of two")


def _in_units(weights: FloatArray, X: FloatArray, unit: FloatArray) -> FloatArray:
    """Weights of features divided by their units; exact."""
    observed = unit[~np.isnan(X).all(axis=0)]
    factor = np.ones(weights.shape[-1])
    factor[: len(observed)] = observed[: len(factor)]
    return np.asarray(weights * factor)


def _limits(program: Mapping[str, Any], sums: PatternSums, y: FloatArray) -> Limits:
    """Limits on this data; one of the features that are always missing together is split on."""
    d = sums.patterns.shape[1]
    features = np.arange(d) if program["split_features"] is None else np.array(program["split_features"], dtype=int)
    varies = np.asarray(sums.patterns.any(axis=0) & ~sums.patterns.all(axis=0))
    features = np.sort(features[varies[features]])
    features = features[is_first(alike(sums.patterns[:, features]))]
    depth = len(features) if program["max_depth"] is None else min(program["max_depth"], len(features))
    least = 10 * (d + 1)
    if np.isin(y, (-1.0, 1.0)).all():  # classes: as many rows as half of them would be with equal shares
        rarest = max(1, min(int((column == side).sum()) for column in y.T for side in (-1.0, 1.0)))
        least = -(-least * len(y) // (2 * rarest))
    least = program["min_rows"] or least
    most = max(1, min(len(sums.rows), int(sums.rows.sum()) // least))
    return Limits(depth, min(most, program["max_leaves"] or most), least, features)


def _checked_leaves(
    program: Mapping[str, Any],
    solution: Mapping[str, Any],
    arrays: Mapping[str, Any],
    sums: PatternSums,
    limits: Limits,
) -> list[IntArray]:
    """Indices of the patterns of each leaf, after all checks."""
    same = arrays["patterns"].shape == sums.patterns.shape and bool(np.all(arrays["patterns"] == sums.patterns))
    require(same, "the patterns of the partition are not those of the data")
    label, count = np.asarray(arrays["leaf"]), len(arrays["leaf_costs"])
    require(label.shape == (len(sums.rows),) and bool(np.all((label >= 0) & (label < count))), "a pattern has no leaf")
    outputs, width = arrays["leaf_intercepts"].shape[-1], len(sums.exponents) - 2
    shapes = arrays["leaf_intercepts"].shape, arrays["leaf_weights"].shape
    require(shapes == ((count, outputs), (count, outputs, width)), "the leaf models are not those of the leaves")
    leaves = [np.flatnonzero(label == q) for q in range(count)]
    require(all(len(leaf) for leaf in leaves), "a leaf is empty")
    require(count <= limits.leaves, f"{count} leaves are more than the {limits.leaves} that are allowed")
    if count > 1:
        fewest = min(int(sums.rows[leaf].sum()) for leaf in leaves)
        require(fewest >= limits.rows, f"a leaf has {fewest} rows, fewer than {limits.rows}")
    if program["partitioner"] in GROUPS:
        return leaves
    boxes = solution["boxes"]
    if program["partitioner"] not in BOXES:
        require(solution["is_tree"], "the leaves are not those of a tree")
        boxes = _boxes_of(solution["tree"])
    require(boxes is not None and len(boxes) == count, "the leaves are not those of the tree or of the boxes")
    for q, box in enumerate(boxes):
        used = [j for j, _ in box]
        require(len(used) <= limits.depth, f"a leaf has {len(used)} literals, more than {limits.depth}")
        require(len(set(used)) == len(used) and set(used) <= set(limits.features.tolist()), "a split is not allowed")
        inside = _inside(sums.patterns, box)
        require(bool(np.all((label == q) == inside)), "the patterns of a leaf are not those of its box")
    return leaves


def _boxes_of(tree: Any) -> list[list[tuple[int, bool]]]:
    """The leaves of a tree [feature, where observed, where missing] from left to right."""
    if tree is None:
        return [[]]
    feature, observed, missing = tree
    sides = ((False, observed), (True, missing))
    return [[(int(feature), side), *box] for side, part in sides for box in _boxes_of(part)]


def _inside(patterns: BoolArray, box: list[tuple[int, bool]]) -> BoolArray:
    inside = np.ones(len(patterns), dtype=bool)
    for j, missing in box:
        inside &= patterns[:, j] == missing
    return inside


def _checked_costs(
    certificate: Certificate,
    arrays: Mapping[str, Any],
    sums: PatternSums,
    leaves: list[IntArray],
    tolerance: Fraction,
    above: Fraction,
) -> tuple[Fraction, Fraction, Fraction]:
    """Lowest cost, that of the models, and the larger end of both, after a comparison leaf by leaf."""
    low = own = high = Fraction(0)
    upper_bound = certificate.status.startswith("not proven")
    for q, leaf in enumerate(leaves):
        lower, upper = (sums.unit * end for end in sums.enclose_members(leaf))
        value = sums.value(leaf, float(arrays["leaf_intercepts"][q, 0]), arrays["leaf_weights"][q, 0])
        highest = max(upper, value)
        stated = Fraction(float(arrays["leaf_costs"][q]))
        fits = lower * (1 - BELOW) <= stated and (upper_bound or stated <= highest + above)
        require(fits, f"leaf {q} costs {as_float(lower)!r}, not {as_float(stated)!r}")
        attained = value <= stated + tolerance
        require(attained, f"the coefficients of leaf {q} cost {as_float(value)!r}, more than stated")
        low += lower
        own += value
        high += highest
    return low, own, high


def _value_of_any_loss(
    program: Mapping[str, Any],
    arrays: Mapping[str, Any],
    rows: Rows,
    sums: PatternSums,
    A: FloatArray,
    ridges: FloatArray,
) -> Fraction:
    """The value of the leaf models, rounded up."""
    loss = stated_loss(program["loss"])
    exact_ridges = [Fraction(ridge) for ridge in ridges.tolist()]
    index = {pattern.tobytes(): leaf for pattern, leaf in zip(sums.patterns, arrays["leaf"].tolist(), strict=True)}
    labels = np.array([index[m.tobytes()] for m in np.isnan(rows.X)])
    total = Fraction(0)
    for q in range(len(arrays["leaf_costs"])):
        inside = labels == q
        s = rows.s[inside]
        weight = sum(map(Fraction, s.tolist()))
        per = weight if program["ridge_scale"] == "sample" else Fraction(1)
        columns = np.column_stack([np.ones(len(s)), A[inside]])
        none = np.zeros(columns.shape[1])
        for k, y in enumerate(rows.y[inside].T):
            b, w = float(arrays["leaf_intercepts"][q, k]), arrays["leaf_weights"][q, k]
            total += weight * PenalisedRisk(columns, y, s, none, none, loss).value(np.append(b, w))[1]
            total += per * sum(r * Fraction(v) ** 2 for r, v in zip(exact_ridges, w.tolist(), strict=True))
    return total


def _lowest_cost(partitioner: str, sums: PatternSums, limits: Limits, bound: Fraction) -> Fraction:
    """A proven lower bound on the cost of all partitions of the class; at most ``bound`` if that takes less work."""
    if bound <= 0:  # no loss is negative
        return Fraction(0)
    if partitioner in GROUPS:
        return sums.unit * best_groups_cost(sums, limits.leaves, limits.rows)
    if partitioner not in TREES + BOXES:
        raise NotCoveredError(f"bounds of {partitioner} are not verified")
    if limits.leaves == 1 or limits.depth == 0:
        return sums.unit * sums.enclose_members(range(len(sums.rows)))[0]
    depth = min(limits.depth, limits.leaves - 1) if partitioner in TREES else limits.depth
    boxes = BoxSums.of(sums, limits.features, depth, limits.rows)
    costs = boxes.costs()
    if partitioner in TREES:
        return sums.unit * best_tree_cost(boxes, costs, limits.leaves)
    target = -(-bound // sums.unit)
    return min(bound, sums.unit * no_cover_below(boxes, costs, limits.leaves, int(target)))
