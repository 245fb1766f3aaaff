"""``admiss.verify``: an independent proof of a model's certificate, in exact and in ball arithmetic.

A certificate states the objective of a model and a bound on the optimum. Solvers compute both in floating point. Here
they are computed again by other means, in integers and in balls of python-flint, whose results hold with certainty:

===================== ================================================================================================
finite models         the costs of all boxes and the best tree; a dual bound and a search for box partitions; all
                      subsets for groups of up to 14 patterns (squared loss)
adaptive models       the value of the coefficients, and a dual bound from the certificate's dual point
stacked models        the value of the weights and the bound of Frank and Wolfe, on the stored held-out predictions
===================== ================================================================================================

The claims of every certificate are the same: the solution has the stated objective (at most that, if the status is "not
proven"); no solution has an objective below the bound, which is compared without any tolerance; if the status is
"optimal", the gap is within the tolerance of its kind and within that of the certificate.

No code is shared with the solvers: only the reading of tables, the definitions of adaptivity classes and of the scale
of the tolerance, and the choice of columns that a dual point is made to meet, of which any gives a bound that holds.
"""

import os
import time
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from admiss.estimator.evidence import evidence_of
from admiss.extras import optional_import
from admiss.verification.claim import (
    NotCoveredError,
    Recomputed,
    RejectedError,
    Verification,
    as_float,
    read_rows,
    require,
)
from formulations.certificate import Certificate

KINDS = ("finite", "linear", "stack")


def verify(model_or_file: Any, X: Any, y: Any, sample_weight: Any = None) -> Verification:
    """Prove the certificate of a model again, independently of the solvers that made it.

    Parameters
    ----------
    model_or_file : fitted model, str or Path
        A finite, adaptive or stacked model, or a search by cross-validation over such models; or the name of a file
        that ``model.certificate_.save(path)`` has written, possibly on another machine.
    X, y : array or data frame
        The data of the fit.
    sample_weight : array of shape (n,), optional
        The weights of the fit.

    Returns
    -------
    Verification
        It is true if everything that the certificate states was proven, and prints what was proven or what fails.

    Examples
    --------
    >>> from admiss import FiniteRegressor, verify
    >>> from admiss.datasets import make_synthetic
    >>> from admiss.partition import OptimalTree
    >>> data = make_synthetic(n=200, d=4, rank=3, n_active=3, random_state=0)
    >>> model = FiniteRegressor(OptimalTree(max_depth=2)).fit(data.X_train, data.y_train)
    >>> bool(verify(model, data.X_train, data.y_train))
    True
    """
    start = time.perf_counter()
    with optional_import("Verification", "verify"):
        from admiss.verification.finite import recompute_finite
        from admiss.verification.linear import recompute_linear
        from admiss.verification.stack import recompute_stack
    certificate, evidence, model = _claim(model_or_file)
    certificate = replace(certificate, objective=float(certificate.objective), bound=float(certificate.bound))
    proof = _Proof()
    reason = ""
    try:
        if evidence["kind"] == "linear" and model is not None and certificate.evidence is None:
            raise NotCoveredError("the bound of a changed program is that of its solver, without a proof")
        is_number = np.isfinite(certificate.bound) or certificate.bound == -np.inf
        require(is_number and np.isfinite(certificate.objective), "the objective or the bound is not a number")
        rows = read_rows(evidence["program"], X, y, sample_weight)
        if evidence["kind"] == "finite":
            program = recompute_finite(certificate, evidence, rows)
        elif evidence["kind"] == "linear":
            program = recompute_linear(evidence, rows, certificate.dual, model)
        else:
            program = recompute_stack(evidence, rows)
        proof.compare(certificate, program)
    except RejectedError as error:
        reason = str(error)
    except NotCoveredError as error:
        reason = f"{error} (nothing was found to be wrong)"
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        if model is not None:
            raise
        raise ValueError(f"{model_or_file} is damaged: save the certificate again.") from error
    seconds = time.perf_counter() - start
    return Verification(not reason, tuple(proof.lines), reason, proof.objective, proof.optimum, seconds)


@dataclass
class _Proof:
    """What has been shown so far."""

    lines: list[str] = field(default_factory=list)
    objective: tuple[float, float] | None = None
    optimum: tuple[float, float] | None = None

    def compare(self, certificate: Certificate, program: Recomputed) -> None:
        """Prove the claims one after the other."""
        low, high = program.value
        stated = Fraction(certificate.objective)
        upper_bound = certificate.status.startswith("not proven")
        self.lines += program.lines
        self.objective = as_float(low), as_float(high, upwards=True)
        fits = low - program.below <= stated and (upper_bound or stated <= high + program.above)
        require(fits, f"the objective is {as_float(low)!r}, not {certificate.objective!r} as stated")
        self.lines.append(f"the objective is {as_float(low):.10g}, {'at most ' * upper_bound}as stated")

        if certificate.status == "optimal":
            closed = np.isfinite(certificate.bound) and stated - Fraction(certificate.bound) <= program.gap
            require(bool(closed), f'the gap is not closed, although the status is "optimal": {certificate.gap:.3g}')
        if np.isfinite(certificate.bound):
            optimum = program.optimum(Fraction(certificate.bound))
            self.optimum = as_float(optimum), self.objective[1]
            holds = Fraction(certificate.bound) <= optimum
            above = f"the bound {certificate.bound!r} is above what is proven of the optimum, {as_float(optimum)!r}"
            require(holds, above)
            self.lines.append(f"no solution has an objective below {certificate.bound:.10g}")
        else:
            self.lines.append("no bound is stated")

        order = f"the bound {certificate.bound!r} is above the objective {certificate.objective!r}"
        require(not certificate.bound > certificate.objective, order)
        require(certificate.tolerance >= 0, f"the tolerance {certificate.tolerance!r} is negative")
        if certificate.status == "optimal":
            within = certificate.gap <= certificate.tolerance
            require(within, f'the gap {certificate.gap:.3g} is above the tolerance, although the status is "optimal"')


def _claim(model_or_file: Any) -> tuple[Certificate, dict[str, Any], Any]:
    """Certificate, evidence and, unless it is in a file, the model."""
    if isinstance(model_or_file, str | os.PathLike):
        if not Path(model_or_file).is_file():
            raise ValueError(f"There is no file {str(model_or_file)!r}.")
        certificate = Certificate.load(model_or_file)
        evidence = dict(certificate.evidence or {})
        if evidence.get("kind") not in KINDS or not {"program", "solution", "arrays"} <= set(evidence):
            raise ValueError(f"{model_or_file} is not the certificate of a finite, adaptive or stacked model.")
        return certificate, evidence, None
    model = model_or_file
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    if isinstance(model, Certificate):
        raise ValueError("A certificate alone cannot be verified: give the fitted model, or the saved file.")
    if not isinstance(getattr(model, "certificate_", None), Certificate):
        raise ValueError(f"{type(model).__name__} has no certificate_: fit a finite, adaptive or stacked model first.")
    certificate = model.certificate_
    stored = certificate.evidence or {}
    return certificate, evidence_of(model) | {key: stored[key] for key in ("digest",) if key in stored}, model
