"""A lower bound on every tree of depth t, for sizes at which boxes cannot be enumerated.

Data        rows i with pattern m_i, leaf features a_i, target y_i and weight s_i, see :mod:`formulations.leaves.cost`
            F   features that may be split on
Bound       min over w, b of   sum_i s_i (y_i - b(m_i) - sum_j w_j(m_i) a_ij)^2
            b and w_j polynomials of order t in the indicators m_f, f in F

A leaf of a tree of depth t fixes at most t indicators, so its indicator is a product of at most t factors m_f or
1 - m_f: a polynomial of order t. The model of a tree is the sum over its leaves of this indicator times the leaf's
model. Any tree of depth t is therefore feasible in this problem; a ridge only adds to the cost of the tree.

This is one least-squares problem with a column for each monomial and for each product of monomial and leaf feature. QR
factorisations of blocks of rows reduce it to as many rows as columns, a last one with pivoting finds its rank. Products
of monomials are often exactly dependent, and directions below the rounding of the data are dropped. The squared
residual is lowered by its rounding error.

If it has too many columns, or columns that are nearly but not exactly dependent, the order is raised until every
pattern has its own model. That is one small problem per pattern, with its interval in exact arithmetic; it bounds trees
of any depth, but is informative only if patterns have many rows.
"""

from itertools import combinations
from math import comb

import numpy as np
import scipy.linalg

from formulations.arrays import BoolArray, IntArray
from formulations.leaves.cost import LeafCost, PatternTotals
from formulations.leaves.squared import SquaredLeafCost
from formulations.rounding import UNIT, gamma

# Largest product of rows and squared columns (some ten seconds).
MOST_WORK = 2e11
# Rows factored at a time, in addition to as many as there are columns.
BLOCK = 4096
# Rounding error of the squared residual, as a share of y'y.
SLACK = 1e-11
# Pivots below this of columns of norm 1, and not rounding, are those of columns that nearly depend on others.
NEARLY_DEPENDENT = 1e-6


def polynomial_bound(leaf_cost: LeafCost, features: IntArray, depth: int) -> float:
    """Lower bound on the cost of every tree of this depth; the trivial bound 0 for losses other than squared.

    It is 0 too if the rows of single patterns are not known.
    """
    if not isinstance(leaf_cost, SquaredLeafCost) or not leaf_cost.knows_patterns:
        return 0.0
    rows, depth = leaf_cost.rows, min(depth, len(features))
    if isinstance(rows, PatternTotals) or _too_large(leaf_cost, sum(comb(len(features), k) for k in range(depth + 1))):
        return _residual_of_patterns(leaf_cost)
    monomials = _monomials(rows.patterns[:, features], depth)
    # If a feature is 0 in all rows of a monomial, their product is 0, and a multiple of the monomial after centring.
    present = np.logical_or.reduceat(rows.A != 0, rows.start[:-1], axis=0)
    useful = np.column_stack([np.ones(len(monomials), dtype=bool), (monomials.astype(float) @ present) > 0])
    if _too_large(leaf_cost, int(useful.sum())):
        return _residual_of_patterns(leaf_cost)
    return _residual(leaf_cost, monomials, useful)


def _too_large(leaf_cost: SquaredLeafCost, n_columns: int) -> bool:
    n_rows = len(leaf_cost.rows.s)
    return n_columns >= n_rows or n_rows * n_columns**2 > MOST_WORK


def _residual_of_patterns(leaf_cost: SquaredLeafCost) -> float:
    """Lower end of the sum of the squared residuals of each pattern's own model."""
    unpenalised = leaf_cost.with_ridge(0.0)
    several = np.flatnonzero(leaf_cost.rows.counts > 1)
    return sum(unpenalised.interval(np.array([p]))[0] for p in several) * (1.0 - gamma(len(several) + 2))


def _monomials(M: BoolArray, order: int) -> BoolArray:
    """The distinct monomials of the patterns up to an order, one per row, without those that are 0 everywhere."""
    products = [M[:, list(S)].all(axis=1) for k in range(order + 1) for S in combinations(range(M.shape[1]), k)]
    distinct = np.unique(np.packbits(products, axis=1), axis=0)
    held = np.unpackbits(distinct, axis=1, count=len(M)).astype(bool)
    return np.asarray(held[held.any(axis=1)])


def _residual(leaf_cost: SquaredLeafCost, monomials: BoolArray, useful: BoolArray) -> float:
    """Squared residual of y on the useful products of monomials and leaf features, minus its rounding error."""
    Z, rows = leaf_cost.Z, leaf_cost.rows
    pattern_of = np.repeat(np.arange(len(rows.patterns)), rows.counts)
    monomial, column = np.nonzero(useful)
    R = np.empty((0, len(column) + 1))
    for begin in range(0, len(Z), BLOCK):
        part = slice(begin, begin + BLOCK)
        inside = monomials[:, pattern_of[part]].T
        block = np.column_stack([Z[part, column] * inside[:, monomial], Z[part, -1]])
        R = scipy.linalg.qr(np.vstack([R, block]), mode="r", overwrite_a=True, check_finite=False)[0][: R.shape[1]]
    norms = np.linalg.norm(R, axis=0)
    R = R / np.where(norms > 0, norms, 1.0)
    y = R[:, -1]
    Q, T, _ = scipy.linalg.qr(R[:, :-1], mode="economic", pivoting=True, check_finite=False)
    pivots = np.abs(np.diag(T))
    dependent = pivots <= UNIT * len(Z)
    if np.any(~dependent & (pivots < NEARLY_DEPENDENT)):
        return _residual_of_patterns(leaf_cost)
    Q = Q[:, ~dependent]
    residual = y - Q @ (Q.T @ y)
    return max(0.0, float(residual @ residual) - SLACK) * float(norms[-1] * leaf_cost.unit[-1]) ** 2
