"""Weights that are constant on cells of patterns (Section 2.2 of the paper).

The basis functions are indicators  phi_q(m) = 1(m in M_q)  of disjoint cells M_1, .., M_Q: every cell has its own
linear model and its own free intercept. In the fully adaptive class every observed pattern is a cell.
"""

import copy
import math
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


def coefficients_at_patterns(d: int, patterns: int) -> int:
    """The largest number of coefficients of linear models at so many patterns of d features: those with fewest missing.

    Examples
    --------
    >>> coefficients_at_patterns(2, 2), coefficients_at_patterns(2, 4)
    (5, 8)
    """
    total = 0
    for missing in range(d + 1):
        taken = min(patterns, math.comb(d, missing))
        total, patterns = total + taken * (1 + d - missing), patterns - taken
    return total


def n_frequent(d: int, n: float, min_rows: float) -> int:
    """The largest number of patterns of d features that have at least ``min_rows`` of n rows each.

    Examples
    --------
    >>> n_frequent(3, 100, 20), n_frequent(3, math.inf, 20)
    (5, 8)
    """
    return 2**d if n >= 2**d * min_rows else int(n // min_rows)
