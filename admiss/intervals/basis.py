"""Bases of functions of the missingness pattern, and the sentence that each one promises.

A basis phi(m) determines for whom the coverage holds: for rows weighted by any non-negative function in its span
(``formulations/conformal/program.py``). An adaptivity class is such a basis: the functions by which the weights of a
model adapt to the pattern are those by which its coverage can adapt.

=============== ===================== ==========================================================
name            phi(m)                promises coverage
=============== ===================== ==========================================================
``constant``    1                     over all rows together (split conformal prediction)
``count``       1, |m|                under shifts that are linear in the number of missing features
``features``    1, m_1, .., m_d       given that a feature is missing or observed, for each feature
an adaptivity   its own basis         for every non-negative function in the span
=============== ===================== ==========================================================

``"auto"`` takes ``features`` if it has at most 2 % as many functions as there are calibration rows, otherwise
``count``: with more functions sets are wide where few rows are. The functions are counted on the training rows (as the
rank of their patterns; all features if the model was fitted elsewhere), not on the calibration rows, whose choice of
the basis would void the guarantee.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity import ADAPTIVITY_CLASSES, Adaptivity, resolve_adaptivity
from formulations.arrays import BoolArray, FloatArray


@dataclass(frozen=True)
class PatternBasis:
    """A basis of functions of the pattern; ``promise`` says for whom the coverage holds."""

    name: str
    promise: str
    _values: Callable[[FloatArray], Any]

    def __call__(self, M: BoolArray) -> FloatArray:
        """The values phi_k(m), of shape (rows of M, K)."""
        values = self._values(np.asarray(M, dtype=float))
        return np.asarray(values.toarray() if sp.issparse(values) else values, dtype=float)


def constant(M: FloatArray) -> FloatArray:
    """phi = 1."""
    return np.ones((len(M), 1))


def count(M: FloatArray) -> FloatArray:
    """phi = (1, |m|)."""
    return np.column_stack([np.ones(len(M)), M.sum(axis=1)])


def features(M: FloatArray) -> FloatArray:
    """phi = (1, m)."""
    return np.column_stack([np.ones(len(M)), M])


BASES = {
    "constant": PatternBasis("constant", "over all rows together; nothing is promised by feature or pattern", constant),
    "count": PatternBasis(
        "count",
        "over all rows together, and under every shift of the law of patterns whose density ratio is linear in the "
        "number of missing features; nothing is promised by feature",
        count,
    ),
    "features": PatternBasis(
        "features",
        "given that a feature is missing and given that it is observed, for every feature, and under every shift of "
        "the law of patterns whose density ratio is linear in the indicators of missing features",
        features,
    ),
}


def resolve_basis(basis: Any, n_calibration: int, d: int, M_train: BoolArray | None) -> PatternBasis:
    """The basis with a given name, or that of an adaptivity class.

    ``M_train`` are the patterns of the training rows, None if the model was fitted elsewhere.

    Examples
    --------
    >>> M = np.array([[0, 1], [0, 0]], bool)
    >>> resolve_basis("auto", 99, 2, M).name, resolve_basis("auto", 98, 2, M).name
    ('features', 'count')
    """
    check_basis(basis)
    if isinstance(basis, str) and basis == "auto":
        functions = d + 1 if M_train is None else int(np.linalg.matrix_rank(features(np.unique(M_train, axis=0))))
        # 50 calibration rows per function of the basis
        basis = "features" if functions <= 0.02 * (n_calibration + 1) else "count"
    if isinstance(basis, str) and basis in BASES:
        return BASES[basis]
    adaptivity = resolve_adaptivity(basis)
    if M_train is not None:
        adaptivity = adaptivity.fit(np.where(M_train, np.nan, 0.0), M_train)
    try:
        adaptivity.basis(np.zeros((1, d)))
    except AttributeError as error:
        raise ValueError(
            f"The basis of {adaptivity} depends on training rows, and with prefit=True there are none: fit it first."
        ) from error
    promise = f"for rows weighted by any non-negative function in the span of the basis of {adaptivity}"
    return PatternBasis(str(adaptivity), promise, adaptivity.basis)


def check_basis(basis: Any) -> None:
    """Refuse anything but a name or an adaptivity class."""
    known = ("auto", *BASES, *ADAPTIVITY_CLASSES)
    if not isinstance(basis, Adaptivity) and not (isinstance(basis, str) and basis in known):
        raise ValueError(f"Unknown basis {basis!r}: choose 'auto', {', '.join(map(repr, BASES))} or an adaptivity.")
