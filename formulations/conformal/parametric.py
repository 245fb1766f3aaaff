"""Thresholds of many patterns by a parametric simplex method for the program in ``program``.

At u = 0 the program does not depend on the test pattern: it is quantile regression on the calibration rows, solved once
(a dual simplex method whose steps pass several breakpoints at a time). For each test pattern the right-hand side
-u phi then moves from u = 0 to the wanted u. A basis is a set of K rows B with nonsingular Phi_B; it determines

    beta  = Phi_B^-1 S_B                                        residuals r_i = S_i - phi_i'beta, 0 in the basis
    eta_i = 1 - a if r_i > 0,  -a if r_i < 0                    outside the basis
    eta_B = -Phi_B^-T (u phi + sum of phi_i eta_i outside the basis)

and is optimal as long as eta_B stays within its bounds. The first one that reaches its bound leaves; beta moves along a
column of Phi_B^-1 until the residual of another row is 0, and that row enters. If there is none, the program is
infeasible from here on. t(u) = phi'beta is constant between two such events, so the left limit at 1 - a is the value on
the last stretch before it. An event within ``EVENT_TOLERANCE`` of the end counts as at the end: at worst the threshold
is t(u) with u that much smaller, which proves 1e-10 less (see ``program``).

Ties are broken by the largest pivot, and after many pivots by the smallest row (Bland's rule, which cannot cycle: bases
repeat only at one u, and there the method is a dual simplex method for the right-hand side at u + 0). Every threshold
is computed anew from its final basis, together with the largest violation of the conditions of optimality; if that is
not small, the stated program is solved instead. Rows are sorted by basis values and score first, so the result does not
depend on their order, and every pattern starts from the same basis, so it does not depend on other test patterns.
"""

from dataclasses import dataclass

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.conformal.pivots import GIVEN_UP, INFEASIBLE, dual_simplex, first_basis, walk
from formulations.conformal.program import ThresholdProblem, solve_threshold

# Share of a column outside the span of others, and of a test pattern outside that of the rows, that is rounding.
COLUMN_TOLERANCE, ROW_TOLERANCE = 1e-9, 1e-7
# Largest violation of the conditions of optimality, in units of the largest score and of eta.
VIOLATION_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of test patterns.

    Attributes
    ----------
    values : array of shape (P,)
        The thresholds, possibly infinite.
    violation : float
        Largest violation of the conditions of optimality, in units of the largest score and of eta.
    pivots : int
        Number of pivots.
    n_stated : int
        Patterns for which the stated program was solved.
    """

    values: FloatArray
    violation: float
    pivots: int
    n_stated: int


def conservative_thresholds(problem: ThresholdProblem, patterns: FloatArray) -> Thresholds:
    """The left limits of t(u) at u = 1 - a; ``patterns`` has phi of each test pattern, of shape (P, K).

    Examples
    --------
    >>> problem = ThresholdProblem(np.array([3.0, 1.0, 2.0]), np.ones((3, 1)), 0.25)
    >>> conservative_thresholds(problem, np.ones((1, 1))).values.tolist()
    [3.0]
    """
    return thresholds_at(problem, patterns, np.full(len(patterns), 1.0 - problem.miscoverage))


def thresholds_at(problem: ThresholdProblem, patterns: FloatArray, u: FloatArray) -> Thresholds:
    """The thresholds t(u) of test patterns, each at its own u; where t jumps, the limit from the side of u = 0."""
    a = problem.miscoverage
    infinite = np.where(patterns.any(axis=1), np.copysign(np.inf, u), np.inf)
    columns, inside = _independent_columns(problem.basis, patterns)
    known = inside & patterns.any(axis=1)
    if not known.any():
        return Thresholds(infinite, 0.0, 0, 0)
    rows, codes, scores = _sorted_rows(problem.basis[:, columns], problem.scores)
    size = np.exp2(np.round(np.log2(np.abs(rows).max(axis=0))))
    rows, phi = rows / size, patterns[known][:, columns] / size
    unit = float(np.exp2(np.round(np.log2(np.abs(scores).max() or 1.0))))
    found, outcome, violations, pivots = _solve(rows, codes, scores / unit, a, phi, u[known])
    values = np.where(outcome == INFEASIBLE, infinite[known], found * unit)
    doubtful = np.flatnonzero((outcome == GIVEN_UP) | ~(violations <= VIOLATION_TOLERANCE))
    for p in doubtful.tolist():
        below = min(float(u[known][p]), problem.limit)
        values[p] = solve_threshold(problem, patterns[known][p], below)[0]
    infinite[known] = values
    trusted = np.delete(violations, doubtful)
    return Thresholds(infinite, float(trusted.max(initial=0.0)), pivots, len(doubtful))


def _independent_columns(basis: FloatArray, patterns: FloatArray) -> tuple[IntArray, BoolArray]:
    """A maximal set of independent columns of the basis, and which test patterns its rows span."""
    size = np.abs(np.vstack([basis, patterns])).max(axis=0)
    size[size == 0] = 1.0
    distinct = np.unique(basis / size, axis=0)
    # Gram-Schmidt over the columns in their order, so that a constant comes first
    columns: list[int] = []
    Q = np.empty((len(distinct), 0))
    for k in range(basis.shape[1]):
        column = distinct[:, k]
        rest = column - Q @ (Q.T @ column)
        rest -= Q @ (Q.T @ rest)
        norm = float(np.linalg.norm(rest))
        if norm > COLUMN_TOLERANCE * max(1.0, float(np.linalg.norm(column))):
            columns.append(k)
            Q = np.column_stack([Q, rest / norm])
    # a pattern is spanned if the other columns depend on these as they do in the rows
    chosen, tests = distinct[:, columns], patterns / size
    others = np.delete(distinct, columns, axis=1)
    dependence = np.linalg.lstsq(chosen, others, rcond=None)[0] if columns else np.zeros((0, others.shape[1]))
    misfit = np.abs(np.delete(tests, columns, axis=1) - tests[:, columns] @ dependence).max(axis=1, initial=0.0)
    return np.array(columns, dtype=np.int64), misfit <= ROW_TOLERANCE * np.maximum(1.0, np.abs(tests).max(axis=1))


def _sorted_rows(basis: FloatArray, scores: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
    """Distinct rows of the basis, and for rows in sorted order the index of theirs and the score."""
    rows, codes = np.unique(basis, axis=0, return_inverse=True)
    order = np.lexsort((scores, codes.ravel()))
    return rows, codes.ravel()[order], scores[order]


def _solve(
    rows: FloatArray, codes: IntArray, scores: FloatArray, a: float, phi: FloatArray, u: FloatArray
) -> tuple[FloatArray, IntArray, FloatArray, int]:
    """Value, outcome and violation of each pattern, and the number of pivots."""
    order = np.argsort(np.abs(scores - np.quantile(scores, 1.0 - a)), kind="stable")  # a basis near the quantile
    members, inverse = first_basis(rows, codes, order)
    residuals = scores - (rows @ (inverse @ scores[members]))[codes]
    sides = np.where(residuals > 0, 1, 0)
    pivots = dual_simplex(rows, codes, a, members, inverse, residuals, sides)
    values, violations = np.zeros(len(phi)), np.zeros(len(phi))
    outcomes = np.full(len(phi), GIVEN_UP)
    if pivots >= 0:
        pivots += walk(
            rows, codes, scores, a, (members, inverse, residuals, sides),
            np.ascontiguousarray(phi), np.ascontiguousarray(u), values, outcomes, violations,
        )  # fmt: skip
    return values, outcomes, violations, abs(int(pivots))
