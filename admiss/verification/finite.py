"""Proofs for finitely adaptive models with the squared loss.

The claims of a certificate:

    the leaves are a partition of the class and within its limits;
    the model costs the stated objective, leaf by leaf, up to the tolerance;
    no partition of the class costs less than the stated bound;
    if the status is "optimal", the objective is within the tolerance of the bound.

The tolerance is 1e-9 of the objective or 1e-12 of the cost without a split, whatever the certificate says it is. A leaf
may be stated to cost what its coefficients cost, which is more than its minimum if these are rounded, or anything above
it if the status is "not proven": the objective is then an upper bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from admiss.verification.claim import (
    NotCoveredError,
    Proof,
    Rows,
    as_float,
    check_centre,
    check_scale,
    check_unit,
    number,
    require,
)
from admiss.verification.dual import PenalisedRisk, stated_loss
from admiss.verification.partitions import BoxSums, best_groups_cost, best_tree_cost, no_cover_below
from admiss.verification.pattern_sums import PatternSums, leaf_features, pattern_sums, ridges_of
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.certificate import Certificate

# Share of the sum of squares of y by which the rounding of residuals may raise a stated cost.
ROUNDED = Fraction(1, 10**20)
# Costs are rounded up, except for the last rounding of their sum.
BELOW = 1 - Fraction(1, 10**14)
MODELS, COORDINATES = ("leaf_intercepts", "leaf_weights"), ("centre", "scale", "unit")
TREES, BOXES, GROUPS = ("Greedy", "OptimalTree"), ("BoxPartition",), ("PatternGroups",)


@dataclass(frozen=True)
class Limits:
    """Limits of a class of partitions."""

    depth: int
    leaves: int
    rows: int
    features: IntArray


def verify_finite(certificate: Certificate, evidence: Mapping[str, Any], rows: Rows, proof: Proof) -> None:
    """Prove the claims one after the other; the proof collects what was shown."""
    program, solution, arrays = evidence["program"], evidence["solution"], evidence["arrays"]
    _check_numbers(certificate, arrays, rows.X.shape[1])
    centre, scale, unit = (arrays[name] for name in COORDINATES)
    check_scale(rows.X, rows.s, scale, program["scale"])
    check_centre(rows.X, rows.s, centre, program["center"])
    check_unit(rows.X, centre, unit)
    A = leaf_features(rows.X, centre, unit, program["leaf_model"])
    ridges = ridges_of(rows.X, scale, unit, A.shape[1], program["ridge"])
    arrays = {**arrays, "leaf_weights": _in_units(arrays["leaf_weights"], rows.X, unit)}
    sums = pattern_sums(rows.X, rows.y[:, 0], rows.s, A, ridges, program["ridge_scale"])
    limits = _limits(program, sums, rows.y)
    leaves = _checked_leaves(program, solution, arrays, sums, limits)
    proof.add(f"the {len(leaves)} leaves are a partition of the {len(sums.rows)} patterns within all limits")

    if program["loss"]["name"] != "Squared":
        _check_values(certificate, program, arrays, rows, sums, A, ridges)
        proof.add(f"the model costs {number(certificate.objective)}, as stated")
        if certificate.bound == -np.inf and certificate.status != "optimal":
            proof.add("no bound is stated")
            return
        raise NotCoveredError(f"bounds of partitions are verified for the squared loss, not {program['loss']['name']}")
    everything = sums.unit * sums.enclose_members(range(len(sums.rows)))[1]
    tolerance = max(Fraction(certificate.objective) / 10**9, everything / 10**12)
    cost = _checked_cost(certificate, arrays, sums, leaves, tolerance)
    proof.objective = cost
    as_stated = Fraction(certificate.objective) - Fraction(cost[1]) <= tolerance
    proof.add(f"the model costs {number(cost[0])}, {'as' if as_stated else 'less than'} stated")

    if certificate.status == "optimal":
        closed = Fraction(certificate.objective) - _exact(certificate.bound) <= tolerance
        require(closed, f'the gap is not closed, although the status is "optimal": {certificate.gap:.3g}')
    if certificate.bound == -np.inf:
        proof.add("no bound is stated")
        return
    lowest = _lowest_cost(program["partitioner"], sums, limits, _exact(certificate.bound))
    proof.optimum = as_float(lowest), proof.objective[1]
    above = f"the bound {certificate.bound!r} is above the lowest cost, {as_float(lowest)!r}"
    require(_exact(certificate.bound) <= lowest, above)
    proof.add(f"no partition of the class costs less than {number(certificate.bound)}")
    if certificate.status == "optimal":
        proof.add(f"so the model is optimal up to {as_float(tolerance):.1g}")


def _check_numbers(certificate: Certificate, arrays: Mapping[str, Any], d: int) -> None:
    """Reject what is not a number, or not one per feature."""
    stated = [np.array([certificate.objective]), *(arrays[name] for name in ("leaf_costs", *MODELS, *COORDINATES))]
    require(all(bool(np.isfinite(array).all()) for array in stated), "an objective or a coefficient is not a number")
    same = all(arrays[name].shape == (d,) for name in COORDINATES)
    require(same, "the number of features is not that of the model")


def _in_units(weights: FloatArray, X: FloatArray, unit: FloatArray) -> FloatArray:
    """Weights of features divided by their units; exact."""
    observed = unit[~np.isnan(X).all(axis=0)]
    factor = np.ones(weights.shape[-1])
    factor[: len(observed)] = observed[: len(factor)]
    return np.asarray(weights * factor)


def _exact(value: float) -> Fraction:
    require(np.isfinite(value), f"the certificate states {value!r}")
    return Fraction(value)


def _limits(program: Mapping[str, Any], sums: PatternSums, y: FloatArray) -> Limits:
    """Limits on this data; a feature that is missing in no row or in all of them cannot be split on."""
    d = sums.patterns.shape[1]
    features = np.arange(d) if program["split_features"] is None else np.array(program["split_features"], dtype=int)
    varies = np.asarray(sums.patterns.any(axis=0) & ~sums.patterns.all(axis=0))
    features = np.sort(features[varies[features]])
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


def _checked_cost(
    certificate: Certificate, arrays: Mapping[str, Any], sums: PatternSums, leaves: list[IntArray], tolerance: Fraction
) -> tuple[float, float]:
    """Enclosure of the cost of the leaf models, after a comparison with what is stated, leaf by leaf."""
    low, own, most = Fraction(0), Fraction(0), Fraction(0)
    upper_bound = certificate.status.startswith("not proven")
    above = tolerance + ROUNDED * sums.squares
    for q, leaf in enumerate(leaves):
        lower, upper = (sums.unit * end for end in sums.enclose_members(leaf))
        value = sums.value(leaf, float(arrays["leaf_intercepts"][q, 0]), arrays["leaf_weights"][q, 0])
        stated = Fraction(float(arrays["leaf_costs"][q]))
        fits = lower * BELOW <= stated and (upper_bound or stated <= max(upper, value) + above)
        require(fits, f"leaf {q} costs {as_float(lower)!r}, not {as_float(stated)!r}")
        attained = value <= stated + tolerance
        require(attained, f"the coefficients of leaf {q} cost {as_float(value)!r}, more than stated")
        low, own, most = low + lower, own + value, most + max(upper, value)
    objective = Fraction(certificate.objective)
    fits = low * BELOW <= objective and (upper_bound or objective <= most + above)
    require(fits, f"the partition costs {as_float(low)!r}, not {certificate.objective!r}")
    return as_float(own), as_float(own, upwards=True)


def _check_values(
    certificate: Certificate,
    program: Mapping[str, Any],
    arrays: Mapping[str, Any],
    rows: Rows,
    sums: PatternSums,
    A: FloatArray,
    ridges: FloatArray,
) -> None:
    """Reject an objective that is not the value of the leaf models, for any loss."""
    M, loss, exact_ridges = np.isnan(rows.X), stated_loss(program["loss"]), [Fraction(r) for r in ridges.tolist()]
    index = {pattern.tobytes(): leaf for pattern, leaf in zip(sums.patterns, arrays["leaf"].tolist(), strict=True)}
    labels, total = np.array([index[m.tobytes()] for m in M]), Fraction(0)
    for q in range(len(arrays["leaf_costs"])):
        inside = labels == q
        s, weight = rows.s[inside], sum(map(Fraction, rows.s[inside].tolist()))
        per = weight if program["ridge_scale"] == "sample" else Fraction(1)
        columns = np.column_stack([np.ones(len(s)), A[inside]])
        none = np.zeros(columns.shape[1])
        for k, y in enumerate(rows.y[inside].T):
            b, w = float(arrays["leaf_intercepts"][q, k]), arrays["leaf_weights"][q, k]
            total += weight * PenalisedRisk(columns, y, s, none, none, loss).value(np.append(b, w))[1]
            total += per * sum(r * Fraction(v) ** 2 for r, v in zip(exact_ridges, w.tolist(), strict=True))
    fits = abs(total - _exact(certificate.objective)) <= Fraction(1, 10**8) * total
    require(fits, f"the leaf models cost {as_float(total)!r}, not {certificate.objective!r}")


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
