"""The features of the linear models in the leaves.

    static             a(x, m) = ((1 - m_j) x_j / scale_j)_j                        zero-imputed features
    affine_intercept   a(x, m) = the same, and m_j for every feature that was missing in training

Scales are 1, or the standard deviations of the observed training values. A feature that was never observed in training
is left out of the model; one that was never missing in training is set to its training mean if it is missing later.
"""

from dataclasses import dataclass

import numpy as np

from admiss.estimator.observed import observed_moments, observed_scale
from admiss.patterns import PatternTable
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.leaves.cost import PatternRows

LEAF_MODELS = ("affine_intercept", "static")


@dataclass(frozen=True)
class LeafFeatures:
    """A fitted map from rows to leaf features.

    Attributes
    ----------
    leaf_model : str
    observed : int array
        Features that were observed in training.
    missable : bool array of shape (d,)
        Features that were missing somewhere in training.
    mean : float array of shape (d,)
        Training means of the features that were never missing, NaN for the others.
    scale : float array of shape (d,)
    """

    leaf_model: str
    observed: IntArray
    missable: BoolArray
    mean: FloatArray
    scale: FloatArray

    @classmethod
    def fit(cls, X: FloatArray, s: FloatArray, leaf_model: str, scale: bool) -> "LeafFeatures":
        """Means, scales and features with missing values, from the training rows."""
        M = np.isnan(X)
        missable: BoolArray = np.asarray(M.any(axis=0))
        mean, spread = np.full(X.shape[1], np.nan), np.ones(X.shape[1])
        mean[~missable] = s @ X[:, ~missable] / s.sum()
        if scale:
            _, deviation, size, _ = observed_moments(X, s)
            spread = observed_scale(deviation, size)[0]
        return cls(leaf_model, np.flatnonzero(~M.all(axis=0)), missable, mean, spread)

    @property
    def indicators(self) -> IntArray:
        """Features whose m_j is a leaf feature; it would be constant for a feature that is never observed."""
        if self.leaf_model == "static":
            return np.empty(0, dtype=np.int64)
        return self.observed[self.missable[self.observed]]

    def split(self, X: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Features and patterns; a feature that was never missing in training is set to its mean."""
        M = np.isnan(X)
        filled = M & ~self.missable
        if filled.any():
            X = np.where(filled, self.mean, X)
            M &= self.missable
        never_observed = np.setdiff1d(np.arange(X.shape[1]), self.observed)
        M[:, never_observed] = True  # as in training
        return X, M

    def columns(self, X: FloatArray, M: BoolArray) -> FloatArray:
        """Leaf features of rows, from :meth:`split`."""
        k = len(self.observed)
        A = np.empty((len(X), k + len(self.indicators)))
        if k < X.shape[1]:
            X, M_observed, scale = X[:, self.observed], M[:, self.observed], self.scale[self.observed]
        else:
            M_observed, scale = M, self.scale
        np.divide(X, scale, out=A[:, :k])
        np.copyto(A[:, :k], 0.0, where=M_observed)
        A[:, k:] = M[:, self.indicators]
        return A

    def pattern_rows(self, X: FloatArray, y: FloatArray, s: FloatArray) -> PatternRows:
        """Training rows grouped by pattern."""
        filled, M = self.split(X)
        table = PatternTable.of(M)
        return PatternRows.of(table.patterns, table.codes, self.columns(filled, M), y, s)
