"""The features of the linear models in the leaves.

    static             a(x, m) = ((1 - m_j) (x_j - c_j))_j                      mean imputation, or zero imputation
    affine_intercept   a(x, m) = the same, and m_j for every feature that was missing in training

c_j is the mean of the observed training values, or 0. The difference is rounded to a double: it is the data of the
program. The ridge penalises the weights of a_j / scale_j, with 1 or the standard deviation of the observed training
values as scale: d_j = scale_j^2 for the weight of a_j. For the solvers, features are divided by powers of two near the
standard deviations, which changes no digit, and the d_j with them.

A feature that was never observed in training is left out of the model; one that was never missing in training is set to
its training mean if it is missing later.
"""

from dataclasses import dataclass

import numpy as np

from admiss.estimator.scaling import centre_of, observed_moments, observed_scale, power_of_two
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
    centre, scale : float arrays of shape (d,)
        c_j and scale_j.
    unit : float array of shape (d,)
        Powers of two near the standard deviations.
    """

    leaf_model: str
    observed: IntArray
    missable: BoolArray
    mean: FloatArray
    centre: FloatArray
    scale: FloatArray
    unit: FloatArray

    @classmethod
    def fit(cls, X: FloatArray, s: FloatArray, leaf_model: str, centre: bool, scale: bool) -> "LeafFeatures":
        """Means, scales and features with missing values, from the training rows."""
        M = np.isnan(X)
        missable, observed = np.asarray(M.any(axis=0)), np.flatnonzero(~M.all(axis=0))
        part = X if len(observed) == X.shape[1] else X[:, observed]
        return cls.of_moments(missable, observed, observed_moments(part, s)[:3], leaf_model, centre, scale)

    @classmethod
    def of_moments(
        cls,
        missable: BoolArray,
        observed: IntArray,
        moments: tuple[FloatArray, FloatArray, FloatArray],
        leaf_model: str,
        centre: bool,
        scale: bool,
    ) -> "LeafFeatures":
        """The map for features with these means, deviations and largest sizes of their observed values."""
        means, deviation, size = moments
        mean, middle, spread = np.full(len(missable), np.nan), np.zeros(len(missable)), np.ones(len(missable))
        mean[~missable] = means[~missable[observed]]
        spread[observed] = observed_scale(deviation, size)[0]
        if centre:
            middle[observed] = centre_of(means, deviation)
        unit = power_of_two(spread)
        return cls(leaf_model, observed, missable, mean, middle, spread if scale else np.ones_like(spread), unit)

    @property
    def column_unit(self) -> FloatArray:
        """Powers of two by which the solvers divide the leaf features."""
        return np.append(self.unit[self.observed], np.ones(len(self.indicators)))

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
            X, M_observed, centre = X[:, self.observed], M[:, self.observed], self.centre[self.observed]
        else:
            M_observed, centre = M, self.centre
        np.subtract(X, centre, out=A[:, :k])
        np.copyto(A[:, :k], 0.0, where=M_observed)
        A[:, k:] = M[:, self.indicators]
        return A

    @property
    def ridge_weights(self) -> FloatArray:
        """d_j of every leaf feature in units of the solvers."""
        return np.append((self.scale[self.observed] / self.unit[self.observed]) ** 2, np.ones(len(self.indicators)))

    def pattern_rows(self, X: FloatArray, y: FloatArray, s: FloatArray) -> PatternRows:
        """Training rows grouped by pattern, their leaf features in units of the solvers."""
        filled, M = self.split(X)
        table, A = PatternTable.of(M), self.columns(filled, M)
        A /= self.column_unit
        return PatternRows.of(table.patterns, table.codes, A, y, s, self.ridge_weights)
