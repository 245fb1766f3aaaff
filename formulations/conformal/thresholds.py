"""Thresholds of many patterns: the program in ``program``, solved again for each pattern by HiGHS.

At u = 0 the program does not depend on the test pattern: it is quantile regression on the calibration rows, solved
once. For a test pattern only the right-hand side -u phi differs, and the dual simplex method takes a few steps from the
optimal basis at u = 0. In the final basis, a set B of rows and a set Z of constraints that depend on the others,

    phi_i'beta = S_i  for i in B,      beta_k = 0  for k in Z,      t(u) = phi'beta,

which is solved anew, so that the threshold is a score where phi says so. Calibration rows are sorted first, and every
pattern starts from the same basis: the result depends neither on the order of the rows nor on other test patterns.

Levels are exact numbers: 0.9 is the decimal number that was typed, not its neighbour in binary. With 99 scores the rank
of split conformal prediction is 90, and no rounding makes it 91.
"""

from fractions import Fraction
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp

from formulations.arrays import FloatArray
from formulations.certificate import SolverError
from formulations.conformal.program import TOLERANCES, ThresholdProblem


def conservative_thresholds(problem: ThresholdProblem, patterns: FloatArray) -> FloatArray:
    """The left limits of t(u) at u = 1 - a; ``patterns`` has phi of each test pattern, of shape (P, K).

    Examples
    --------
    >>> problem = ThresholdProblem(np.array([3.0, 1.0, 2.0]), np.ones((3, 1)), 0.25)
    >>> conservative_thresholds(problem, np.ones((1, 1))).tolist()
    [3.0]
    """
    return thresholds_at(problem, patterns, np.full(len(patterns), problem.limit))


def thresholds_at(problem: ThresholdProblem, patterns: FloatArray, u: FloatArray) -> FloatArray:
    """The thresholds t(u) of test patterns, each at its own u."""
    order = np.lexsort((problem.scores, *problem.basis.T))
    size = _power_of_two(np.abs(np.vstack([problem.basis, patterns])).max(axis=0))
    unit = float(_power_of_two(np.abs(problem.scores).max()))
    basis = problem.basis[order] / size
    phi = patterns / size
    scores = problem.scores[order] / unit
    highs = _program_at_zero(scores, basis, problem.miscoverage)
    start = highs.getBasis()
    thresholds = np.full(len(patterns), np.inf)
    for p in np.flatnonzero(patterns.any(axis=1)).tolist():
        at = min(float(u[p]), problem.limit)
        highs.clearSolver()  # forgets the pattern before
        highs.setBasis(start)
        for k, side in enumerate((-at * phi[p]).tolist()):
            highs.changeRowBounds(k, side, side)
        if _is_feasible(highs):
            thresholds[p] = unit * float(phi[p] @ _coefficients(highs, scores, basis))
        else:
            thresholds[p] = np.copysign(np.inf, at)
    return thresholds


def _power_of_two(size: Any) -> Any:
    """The power of 2 next to each size, 1 for 0: division by it changes no digit."""
    return np.exp2(np.round(np.log2(np.where(size > 0, size, 1.0))))


def _program_at_zero(scores: FloatArray, basis: FloatArray, a: float) -> Any:
    """The program at u = 0 in HiGHS, minimising -V(u), solved."""
    n, K = basis.shape
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n, K
    lp.col_cost_ = -scores
    lp.col_lower_ = np.full(n, -a)
    lp.col_upper_ = np.full(n, 1.0 - a)
    lp.row_lower_ = lp.row_upper_ = np.zeros(K)
    columns = sp.csc_array(basis.T)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = columns.indptr
    lp.a_matrix_.index_ = columns.indices
    lp.a_matrix_.value_ = columns.data
    highs = highspy.Highs()
    settings: dict[str, Any] = {
        "output_flag": False,
        "threads": 1,
        "presolve": "off",
        "solver": "simplex",
        **TOLERANCES,
    }
    for name, value in settings.items():
        highs.setOptionValue(name, value)
    highs.passModel(lp)
    _is_feasible(highs)
    return highs


def _is_feasible(highs: Any) -> bool:
    """Solve the program from its basis; returns whether it has a solution."""
    highs.run()
    status = highs.getModelStatus()
    if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible):
        words = highs.modelStatusToString(status).lower()
        raise SolverError(f"The threshold of a pattern was not found: the solver ended with {words}.")
    return bool(status == highspy.HighsModelStatus.kOptimal)


def _coefficients(highs: Any, scores: FloatArray, basis: FloatArray) -> FloatArray:
    """beta of the basis in which the solver ended."""
    _, basic = highs.getBasicVariables()
    K = basis.shape[1]
    matrix, right = np.zeros((K, K)), np.zeros(K)
    for i, variable in enumerate(sorted(basic)):
        if variable >= 0:
            matrix[i], right[i] = basis[variable], scores[variable]
        else:
            matrix[i, -1 - variable] = 1.0
    return np.asarray(np.linalg.solve(matrix, right))


def miscoverage(level: float) -> float:
    """a = 1 - level, correctly rounded.

    Examples
    --------
    >>> 1 - 0.9, miscoverage(0.9)
    (0.09999999999999998, 0.1)
    """
    return float(1 - _exact(level))


def conformal_rank(n: int, level: float) -> int:
    """The smallest whole number k >= (n + 1) level.

    Examples
    --------
    >>> conformal_rank(99, 0.9), conformal_rank(100, 0.9), conformal_rank(8, 0.9)
    (90, 91, 9)
    """
    return -int(-(n + 1) * _exact(level) // 1)


def order_threshold(scores: FloatArray, level: float) -> float:
    """The score of rank ``conformal_rank``: the threshold of split conformal prediction, infinite if there is none.

    Examples
    --------
    >>> order_threshold(np.array([3.0, 1.0, 2.0]), 0.75), order_threshold(np.array([3.0, 1.0, 2.0]), 0.9)
    (3.0, inf)
    """
    rank = conformal_rank(len(scores), level)
    return float(np.partition(scores, rank - 1)[rank - 1]) if rank <= len(scores) else np.inf


def _exact(level: float) -> Fraction:
    return Fraction(repr(float(level)))
