"""The logistic loss and those with a log link on a design: cells and columns without a best fit, and centred paths.

The risk may have no minimiser.

* If all rows of a cell with a free intercept b are of one class, the risk falls to its infimum as |b| grows. These rows
  are taken out of the program, and b is set to log-odds at which their loss is 1e-13; without a structure on W the
  other coefficients do not depend on these rows. The loss is part of the objective, and not of the bound.
* If some combination of columns without penalty separates the classes (no row on the wrong side, some on the right
  one), larger coefficients are always better: that is an error.
* With a log link the same holds for cells whose targets are all 0, and for combinations that are 0 where the target is
  positive, and never positive where it is 0. The Gamma loss has targets above 0, and always a minimiser.

A fit follows a path in centred columns to its own penalty, and is then proven from the rows.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from admiss._version import __version__
from admiss.linear.design import Design
from admiss.linear.penalty import UnitPenalties, UnitProgram, lambdas_to_one
from admiss.linear.stated_program import ACCEPTED, Fit, Structure, solve_stated
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.certificate import ROUNDING, certify, gap_tolerance
from formulations.erm.dual_bound import prove_centred
from formulations.erm.logistic_path import GRADIENT_TOLERANCE, logistic_path
from formulations.erm.logistic_ridge import FEW_COLUMNS, LogisticRidge
from formulations.erm.optimality import polish
from formulations.erm.quadratic_path import Path
from formulations.erm.risk import CentredRisk, EmpiricalRisk, centred, null_risk
from formulations.log_link import LogLink
from formulations.losses import Loss

# Log-odds of a cell with a single class: its loss, log(1 + exp(-30)), is 1e-13. With a log link the loss of a cell
# whose targets are all 0 is that share of the others'.
CERTAIN = 30.0
# Lambdas of the path to a single fit, per factor of 10 below the lambda at which all coefficients are 0.
STEPS = 2


@dataclass(frozen=True)
class LogisticProblem:
    """The risk of one target in centred columns, and the predictors of the cells without a best fit."""

    projected: CentredRisk
    certain: FloatArray

    @classmethod
    def of(cls, risk: EmpiricalRisk, free: BoolArray, certain: FloatArray) -> "LogisticProblem":
        """The problem of a risk without the rows of one-class cells, see :func:`outside_one_class_cells`."""
        dense = replace(risk, A=risk.A.toarray()) if sp.issparse(risk.A) else risk
        return cls(centred(dense, free), certain)

    @cached_property
    def _columns(self) -> tuple[FloatArray, IntArray, int]:
        """The free columns that have rows left and those with a penalty, contiguous; which, and how many are free."""
        A, free = self.projected.risk.A, self.projected.free
        f = np.flatnonzero(free & (A != 0).any(axis=0))
        order = np.concatenate([f, np.flatnonzero(~free)])
        return np.asfortranarray(A[:, order]), order, len(f)

    def path(
        self,
        l1: FloatArray,
        l2: FloatArray,
        lambdas: FloatArray,
        state: LogisticRidge | FloatArray | None = None,
        tolerance: float = GRADIENT_TOLERANCE,
    ) -> tuple[Path, LogisticRidge | FloatArray]:
        """Coefficients of all centred columns for multiples ``lambdas`` of penalties; a state to continue from.

        A single ridge fit is left to LAPACK: compiled loops would be faster, but compiling them takes seconds.
        """
        risk, (A, order, n_free) = self.projected.risk, self._columns
        V = np.zeros((len(lambdas), risk.A.shape[1]))
        if not len(risk.y):
            return Path(V, np.zeros(len(lambdas))), V[-1]
        l1, l2 = l1[order], l2[order]
        ridge: LogisticRidge | None = None
        if (len(l1) - n_free > FEW_COLUMNS or len(lambdas) == 1) and not np.any(l1) and np.any(l2):
            ridge = state if isinstance(state, LogisticRidge) else LogisticRidge(A, risk.y, risk.q, l2, risk.loss)
            path = ridge.path(lambdas, tolerance)
        else:
            start = state[order] if isinstance(state, np.ndarray) else None
            power = risk.loss.variance_power if isinstance(risk.loss, LogLink) else 0.0
            path = logistic_path(A, n_free, risk.y, risk.q, l1, l2, lambdas, tolerance, start, power)
        V[:, order] = path.w
        return Path(V, path.violation), V[-1] if ridge is None else ridge

    def restore(self, v: FloatArray) -> FloatArray:
        """The coefficients of the columns that are not centred, those of one-class cells included."""
        return np.where(self.certain != 0, self.certain, self.projected.restore(v))


def predictor_range(Z: FloatArray, y: FloatArray, s: FloatArray, loss: LogLink) -> FloatArray:
    """Least and largest predictors of rows (the first axis of Z), without those that stand for minus infinity.

    Examples
    --------
    >>> from formulations.losses import Poisson
    >>> predictor_range(np.array([-31.0, 0.0, 1.0]), np.array([0.0, 1.0, 2.0]), np.ones(3), Poisson()).tolist()
    [0.0, 1.0]
    """
    floor = loss.best_constant(y, s) - 0.5 * CERTAIN / (loss.b or 1.0)
    high = Z.max(axis=0)
    return np.array([np.minimum(np.min(np.where(Z > floor, Z, np.inf), axis=0), high), high])


def clipped(Z: FloatArray, limits: FloatArray, share: float) -> FloatArray:
    """Predictors kept within their range in training, extended on either side by a share of its width.

    Examples
    --------
    >>> clipped(np.array([-9.0, 2.0, 9.0]), np.array([1.0, 3.0]), 0.5).tolist()
    [0.0, 2.0, 4.0]
    """
    if share == np.inf:
        return Z
    margin = share * (limits[1] - limits[0])
    return np.clip(Z, limits[0] - margin, limits[1] + margin)


def summed_losses(y: FloatArray, s: FloatArray, Z: FloatArray) -> FloatArray:
    """sum_i s_i log(1 + exp(-y_i z_i)) for each column z of Z, which is overwritten.

    numpy vectorises exp and log, but not logaddexp; each loss is off by rounding of 1, not of itself.

    Examples
    --------
    >>> summed_losses(np.array([1.0, -1.0]), np.ones(2), np.array([[0.0, 50.0], [0.0, 50.0]])).round(12).tolist()
    [1.38629436112, 50.0]
    """
    margin = np.multiply(Z, y[:, None], out=Z)
    loss = np.abs(margin)
    np.negative(loss, out=loss)
    np.exp(loss, out=loss)
    loss += 1.0
    np.log(loss, out=loss)
    wrong = np.minimum(margin, 0.0, out=margin)
    return np.asarray(s @ loss - s @ wrong)


def outside_one_class_cells(design: Design, risk: EmpiricalRisk) -> tuple[FloatArray, EmpiricalRisk]:
    """The predictor of each intercept whose cell has no best fit, 0 for other columns; and the remaining rows."""
    certain = np.zeros(len(design.pairs))
    if design.adaptivity.has_structure():
        return certain, risk
    cells = risk.A[:, design.free] != 0
    both = np.asarray(cells.sum(axis=0)).ravel()
    positive = np.asarray((cells[risk.y > 0]).sum(axis=0)).ravel()
    one_class = (positive == both) | (positive == 0)
    values = np.where(positive == both, CERTAIN, -CERTAIN)
    if isinstance(risk.loss, LogLink):
        one_class = positive == 0
        mean = max(float(risk.q @ risk.y / risk.q.sum()), np.finfo(float).tiny)
        values = np.full(len(one_class), np.log(mean) - CERTAIN / (risk.loss.b or 1.0))
    certain[design.free] = np.where(one_class, values, 0.0)
    rest = ~np.asarray(cells @ one_class, dtype=bool)
    return certain, risk if rest.all() else replace(risk, A=risk.A[rest], y=risk.y[rest], q=risk.q[rest])


def is_separable(risk: EmpiricalRisk, free: BoolArray, l1: FloatArray, l2: FloatArray) -> bool:
    """Whether columns without penalty, free intercepts included, separate the classes, or the targets that are 0.

    That is whether some v != 0 has y_i (A v)_i >= 0 for all rows and > 0 for some; with a log link (A v)_i = 0 where
    y_i > 0, and (A v)_i <= 0 for the others. Intercepts alone are not checked.
    """
    unpenalised = (l1 == 0) & (l2 == 0)
    if not np.any(unpenalised & ~free) or not len(risk.y):
        return False
    parts = [sp.csr_array(risk.A[:, columns]) for columns in (unpenalised & ~free, free)]
    columns = sp.hstack(parts, format="csr")
    if isinstance(risk.loss, LogLink):
        above = risk.y > 0
        if above.all():
            return False
        margins, equal = -columns[~above], {"A_eq": columns[above], "b_eq": np.zeros(int(above.sum()))}
    else:
        margins, equal = sp.diags_array(risk.y) @ columns, {}
    gain = -np.asarray(margins.sum(axis=0)).ravel()
    direction = linprog(gain, A_ub=-margins, b_ub=np.zeros(margins.shape[0]), bounds=(-1, 1), **equal)
    return direction.status == 0 and -direction.fun > 1e-6 * len(risk.y)


@dataclass(frozen=True)
class LogisticRows:
    """Columns of some rows, their targets (several for one against the rest) and weights."""

    A: FloatArray
    targets: list[FloatArray]
    s: FloatArray


class LogisticFold:
    """The paths of a fold, one for each target, with penalties for lambda = 1 by index.

    With a log link the predictors of held-out rows stay within the range of those in training, extended on either side
    by ``max_extrapolation`` times its width: otherwise few rows decide, by any amount.
    """

    def __init__(
        self,
        design: Design,
        penalties: UnitPenalties,
        train: LogisticRows,
        held: LogisticRows,
        loss: Loss,
        max_extrapolation: float,
    ) -> None:
        self.penalties, self.train, self.held, self.loss = penalties, train, held, loss
        self.max_extrapolation = max_extrapolation
        q, self.problems = train.s / train.s.sum(), []
        for y in train.targets:
            certain, risk = outside_one_class_cells(design, EmpiricalRisk(train.A, y, q, loss))
            self.problems.append(LogisticProblem.of(risk, design.free, certain))
        self.separable = [
            any(is_separable(each.projected.risk, each.projected.free, u1, u2) for each in self.problems)
            for u1, u2 in penalties
        ]

    def __call__(
        self, penalty: int, alpha: float, lambdas: FloatArray, state: Any, tolerance: float
    ) -> tuple[FloatArray, FloatArray, Any]:
        """Held-out loss, infinite without a best fit, and violation for each lambda; a state to continue from."""
        errors, violations = np.zeros((2, len(lambdas)))
        if self.separable[penalty]:
            return errors + np.inf, violations, None
        u1, u2 = self.penalties[penalty]
        states = [None] * len(self.problems) if state is None else list(state)
        for t, problem in enumerate(self.problems):
            path, states[t] = problem.path(alpha * u1, (1.0 - alpha) * u2, lambdas, states[t], tolerance)
            violations = np.maximum(violations, path.violation)
            errors += self._held_out_losses(t, problem.restore(path.w))
        return errors, violations, states

    def _held_out_losses(self, target: int, W: FloatArray) -> FloatArray:
        """The summed losses of a target for each row of coefficients."""
        Z, y, s, loss = self.held.A @ W.T, self.held.targets[target], self.held.s, self.loss
        if not isinstance(loss, LogLink):
            return summed_losses(y, s, Z)
        limits = predictor_range(self.train.A @ W.T, self.train.targets[target], self.train.s, loss)
        return np.asarray(s @ loss.value(y[:, None], clipped(Z, limits, self.max_extrapolation)))


def solve_logistic(
    program: UnitProgram, whole: EmpiricalRisk, solver: str, fast: bool, structure: Structure | None
) -> Fit:
    """The fit of the logistic loss, or one with a log link, without the rows of cells that have no best fit."""
    design = program.design
    certain, risk = outside_one_class_cells(design, whole)
    dual = np.zeros(len(whole.y))
    is_left = np.asarray((whole.A[:, certain != 0] != 0).sum(axis=1)).ravel() == 0
    gone = ~is_left
    of_gone = whole.loss.value(whole.y[gone], whole.A[gone] @ certain)
    loss_of_certain = float(whole.q[gone] @ of_gone)
    if not len(risk.y):
        tolerance = gap_tolerance(loss_of_certain, 0.0)
        return certain, certify(loss_of_certain, 0.0, tolerance, ROUNDING, "closed form", "", program.start, dual=dual)
    if structure is None and is_separable(risk, design.free, program.penalty.l1, program.penalty.l2):
        of_what = "targets that are 0" if isinstance(risk.loss, LogLink) else "classes"
        raise ValueError(
            f"The {of_what} are linearly separable by columns without penalty, so there is no best fit: "
            "use lam > 0 and adaptive_penalty > 0."
        )
    fit = _fit_logistic(risk, program) if fast else None
    w, certificate = fit or solve_stated(design, risk, program.penalty, solver, structure)
    if certificate.dual is not None:
        dual[is_left] = certificate.dual
    objective = certificate.objective + loss_of_certain
    is_closed = objective - certificate.bound <= certificate.tolerance
    status = certificate.status if is_closed or certificate.status != "optimal" else ROUNDING
    certificate = replace(certificate, objective=objective, status=status, dual=dual)
    return np.where(certain != 0, certain, w), certificate


def _fit_logistic(risk: EmpiricalRisk, program: UnitProgram) -> Fit | None:
    """The fit, or None if the optimality conditions could not be met."""
    free = program.design.free
    problem = LogisticProblem.of(risk, free, np.zeros(len(free)))
    projected = problem.projected
    k = ~free
    l1 = program.penalty.l1
    l2 = program.penalty.l2
    gradient = np.abs(projected.risk.gradient(np.zeros(len(k))))
    path, _ = problem.path(l1, l2, lambdas_to_one(gradient[k], l1[k], STEPS))
    if not path.violation[-1] <= ACCEPTED:
        return None
    v = path.w[-1]
    if not np.any(l1) and not np.any(l2):
        v[k] = np.linalg.lstsq(projected.risk.A[:, k], projected.risk.A[:, k] @ v[k], rcond=None)[0]
    null = null_risk(risk, free)

    def proven(v: FloatArray) -> tuple[Fit, bool]:
        w = projected.restore(np.where(program.overwhelmed, 0.0, v))
        proof = prove_centred(risk, projected, l1, l2, w)
        tolerance = gap_tolerance(proof.objective, null)
        engine = ("admiss engine", __version__)
        certificate = certify(
            proof.objective, proof.bound, tolerance, ROUNDING, *engine, program.start, dual=proof.theta
        )
        return (w, certificate), proof.objective - proof.estimate <= tolerance

    # A column that is 0 up to rounding has a coefficient of exactly 0.
    without_rows = (l1 == 0) & (v == 0)
    fit, accepted = proven(np.where(without_rows, 0.0, polish(projected.risk, l1, l2, v)))
    return fit if accepted else None
