"""The exact optima themselves: leaf costs against their definition, partitions against plain enumeration."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from flint import fmpq_mat
from scipy.optimize import minimize
from scipy.special import huber

from tests.admiss.partition.exact_leaves import BITS, ExactLeaves, fraction
from tests.admiss.partition.exact_logistic import LogisticLeaves
from tests.admiss.partition.exact_losses import AbsoluteLeaves, HuberLeaves, QuantileLeaves
from tests.admiss.partition.exact_partitions import FORBIDDEN, ExactOptimum


def random_leaves(seed, kind=ExactLeaves, n=40, d=3, ridge=0.5, ridge_scale="leaf", collinear=False):
    rng = np.random.default_rng(seed)
    X, M = rng.standard_normal((n, d)), rng.random((n, d)) < 0.4
    if collinear:
        X[:, 1] = X[:, 0]
        M[:, 1] = M[:, 0]
    A, s = np.where(M, 0.0, X), rng.uniform(0.5, 2.0, n)
    return kind(M, A, A.sum(axis=1) + rng.standard_normal(n), s, ridge, ridge_scale)


def value(leaves, mask):
    lo, hi = leaves.cost(mask)
    assert lo <= hi <= lo + (1 << BITS - 100)
    return float(Fraction(int(lo)) / Fraction(2) ** leaves.shift)


@pytest.mark.parametrize("ridge_scale", ["leaf", "sample"])
@pytest.mark.parametrize("ridge", [0.0, 1e-14, 3.0])
@pytest.mark.parametrize("collinear", [False, True])
def test_squared_cost_solves_the_normal_equations(ridge, ridge_scale, collinear):
    leaves = random_leaves(0, ridge=ridge, ridge_scale=ridge_scale, collinear=collinear)
    for mask in range(1, leaves.everything, 3):
        rows = leaves.rows_of(mask)
        r = fraction(ridge) * (sum(map(fraction, leaves.s[rows])) if ridge_scale == "sample" else 1)
        s = np.diag(np.sqrt(leaves.s[rows]))
        Z = np.column_stack([np.ones(len(rows)), leaves.A[rows]])
        padded = np.vstack([s @ Z, np.sqrt(float(int(r.p) / int(r.q))) * np.eye(Z.shape[1])[1:]])
        target = np.append(s @ leaves.y[rows], np.zeros(Z.shape[1] - 1))
        w = np.linalg.lstsq(padded, target)[0]
        assert value(leaves, mask) == pytest.approx(np.sum((target - padded @ w) ** 2), rel=1e-9, abs=1e-12)
        H = fmpq_mat([[fraction(x) for x in row] for row in np.column_stack([Z, leaves.y[rows]])])
        G = H.transpose() * fmpq_mat(
            [[fraction(q) * H[i, j] for j in range(H.ncols())] for i, q in enumerate(leaves.s[rows])]
        )
        for j in range(1, Z.shape[1]):
            G[j, j] += r
        inner = fmpq_mat([[G[i, j] for j in range(Z.shape[1])] for i in range(Z.shape[1])])
        if inner.det() != 0:
            assert leaves.exact(mask) == G.det() / inner.det()


def total_loss(kind, e):
    losses = {
        AbsoluteLeaves: lambda: np.abs(e),
        QuantileLeaves: lambda: np.abs(e) / 2,
        HuberLeaves: lambda: 2.0 * huber(1.0, e),
    }
    return losses[kind]()


@pytest.mark.parametrize("kind", [AbsoluteLeaves, QuantileLeaves, HuberLeaves])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("collinear", [False, True])
def test_piecewise_cost_is_attained_by_no_other_point(kind, ridge, collinear):
    leaves = random_leaves(1, kind, ridge=ridge, collinear=collinear)
    s, A, y = leaves.s, leaves.A, leaves.y

    def cost(v):
        return s @ total_loss(kind, y - v[0] - A @ v[1:]) + ridge * (v[1:] @ v[1:])

    best = min(
        (minimize(cost, np.full(4, x), method="Powell", tol=1e-12) for x in (0.0, 0.5, 1.0)), key=lambda r: r.fun
    )
    assert value(leaves, leaves.everything) <= best.fun * (1 + 1e-12)
    assert value(leaves, leaves.everything) == pytest.approx(best.fun, rel=2e-3)


@pytest.mark.parametrize("constant", [False, True])
def test_logistic_cost(constant):
    def leaves_of_labels(M, A, y, *rest):
        return LogisticLeaves(M, np.column_stack([A, np.full(len(A), float(constant))]), y > 0, *rest)

    leaves = random_leaves(2, leaves_of_labels)
    y = np.where(leaves.y > 0, 1.0, -1.0)

    def cost(v):
        return leaves.s @ np.logaddexp(0, -y * (v[0] + leaves.A @ v[1:])) + 0.5 * (v[1:] @ v[1:])

    assert value(leaves, leaves.everything) == pytest.approx(minimize(cost, np.zeros(5), tol=1e-10).fun, rel=1e-9)


def set_partitions(P):
    """All partitions of P patterns, as lists of masks."""
    if P == 0:
        yield []
        return
    for masks in set_partitions(P - 1):
        yield [*masks, 1 << P - 1]
        for g in range(len(masks)):
            yield [*masks[:g], masks[g] | 1 << P - 1, *masks[g + 1 :]]


def is_box(patterns, mask, depth):
    inside = np.array([bool(mask >> p & 1) for p in range(len(patterns))])
    members = patterns[inside]
    return any(
        np.array_equal(inside, (patterns[:, S] == members[0, S]).all(axis=1))
        for k in range(depth + 1)
        for S in map(list, combinations(range(patterns.shape[1]), k))
    )


def is_tree(patterns, masks, depth):
    """Whether leaves come from splits: some feature separates them, and so on below."""
    if len(masks) == 1:
        return True
    for j in range(patterns.shape[1]) if depth else ():
        missing = sum(1 << p for p in np.flatnonzero(patterns[:, j]).tolist())
        sides = [[m for m in masks if not m & missing], [m for m in masks if not m & ~missing]]
        separated = all(sides) and len(sides[0]) + len(sides[1]) == len(masks)
        if separated and all(is_tree(patterns, side, depth - 1) for side in sides):
            return True
    return False


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("depth", "leaves"), [(1, None), (2, 3), (2, None), (3, 4)])
def test_partitions_by_plain_enumeration(seed, depth, leaves):
    costs = random_leaves(seed, n=30)
    exact = ExactOptimum(costs, min_rows=3)
    patterns, most = costs.patterns, leaves or len(costs.patterns)
    best = dict.fromkeys(("tree", "boxes", "groups"), FORBIDDEN)
    for masks in set_partitions(len(patterns)):
        if len(masks) <= most and all(map(exact.allowed, masks)):
            cost = sum(costs.cost(mask)[0] for mask in masks)
            best["groups"] = min(best["groups"], cost)
            if cost < best["boxes"] and all(is_box(patterns, mask, depth) for mask in masks):
                best["boxes"] = cost
            if cost < best["tree"] and is_tree(patterns, masks, depth):
                best["tree"] = cost
    found = {"tree": exact.tree(depth, leaves), "boxes": exact.boxes(depth, leaves), "groups": exact.groups(most)}
    assert {kind: low for kind, (low, _) in found.items()} == {
        kind: exact.fraction(cost) for kind, cost in best.items()
    }
    assert best["groups"] <= best["boxes"] <= best["tree"]
