"""Weights that are constant on cells of patterns (Section 2.2 of the paper).

The basis functions are indicators  phi_q(m) = 1(m in M_q)  of disjoint cells M_1, .., M_Q: every cell has its own
linear model and its own free intercept. In the fully adaptive class every observed pattern is a cell.
"""

import copy
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity.base import Adaptivity, from_patterns
from admiss.patterns import PatternTable, nearest, pattern_name
from formulations.arrays import BoolArray, FloatArray


class FullyAdaptive(Adaptivity):
    """One linear model for each observed pattern.

    A new pattern uses the model of the nearest observed one in Hamming distance (ties: the one with more training rows,
    then the lexicographically first). p(F) = d 2^(d-1) + 2^d if all patterns occur.

    In classification, a pattern whose rows all belong to one class predicts that class with near certainty.

    Examples
    --------
    >>> M = np.array([[0, 0], [0, 0], [0, 1]], dtype=bool)
    >>> fitted = FullyAdaptive().fit(np.zeros((3, 2)), M)
    >>> fitted.names(["a", "b"])
    ['nothing missing', 'missing b']
    >>> fitted.basis(np.array([[1.0, 1.0]])).toarray().tolist()
    [[0.0, 1.0]]
    """

    cells: ClassVar[bool] = True
    patterns_: BoolArray
    weights_: FloatArray

    @from_patterns
    def fit(self, X: FloatArray, M: BoolArray, sample_weight: FloatArray | None = None) -> Self:
        table = PatternTable.of(M, sample_weight)
        fitted = copy.copy(self)
        fitted.patterns_, fitted.weights_ = table.patterns, table.weights
        return fitted

    def basis(self, M: FloatArray) -> sp.csr_array:
        cells = nearest(self.patterns_, self.weights_, M.astype(bool))
        return sp.csr_array(
            (np.ones(len(cells)), (np.arange(len(cells)), cells)), shape=(len(cells), len(self.patterns_))
        )

    def mask(self, d: int) -> BoolArray:
        return np.vstack([np.ones(len(self.patterns_), dtype=bool), ~self.patterns_.T])

    def names(self, feature_names: Sequence[str]) -> list[str]:
        return [pattern_name(pattern, feature_names) for pattern in self.patterns_]
