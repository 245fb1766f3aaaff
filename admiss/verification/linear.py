"""Proofs for adaptive linear models.

The claims of a certificate: the coefficients have the stated objective; the optimum is at least the stated bound; if
the status is "optimal", both differ by at most the tolerance of the certificate, and by at most 1e-6 of the objective
or of the risk of the null model, in the loss of the fit.

The bound is proven from the certificate's dual point, or, if it has none, from the derivative of the loss at the
model's predictions. It is compared without any tolerance. The objective must not be below the value of the
coefficients, up to 1e-9.
"""

from collections.abc import Mapping
from contextlib import nullcontext, suppress
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from admiss.verification.design import Columns, rebuilt_columns
from admiss.verification.dual import LossInBalls, PenalisedRisk
from admiss.verification.result import NotCoveredError, Proof, RejectedError, as_float, number, require
from admiss.verification.rows import Rows
from formulations.arrays import FloatArray
from formulations.certificate import Certificate
from formulations.erm.dual_bound import GAP_TOLERANCE
from formulations.erm.risk import EmpiricalRisk, null_risk
from formulations.losses import LOSSES

GAP, ROUNDED = Fraction(GAP_TOLERANCE), Fraction(1, 10**9)


def verify_linear(certificate: Certificate, evidence: Mapping[str, Any], rows: Rows, proof: Proof, model: Any) -> None:
    """Prove the claims one after the other; the proof collects what was shown."""
    program, arrays = evidence["program"], evidence["arrays"]
    columns = rebuilt_columns(program, arrays["centre"], arrays["scale"], rows, model)
    coefficients = np.atleast_2d(arrays["coefficients"])
    fits = coefficients.shape == (rows.y.shape[1], columns.A.shape[1])
    require(
        fits and bool(np.isfinite(coefficients).all()), "the coefficients are not those of the columns of the class"
    )
    proof.add(f"the program has {columns.A.shape[0]:,} rows and {columns.A.shape[1]} columns")
    loss = LossInBalls.of(program["loss"])

    low, high, size, points = Fraction(0), Fraction(0), Fraction(0), []
    for y, w in zip(rows.y.T, coefficients * columns.divisor, strict=True):
        risk = PenalisedRisk(columns.A, y, rows.s, columns.l1, columns.l2, loss)
        ends = risk.value(w)
        low, high = low + ends[0], high + ends[1]
        size += max(ends[1], Fraction(_null_risk(program["loss"], columns, y, rows.s)))
        dual = certificate.dual if len(coefficients) == 1 else None
        points.append((risk, _dual_point(risk, columns, w, dual), w))
    proof.objective = as_float(low), as_float(high, upwards=True)
    stated = Fraction(certificate.objective) if np.isfinite(certificate.objective) else high + size
    require(low - ROUNDED * size <= stated <= high + GAP * size, f"the objective is {as_float(low)!r}, not as stated")
    proof.add(f"the coefficients have the objective {number(as_float(low))}, as stated")
    if certificate.status == "optimal":
        closed = np.isfinite(certificate.bound) and stated - Fraction(certificate.bound) <= GAP * size
        require(closed, f'the gap is not closed, although the status is "optimal": {certificate.gap:.3g}')
    if certificate.bound == -np.inf:
        proof.add("no bound is stated")
        return
    bound = Fraction(0)  # no loss is negative
    ways = (PenalisedRisk.bound, partial(PenalisedRisk.bound, closely=True), PenalisedRisk.bound_of_weak)
    for way in ways:
        if np.isfinite(certificate.bound) and bound < Fraction(certificate.bound):
            with suppress(RejectedError) if bound > 0 else nullcontext():
                bound = max(bound, sum((way(risk, t, w) for risk, t, w in points), Fraction(0)))
    proof.optimum = as_float(bound), proof.objective[1]
    holds = np.isfinite(certificate.bound) and Fraction(certificate.bound) <= bound
    require(holds, f"the dual point proves {as_float(bound)!r}, less than the stated bound {certificate.bound!r}")
    proof.add(f"no coefficients have an objective below {number(as_float(bound))}, by the dual point")


def _null_risk(description: Mapping[str, Any], columns: Columns, y: FloatArray, s: FloatArray) -> float:
    """Risk of the null model, in the loss of the fit: the same scale as that of the fit."""
    parameters = {name: value for name, value in description.items() if name != "name"}
    loss = LOSSES[description["name"].lower()](**parameters)
    return null_risk(EmpiricalRisk(columns.A, y, s / s.sum(), loss), columns.free)


def _dual_point(risk: PenalisedRisk, columns: Columns, w: FloatArray, dual: FloatArray | None) -> FloatArray:
    """t_i, from theta_i = q_i t_i of the certificate or from the predictions."""
    q = risk.s / risk.s.sum()
    if dual is not None and dual.shape == q.shape:
        return np.asarray(dual / q)
    t = risk.loss.derivative(risk.y, risk.A @ w)
    if t is None:
        raise NotCoveredError(f"a model with the loss {risk.loss.name} is verified only with a dual point")
    if risk.loss.name == "Logistic":  # the infimum over a free intercept of one class alone is 0, at t = 0
        cells = risk.A[:, columns.free] != 0
        mixed = np.array([len(np.unique(risk.y[cell])) > 1 for cell in cells.T], dtype=bool)
        t = np.where(cells[:, ~mixed].any(axis=1), 0.0, t)
    return t
