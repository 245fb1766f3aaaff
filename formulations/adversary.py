"""The reallocation of missingness patterns across rows that hides the largest values.

The adversarially missing design of the paper (appendix on synthetic signals, "Adversarially Missing"): each row keeps
its values x_i and takes the pattern of another row, such that the sum of all missing values is largest. How often a
pattern occurs does not change, so this is a transportation problem:

Sets        i in 1 .. n        rows
            k in 1 .. P        distinct patterns m^k
Data        c_ik = x_i'm^k     sum of the values of row i hidden by pattern k
            n_k                number of rows with pattern k
Variables   z_ik >= 0          row i takes pattern k
Objective   min  - sum_ik c_ik z_ik
Constraints one_pattern  sum_k z_ik = 1
            as_often     sum_i z_ik = n_k

Its matrix is totally unimodular: vertices are integral, so no variable is declared integer. HiGHS finds a vertex by
interior point and crossover. At 25,000 rows and 20 patterns its simplex method takes four to eight times longer, and
presolve, which finds nothing to remove, doubles the time; at 5,000 rows the methods take the same time.

The proof is by weak duality. For any prices u_k of the patterns, and any reallocation s,

    sum_k n_k u_k + sum_i max_k (c_ik - u_k)  -  sum_i c_is(i)  =  sum_i r_is(i)
    r_ik = max_l (c_il - u_l) - (c_ik - u_k)

since s takes each k n_k times. The left side is the gap between dual and primal. The right side, the regrets of the
rows at these prices, is a sum of non-negative numbers without cancellation: it is the gap of the certificate.

A solver works to a tolerance relative to the largest cost. If one feature is in millions (a budget) and another in
units (a rating), the values of the second are below the tolerance, and are not optimised. The regrets repair that. They
equal -c up to constants of rows and of patterns, so r in place of -c states the same problem. No reallocation better
than the current one, with gap g, has a row with r_ik > g, so min(r_ik, g) states it as well: a program in units of the
gap, with a tolerance that is finer by the same factor. It is solved until the gap is at rounding level, mostly once or
twice.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulations.arrays import FloatArray
from formulations.certificate import Certificate, SolverError, certify, clock
from formulations.linear_solver import LinearSolution, highs_version, solve_linear, time_left

OPTIONS = {"solver": "ipm", "run_crossover": "on", "presolve": "off"}


@dataclass(frozen=True)
class Reallocation:
    """Data of the program."""

    # c_ik, the sum that row i hides under pattern k.
    hidden: FloatArray
    # The current pattern of each row; a reallocation preserves how often each occurs.
    given: NDArray[np.intp]

    @property
    def counts(self) -> NDArray[np.intp]:
        """n_k, the number of rows with pattern k."""
        return np.bincount(self.given, minlength=self.hidden.shape[1])


def reallocate(X: ArrayLike, M: ArrayLike, *, time_limit: float | None = None) -> tuple[NDArray[Any], Certificate]:
    """Reallocate missingness patterns to the rows in which they hide the largest sum of values.

    Parameters
    ----------
    X : array of shape (n, d)
        Complete values.
    M : array of shape (n, d)
        1 (or True) if a value is missing.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    M : array of shape (n, d)
        The patterns in their new rows, of the type of ``M``.
    certificate : Certificate
        For the minimum of minus the hidden sum; if time is up, the best reallocation found.

    Raises
    ------
    ValueError
        If the input is invalid.
    SolverError
        If no reallocation was found.

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [3.0, 6.0], [2.0, 9.0]])
    >>> M = np.array([[1, 0], [0, 0], [0, 1]])
    >>> reallocated, certificate = reallocate(X, M)
    >>> reallocated.tolist()
    [[0, 0], [1, 0], [0, 1]]
    >>> certificate.objective, certificate.status
    (-12.0, 'optimal')
    """
    values, missing = np.asarray(X, dtype=float), np.asarray(M)
    if values.ndim != 2 or values.shape != missing.shape or not len(values):
        shapes = f"{values.shape} and {missing.shape}"
        raise ValueError(f"X and M must be matrices of the same shape with at least one row, not of {shapes}.")
    if not np.isfinite(values).all():
        raise ValueError("X must be complete, also where M is 1: impute values that are NaN or infinite first.")
    if not ((missing == 0) | (missing == 1)).all():
        raise ValueError("M must be 1 if a value is missing and 0 otherwise: it has other entries.")
    patterns, given = np.unique(missing.astype(bool), axis=0, return_inverse=True)
    with np.errstate(over="ignore", invalid="ignore"):
        hidden = values @ patterns.T.astype(float)
        if not np.isfinite(len(values) * np.ptp(hidden)) or not np.isfinite(np.abs(hidden).sum()):
            raise ValueError("The values of X are so large that their sums overflow: divide X by a constant.")
    selected, certificate = solve_reallocation(Reallocation(hidden, given.ravel()), time_limit=time_limit)
    return patterns[selected].astype(missing.dtype), certificate


def build_reallocation(costs: FloatArray, counts: NDArray[np.intp]) -> Any:
    """The program in Pyomo, for -c or any costs that differ from -c by constants of rows and of patterns."""
    import pyomo.environ as pyo

    n, P = costs.shape
    cost = costs.tolist()
    model = pyo.ConcreteModel()
    model.rows = pyo.RangeSet(0, n - 1)
    model.patterns = pyo.RangeSet(0, P - 1)
    model.z = pyo.Var(model.rows, model.patterns, domain=pyo.NonNegativeReals)
    z = model.z

    model.hidden = pyo.Objective(expr=pyo.quicksum(cost[i][k] * z[i, k] for i in range(n) for k in range(P)))

    model.one_pattern = pyo.Constraint(model.rows, rule=lambda model, i: pyo.quicksum(z[i, k] for k in range(P)) == 1)
    model.as_often = pyo.Constraint(
        model.patterns, rule=lambda model, k: pyo.quicksum(z[i, k] for i in range(n)) == int(counts[k])
    )
    return model


def solve_reallocation(
    problem: Reallocation, *, time_limit: float | None = None
) -> tuple[NDArray[np.intp], Certificate]:
    """The pattern of each row in the best reallocation, or in the best one found within the time limit."""
    start = clock()
    selected = problem.given
    prices = np.zeros(problem.hidden.shape[1])
    solved = False
    status = "optimal"
    regrets = _regrets(problem, prices)
    gap = _gap(regrets, selected)
    # each program is in units of the gap left by the one before: one or two are enough, unless a crossover fails
    for _ in range(5):
        if status != "optimal" or gap <= _rounding(problem, prices):
            break
        unit = min(gap, regrets.max().item())
        costs = np.minimum(regrets, unit) / unit
        try:
            solution = _solve(costs, problem.counts, time_left(time_limit, start))
        except KeyboardInterrupt:
            if not solved:
                raise
            status = "interrupted"
            break
        status = solution.status
        candidate = _assignment(solution, problem.counts)
        if candidate is not None:
            solved = True
            selected = min(selected, candidate, key=lambda rows: _gap(regrets, rows))
        prices = min(
            prices,
            prices - unit * _dual_prices(solution, costs),
            key=lambda prices: _gap(_regrets(problem, prices), selected),
        )
        regrets = _regrets(problem, prices)
        before, gap = gap, _gap(regrets, selected)
        if solved and gap > before / 2:  # no more progress
            break
    tolerance = _rounding(problem, prices)
    if not (solved or gap <= tolerance):
        reason = "a solution that is not integral" if status == "optimal" else f"the status {status!r}"
        raise SolverError(f"HiGHS found no reallocation and ended with {reason}: raise the time limit if there is one.")
    objective = 0.0 - _of_rows(problem.hidden, selected).sum().item()
    return selected, certify(objective, objective - gap, tolerance, status, "HIGHS", highs_version(), start)


def _solve(costs: FloatArray, counts: NDArray[np.intp], time_limit: float | None) -> LinearSolution:
    """Build and solve one program; an interrupt is passed on."""
    start = clock()
    model = build_reallocation(costs, counts)
    left = time_left(time_limit, start)
    if left == 0:
        return LinearSolution(None, -np.inf, "time limit", "HIGHS", highs_version(), clock() - start)
    solution = solve_linear(model, list(model.z.values()), time_limit=left, upper=1.0, options=OPTIONS)
    if solution.status == "interrupted":
        raise KeyboardInterrupt
    return solution


def _regrets(problem: Reallocation, prices: FloatArray) -> FloatArray:
    """r_ik, by how much pattern k is worse for row i than its best pattern at these prices."""
    worth = problem.hidden - prices
    return worth.max(axis=1, keepdims=True) - worth


def _gap(regrets: FloatArray, selected: NDArray[np.intp]) -> float:
    """Gap of a reallocation: the sum of the regrets of its rows."""
    return _of_rows(regrets, selected).sum().item()


def _of_rows(values: FloatArray, selected: NDArray[np.intp]) -> FloatArray:
    """The value of each row at its pattern."""
    return np.take_along_axis(values, selected[:, None], axis=1)


def _rounding(problem: Reallocation, prices: FloatArray) -> float:
    """Largest gap that can be due to rounding alone: 450 eps of the largest hidden sum."""
    size = np.abs(problem.hidden).max(axis=1).sum() + len(problem.hidden) * np.abs(prices).max()
    return 1e-13 * size.item()


def _assignment(solution: LinearSolution, counts: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """The reallocation that the values encode; None if they are fractional."""
    if solution.values is None:
        return None
    selected = solution.values.reshape(-1, len(counts)).argmax(axis=1)
    return selected if np.array_equal(np.bincount(selected, minlength=len(counts)), counts) else None


def _dual_prices(solution: LinearSolution, costs: FloatArray) -> FloatArray:
    """Duals of the patterns up to a constant, which cancels in regrets: costs minus reduced costs of any row."""
    if solution.reduced_costs is None:
        return np.zeros(costs.shape[1])
    return costs[0] - solution.reduced_costs[: costs.shape[1]]
