"""The last fit of f, at the imputed values that a search found; where f fails there, at the means."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from admiss.joint.problem import Imputation, JointProblem
from formulations.arrays import BoolArray, FloatArray
from formulations.jit import is_interrupt


def fit_at(problem: JointProblem, found: Imputation, matters: BoolArray) -> tuple[Any, Imputation]:
    """f, fitted; and what is imputed, with how that came about.

    Parameters
    ----------
    problem : JointProblem
    found : Imputation
        What a search returned.
    matters : bool array of shape (d,)
        Features whose imputed values matter; the others have their means.
    """
    means = problem.means()
    found = replace(found, mu=_checked(found.mu, means, matters), history=tuple(found.history))
    failures: list[str] = []
    for mu in (found.mu, means):
        try:
            f = problem.fit(mu)
            break
        except Exception as failure:
            if is_interrupt(failure):
                raise
            failures.append(f"{type(failure).__name__}: {failure}")
            if np.array_equal(mu, means):
                name = type(problem.estimator).__name__
                told = f"{name} cannot be fitted: it fails with the means imputed, too ({failures[-1]})."
                raise RuntimeError(told) from failure
    if not failures:
        return f, found
    told = f"the predictor failed at the values found ({failures[0]})"
    # of whoever called ``fit`` of the estimator
    warnings.warn(f"The means are imputed, since {told}.", stacklevel=4)
    return f, Imputation(means, tuple(replace(entry, moves=()) for entry in found.history), f"the mean: {told}")


def _checked(mu: Any, means: FloatArray, matters: BoolArray) -> FloatArray:
    """What a search returned, as d numbers."""
    values = np.asarray(mu, dtype=float)
    if values.shape == means.shape:
        values = np.where(matters, values, means)
    if values.shape != means.shape or not np.isfinite(values).all():
        raise ValueError(f"The search must return {len(means)} finite imputed values, not {mu!r}.")
    return values
