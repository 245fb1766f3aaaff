"""Algorithm 2 of the paper: a local search over the imputed values that alternates with fits of f.

    mu_j = mean of the observed x_j,   sigma_j = std of the observed x_j / sqrt(number of observed rows)
    repeat   f = the predictor fitted to (x^mu, y)
             repeat   for each j:   epsilon = argmin over {-1, 0, 1} of error(y, f(x^(mu + epsilon sigma_j e_j)))
                                    mu_j = mu_j + epsilon sigma_j

The inner loop ends after 20 rounds, or after a round without moves. The outer loop ends after 10 rounds, after a round
without moves (f would be the same again), or when the error of the new f, at the mu it was fitted to, is not below that
of the previous f by a share of 1e-4. The last mu is returned, even if the new f is worse. The estimator then fits f
once more. The algorithm prints sqrt(n), its text the standard error of the mean: ``step_rows`` is which rows count.
The total weight of the rows counts as their number: weights that are ten times as large make the steps
smaller by sqrt(10), as ten copies of each row would.

A step must lower the error by more than rounding can, and the step down wins ties. :mod:`admiss.joint.moves` has the
rule, the plain search, which predicts every row for every candidate, and two that make the same moves with fewer
predictions, or, for linear predictors and the squared error, with none.

The authors' implementation differs in three points (``variant="authors"``): mu and sigma come from training and test
rows together (``reference``), coordinates are in random order, and the outer loop has no tolerance.

Trees, forests and boosting grow leaves around the imputed spike, so small steps of mu improve no prediction and the
search hardly ever moves: ``python -m experiments bench joint`` (``make_synthetic``, 1000 rows, 10 and 30 features, MCAR
and censoring, seed 0) counts 90 to 3,575 moves for least squares, none for trees and forests, and 5 once for XGBoost.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from admiss.estimator.notices import warn
from admiss.joint.moves import Moves, batched_moves, linear_moves, plain_moves
from admiss.joint.problem import Imputation, JointProblem, Round, imputed
from admiss.terminal.progress import counter
from formulations.arrays import FloatArray, IntArray
from formulations.jit import is_interrupt

ORDERS = ("cyclic", "shuffled")
VARIANTS = ("text", "authors")
STEP_ROWS = ("observed", "all")


@dataclass(frozen=True, eq=False)  # arrays of reference rows cannot be compared by ==
class PaperSearch:
    """Algorithm 2 of the paper, as an ``ImputationSearch``.

    The steps depend on the scale of the weights, which are taken as numbers of rows.

    Parameters
    ----------
    order : {"cyclic", "shuffled"}
        Features from first to last, or in a new random order in every inner round.
    variant : {"text", "authors"}
        The algorithm of the text, or the authors' implementation: always shuffled, without a tolerance.
    inner_rounds, outer_rounds : int
        Largest number of rounds of each loop.
    tolerance : float
        The outer loop ends when the error falls by less than this share.
    reference : array of shape (rows, d), optional
        For "authors": training and test rows, from which the first mu and the steps are computed.
    step_rows : {"observed", "all"}
        The n of sigma_j: rows in which x_j is observed, or all rows.
    accelerated : bool
        Make the same moves without predicting all rows for every candidate. The prediction of a row must not depend, up
        to rounding, on the rows predicted with it.

    Examples
    --------
    >>> from admiss.datasets import make_synthetic
    >>> from admiss.joint import JointImputeRegressor, PaperSearch
    >>> data = make_synthetic(n=200, mechanism="censoring", random_state=0)
    >>> model = JointImputeRegressor(algorithm=PaperSearch(outer_rounds=3)).fit(data.X_train, data.y_train)
    >>> errors = [round.error for round in model.history_]
    >>> len(errors), errors == sorted(errors, reverse=True)
    (3, True)
    """

    order: str = "cyclic"
    variant: str = "text"
    inner_rounds: int = 20
    outer_rounds: int = 10
    tolerance: float = 1e-4
    reference: FloatArray | None = field(default=None, repr=False)
    accelerated: bool = True
    step_rows: str = "observed"

    def __call__(self, problem: JointProblem, random_state: np.random.RandomState) -> Imputation:
        """Run the search."""
        self._check(problem)
        mu, step = self.start(problem)
        history: list[Round] = []
        best = (np.inf, mu)
        with counter("outer rounds") as report:
            for number in range(1, self.outer_rounds + 1):
                try:
                    f = problem.fit(mu)
                    error = problem.total_error(problem.outputs(f, imputed(problem.X, mu)))
                    best = min(best, (error, mu), key=lambda pair: pair[0])
                    history.append(Round(error))
                    if self._stalls(history):
                        return Imputation(mu, tuple(history), "the error fell by less than the tolerance")
                    search = inner_search(problem, f, mu, step, self.orders(problem, random_state), self.accelerated)
                except Exception as failure:
                    if not history or is_interrupt(failure):
                        raise
                    note = f"the predictor failed in round {number} ({type(failure).__name__}: {failure})"
                    warn(f"The search ended early, with its best imputed values so far: {note}.")
                    return Imputation(best[1], tuple(history), note)
                history[-1] = Round(error, search.moves)
                mu = search.mu
                report(number, self.outer_rounds)
                if not search.moves:
                    return Imputation(mu, tuple(history), "no step lowers the error")
        return Imputation(mu, tuple(history), f"{self.outer_rounds} outer rounds")

    def _stalls(self, history: list[Round]) -> bool:
        if self.variant == "authors" or len(history) < 2:
            return False
        before, after = history[-2].error, history[-1].error
        return before - after < self.tolerance * before

    def _check(self, problem: JointProblem) -> None:
        for name, known in (("order", ORDERS), ("variant", VARIANTS), ("step_rows", STEP_ROWS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {getattr(self, name)!r}.")
        for name in ("inner_rounds", "outer_rounds"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be a positive integer, not {value!r}.")
        if not 0 <= self.tolerance < np.inf:
            raise ValueError(f"tolerance must be a non-negative number, not {self.tolerance!r}.")
        if self.reference is not None and self.variant != "authors":
            raise ValueError("reference is for variant='authors' only: the text takes the training rows.")
        if self.reference is not None and np.shape(self.reference)[1:] != problem.X.shape[1:]:
            raise ValueError(f"reference must have {problem.X.shape[1]} features, like X.")

    def start(self, problem: JointProblem) -> tuple[FloatArray, FloatArray]:
        """The initial mu, and the steps."""
        if self.reference is not None:
            reference = np.asarray(self.reference, dtype=float)
            problem = JointProblem(reference, np.zeros(len(reference)), np.ones(len(reference)), None, "squared")
        counted = ~problem.M if self.step_rows == "observed" else np.ones_like(problem.M)
        weight = np.where(counted, problem.sample_weight[:, None], 0.0).sum(axis=0)
        return problem.means(), problem.deviations() / np.sqrt(np.where(weight > 0, weight, 1.0))

    def orders(self, problem: JointProblem, random_state: np.random.RandomState) -> IntArray:
        """The order of the features in each inner round."""
        d = problem.X.shape[1]
        if self.order == "cyclic" and self.variant == "text":
            return np.tile(np.arange(d), (self.inner_rounds, 1))
        return np.array([random_state.permutation(d) for _ in range(self.inner_rounds)])


def inner_search(
    problem: JointProblem, f: Any, mu: FloatArray, step: FloatArray, orders: IntArray, accelerated: bool = True
) -> Moves:
    """The inner loop for a fitted f, plain or accelerated.

    Parameters
    ----------
    problem : JointProblem
    f : fitted predictor
    mu, step : arrays of shape (d,)
        The initial values, and sigma.
    orders : array of shape (rounds, d)
        The order of the features in each round.
    accelerated : bool

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [np.nan]])
    >>> problem = JointProblem(X, np.array([0.0, 1.0, 2.0, 1.8]), np.ones(4), LinearRegression(), "squared")
    >>> mu, step = problem.means(), np.array([0.25])
    >>> f, orders = problem.fit(mu), np.zeros((20, 1), dtype=int)
    >>> plain = inner_search(problem, f, mu, step, orders, accelerated=False)
    >>> fast = inner_search(problem, f, mu, step, orders)
    >>> plain.moves == fast.moves, plain.moves, plain.predicted_rows, fast.predicted_rows
    (True, ((0, 0.25), (0, 0.25)), 28, 4)
    """
    if not accelerated:
        return plain_moves(problem, f, mu, step, orders)
    X = imputed(problem.X, mu)
    outputs = problem.outputs(f, X)
    can_move = problem.M.any(axis=0) & (step > 0)
    orders = orders[can_move[orders]].reshape(len(orders), -1)
    moves = linear_moves(problem, f, X, outputs, mu, step, orders)
    return batched_moves(problem, f, X, outputs, mu, step, orders) if moves is None else moves
