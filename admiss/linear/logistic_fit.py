"""Fits of the logistic loss: a path in centred columns to the penalty of the fit, then a proof from the rows."""

from dataclasses import replace

import numpy as np

from admiss._version import __version__
from admiss.linear.design import Design
from admiss.linear.logistic_problem import LogisticProblem, is_separable, outside_one_class_cells
from admiss.linear.penalty import Penalty, lambdas_to_one
from admiss.linear.stated_program import ACCEPTED, Fit, Structure, closed_form, solve_stated
from formulations.arrays import BoolArray, FloatArray
from formulations.certificate import ROUNDING, certify, clock
from formulations.erm.dual_bound import Rows, gap_tolerance, prove
from formulations.erm.optimality import polish
from formulations.erm.risk import EmpiricalRisk, null_risk

# Lambdas of the path to a single fit, per factor of 10 below the lambda at which all coefficients are 0.
STEPS = 2


def solve_logistic(
    design: Design, whole: EmpiricalRisk, penalty: Penalty, solver: str, fast: bool, structure: Structure | None
) -> Fit:
    """The fit of the logistic loss, without the rows of cells with a single class."""
    start = clock()
    certain, risk = outside_one_class_cells(design, whole)
    dual = np.zeros(len(whole.y))
    if not len(risk.y):
        return certain, closed_form(0.0, 1, dual, start)
    if structure is None and is_separable(risk, design.free, penalty):
        raise ValueError(
            "The classes are linearly separable by columns without penalty, so there is no best fit: "
            "use lam > 0 and adaptive_penalty > 0."
        )
    fit = _fit_logistic(risk, design.free, penalty) if fast else None
    w, certificate = fit or solve_stated(design, risk, penalty, solver, structure)
    if certificate.dual is not None:
        left = np.asarray((whole.A[:, certain != 0] != 0).sum(axis=1)).ravel() == 0
        dual[left] = certificate.dual
    return np.where(certain != 0, certain, w), replace(certificate, dual=dual)


def _fit_logistic(risk: EmpiricalRisk, free: BoolArray, penalty: Penalty) -> Fit | None:
    """The fit, or None if the optimality conditions could not be met."""
    start = clock()
    problem = LogisticProblem.of(risk, free, np.zeros(len(free)))
    projected, k, l1, l2 = problem.projected, ~free, penalty.l1, penalty.l2
    gradient = np.abs(projected.risk.gradient(np.zeros(len(k))))
    path, _ = problem.path(penalty, lambdas_to_one(gradient[k], l1[k], STEPS))
    if not path.violation[-1] <= ACCEPTED:
        return None
    v = path.w[-1]
    if not np.any(l1) and not np.any(l2):
        v[k] = np.linalg.lstsq(projected.risk.A[:, k], projected.risk.A[:, k] @ v[k], rcond=None)[0]
    rows, null = Rows.of(risk), null_risk(risk, free)

    def proven(v: FloatArray) -> tuple[Fit, bool]:
        v = penalty.without_overwhelmed(v)
        w = projected.restore(v)
        proof = prove(rows, l1, l2, w)
        tolerance = gap_tolerance(proof.objective, null)
        engine = ("admiss engine", __version__)
        certificate = certify(proof.objective, proof.bound, tolerance, ROUNDING, *engine, start, dual=proof.theta)
        return (w, certificate), proof.objective - proof.estimate <= tolerance

    fit, accepted = proven(v)
    if fit[1].gap > fit[1].tolerance:
        polished, also = proven(polish(projected.risk, l1, l2, v))
        if polished[1].bound > fit[1].bound or not accepted:
            fit, accepted = polished, also
    return fit if accepted else None
