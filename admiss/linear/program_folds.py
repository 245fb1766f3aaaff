"""Cross-validation of programs with constraints: one program for each path, compiled once for all of its lambdas.

The grid of lambdas is that of the paths without constraints, so that scores of both can be compared; so are exposure
and the limits of predictors with a log link in held-out losses. A fit that is not proven has no held-out loss.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from admiss.adaptivity import Adaptivity
from admiss.estimator.cross_validation import FoldedRows
from admiss.linear.folds import ClassFolds, GridOptions
from admiss.linear.logistic import clipped, predictor_range
from admiss.linear.program import TWO_CLASSES, AdaptiveProgram
from admiss.linear.stated_program import solver_name
from formulations.arrays import FloatArray
from formulations.certificate import SOLVERS_BOUND
from formulations.log_link import LogLink

# Statuses of fits whose gap is closed.
PROVEN = ("optimal", SOLVERS_BOUND)
MakeFolds = Callable[[FoldedRows, Adaptivity, GridOptions], ClassFolds]


def program_folds(
    model: Any, make_folds: MakeFolds, rows: FoldedRows, adaptivity: Adaptivity, options: GridOptions
) -> ClassFolds:
    """The folds of one class; those that ``make_folds`` makes give the lambdas, and their paths are not followed.

    ``model`` is an estimator with the constraints, which has read the rows.
    """
    if len(rows.targets) > 1:
        raise ValueError(TWO_CLASSES)
    folds = make_folds(rows, adaptivity, options)
    own = copy.copy(model).set_params(adaptivity=adaptivity)
    return replace(folds, paths=[ProgramFold(own, rows, f, options) for f in range(len(rows.splits))], exact=True)


@dataclass(frozen=True)
class ProgramFold:
    """A fold, and the model whose program is solved on its training rows."""

    model: Any
    rows: FoldedRows
    fold: int
    options: GridOptions

    def __call__(
        self, penalty: int, alpha: float, lambdas: FloatArray, state: Any, tolerance: float
    ) -> tuple[FloatArray, FloatArray, Any]:
        """The summed losses on the held-out rows; a :data:`admiss.linear.folds.FoldPath`."""
        (train, test), (y,) = self.rows.splits[self.fold], self.rows.targets
        s, e = self.rows.fold_weights[self.fold], self.rows.exposure
        used = train[s[train] > 0]
        model = copy.copy(self.model).set_params(
            adaptive_penalty=self.options.adaptive_penalties[penalty], l1_ratio=alpha, lam=lambdas[0]
        )
        program = AdaptiveProgram(model, self.rows.X[used], y[used], s[used], None if e is None else e[used])
        _, loss = model._check_parameters()
        weights = s if e is None else s * loss.weight_of(e)
        fitted, held_out = (program.predictions_of(self.rows.X[part]) for part in (used, test))
        errors, violations = np.zeros((2, len(lambdas)))
        for i, lam in enumerate(lambdas):
            program.lam.value = lam
            certificate = program.run(program.problem, solver_name(model.solver), {})
            violations[i] = 0.0 if certificate.status in PROVEN else np.inf
            z = held_out.value
            if isinstance(loss, LogLink):
                limits = predictor_range(fitted.value, y[used], weights[used], loss)
                z = clipped(z, limits, float(model.max_extrapolation))
            errors[i] = weights[test] @ loss.value(y[test], z)
        return errors, violations, None
