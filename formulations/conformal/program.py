"""Thresholds whose coverage holds for every function of the missingness pattern in a linear class.

Conditional calibration (Gibbs, Cherian and Candes 2023, arXiv 2305.12616) with functions of the pattern.

Data
    S in R^n                  scores of the calibration rows
    Phi in R^{n x K}          rows phi_i = phi(m_i): a basis of functions of the pattern
    phi in R^K                the basis at the pattern m of the test row
    0 < a < 1                 miscoverage; the level is 1 - a
    -a < u < 1 - a            multiplier of the test row
Variables
    eta in R^n                multipliers of the calibration rows
Objective
    V(u) = maximise  sum_i S_i eta_i
Constraints
    sum_i phi_i eta_i = -u phi                                                   (balance, with multipliers beta)
    -a <= eta_i <= 1 - a

The threshold is t(u) = phi'beta(u) = -V'(u), which is nondecreasing in u since V is concave. Where the program is
infeasible, t is +infinity if u > 0 and -infinity if u < 0. The conservative set is {S <= t}, t the left limit of t(u)
at u = 1 - a; the randomised one is {S <= t(U)} with U uniform on (-a, 1 - a), independent of everything else given m.
A pattern with phi = 0 is seen by no function of the class: its threshold is +infinity.

*Origin.* Quantile regression of the scores of all n + 1 rows, with the loss (1 - a) r^+ + a r^- of r = S_i - phi_i'b,
has the dual

    maximise  sum_{i <= n + 1} S_i eta_i   subject to   sum_{i <= n + 1} phi_i eta_i = 0,   -a <= eta_i <= 1 - a.   (D)

If the score of the test row is s, its multiplier maximises V(u) + u s over u in [-a, 1 - a].

*Conservative guarantee.* For exchangeable rows, scores from a model that was fitted on other rows, and every f >= 0 in
the span of phi, E[f(M) (1{covered} - (1 - a))] >= 0. Proof: let eta be the optimal solution of (D) with the smallest
norm; it is unique, so permuting the rows permutes it, and E[f(M) eta_{n+1}] is the mean of sum_i f(m_i) eta_i / (n + 1)
= 0 by the balance. If the test row is not covered, s > t, then V(u) + u s increases strictly up to u = 1 - a, so that
eta_{n+1} = 1 - a; otherwise eta_{n+1} >= -a. Hence 0 >= E[f(M) ((1 - a) 1{not covered} - a 1{covered})], which is the
claim. A density ratio f of test to calibration patterns that lies in the span is such an f: the coverage holds under
that shift of the law of M if the law of (X, Y) given M stays. Nothing is assumed on how M depends on (X, Y).

*Randomised guarantee.* Equality, for every f in the span, if the scores given the patterns have a joint density. Proof:
let [l, h] be the maximisers of V(u) + u s. For almost every U, s <= t(U) = -V'(U) if and only if U > l, which has
probability 1 - a - l. Almost surely no K + 1 rows lie on one hyperplane of regression, so the solution of (D) is unique
and l = eta_{n+1}: E[f(M) 1{covered}] = E[f(M) (1 - a - eta_{n+1})] = (1 - a) E[f(M)]. With ties l is at most eta_{n+1},
and the equality is at least, for f >= 0.

*Evaluated below the limit.* A threshold t(u) with u = (1 - a)(1 - e) proves u / (u + a) = 1 - a - a (1 - a) e + O(e^2)
in place of 1 - a (by the proof above with eta_{n+1} >= u where the row is not covered): 9e-10 less for a = .1 and
e = 1e-8, the value with which the solver is called.

*Infinite thresholds.* If f = 1{m in A} is in the span and m in A, the balance over f says that the eta_i of the rows in
A sum to -u, and so does eta_i >= -a: with fewer than (1 - a) / a calibration rows in A the threshold is infinite.

*Levels.* Regression quantiles may cross: t for a larger level is not always the larger one (phi = 1 excepted). Whoever
wants nested sets takes the largest threshold of the lower levels that are asked for, which keeps the coverage above.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from formulations.arrays import FloatArray
from formulations.certificate import GAP_TOLERANCE, Certificate, SolverError, certify, clock
from formulations.linear_solver import HIGHS_TOLERANCE, solve_linear

TOLERANCES = {"primal_feasibility_tolerance": HIGHS_TOLERANCE, "dual_feasibility_tolerance": HIGHS_TOLERANCE}
# Share by which HiGHS stays below the limit u = 1 - a, clearly more than its tolerance: t jumps at the limit itself.
BELOW_LIMIT = 100.0 * HIGHS_TOLERANCE


@dataclass(frozen=True)
class ThresholdProblem:
    """Calibration scores S, their basis functions Phi, and the miscoverage a."""

    scores: FloatArray
    basis: FloatArray
    miscoverage: float

    @property
    def limit(self) -> float:
        """The multiplier at which a solver evaluates the conservative threshold."""
        return (1 - self.miscoverage) * (1 - BELOW_LIMIT)


def threshold_program(problem: ThresholdProblem, phi: FloatArray, u: float) -> Any:
    """The program in Pyomo, minimising -V(u); every basis function is nonzero in some row."""
    import pyomo.environ as pyo

    S = problem.scores
    Phi = problem.basis
    a = problem.miscoverage
    n, K = Phi.shape
    model = pyo.ConcreteModel()
    model.eta = pyo.Var(range(n), bounds=(-a, 1 - a))
    model.score = pyo.Objective(expr=-pyo.quicksum(float(S[i]) * model.eta[i] for i in range(n)))

    def balance(model: Any, k: int) -> Any:
        rows = np.flatnonzero(Phi[:, k]).tolist()
        return pyo.quicksum(float(Phi[i, k]) * model.eta[i] for i in rows) == -u * float(phi[k])

    model.balance = pyo.Constraint(range(K), rule=balance)
    return model


def solve_threshold(problem: ThresholdProblem, phi: FloatArray, u: float) -> tuple[float, Certificate | None]:
    """The threshold t(u) from the stated program, with its certificate; none if the threshold is infinite.

    Raises
    ------
    SolverError
        If the solver proves neither optimality nor infeasibility.
    """
    start = clock()
    if not phi.any():
        return np.inf, None
    used = problem.basis.any(axis=0)
    if u and phi[~used].any():
        return float(np.copysign(np.inf, u)), None
    unit = float(np.abs(problem.scores).max()) or 1.0
    model = threshold_program(
        replace(problem, scores=problem.scores / unit, basis=problem.basis[:, used]), phi[used], u
    )
    solution = solve_linear(model, list(model.eta.values()), options=dict(TOLERANCES))
    if solution.status == "infeasible":
        return float(np.copysign(np.inf, u)), None
    if solution.status != "optimal" or solution.values is None:
        raise SolverError(f"The threshold of a pattern was not found: the solver ended with {solution.status}.")
    beta = -unit * np.array([solution.duals[id(constraint)] for constraint in model.balance.values()])
    certificate = certify(
        -float(problem.scores @ solution.values), solution.bound * unit,
        GAP_TOLERANCE * max(unit, float(np.abs(problem.scores).sum())), solution.status,
        solution.solver, solution.version, start,
    )  # fmt: skip
    return float(phi[used] @ beta), certificate
