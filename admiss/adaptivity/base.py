"""The base class of adaptivity classes.

A prediction is  f(x, m) = sum_j w_j(m) (1 - m_j) x_j  with x_0 = 1, never missing (the intercept), and weights

    w_j(m) = sum_k W_jk phi_k(m).

Here x_j is a feature minus its mean c_j over the observed training values, in the user's units: estimators centre
features before a class sees them (unless ``center=False`` or ``fit_intercept=False``), so that 0 stands for the mean.

An adaptivity class consists of the basis phi, a mask of the pairs (j, k) that exist, and optionally a convex structure
on W. A new class implements `basis`; everything else has a default.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import has_fit_parameter

from admiss.estimator.by_value import EqualByValue
from admiss.patterns import PatternTable
from formulations.arrays import BoolArray, FloatArray, Matrix
from formulations.jit import compiled

if TYPE_CHECKING:
    import cvxpy as cp

# Number of entries above which the columns are sparse.
DENSE_ENTRIES = 2**23
# Number of patterns on which the basis is evaluated at once.
PATTERN_BLOCK = 2**14

Fit = TypeVar("Fit", bound=Callable[..., Any])


def from_patterns(fit: Fit) -> Fit:
    """Mark a ``fit`` that looks at the patterns only; it is given X as it is, and no centred copy is made for it."""
    vars(fit)["from_patterns"] = True
    return fit


def homogeneous(structure: Fit) -> Fit:
    """Mark a ``structure`` whose penalty is a norm or the like, and whose constraints are cones.

    Omega(c W) = c Omega(W) for c > 0, and c W is allowed with W: solvers are given W in units that suit them.
    """
    vars(structure)["homogeneous"] = True
    return structure


class Adaptivity(EqualByValue, BaseEstimator):
    """Base of the adaptivity classes.

    Subclasses implement ``basis``. They may implement ``fit`` (to learn something from the training rows), ``mask``
    (to leave out pairs of feature and basis function), ``names`` (for printing), ``columns`` (to replace the product
    x_j (1 - m_j) phi_k(m)), ``penalty_factors`` (to penalise some coefficients more than others) and ``structure`` (a
    convex penalty or constraints on W). ``fit`` stores what it learns in attributes whose names end in an underscore:
    numpy arrays, or objects that are equal only to themselves.
    ``fit`` and ``columns`` see centred features x_j - c_j in the user's units.

    Examples
    --------
    >>> class CountAdaptive(Adaptivity):
    ...     def basis(self, M):
    ...         missing = M.sum(axis=1)
    ...         return np.column_stack([np.ones(len(M)), missing])
    >>> CountAdaptive().basis(np.array([[0.0, 1.0], [1.0, 1.0]])).tolist()
    [[1.0, 1.0], [1.0, 2.0]]
    """

    # Whether the basis functions are the indicators of cells: every cell then has its own free intercept.
    cells: ClassVar[bool] = False
    # Whether columns are linear in x, in its units. If not, ``fit`` and ``columns`` see the features as they are,
    # neither centred nor scaled, columns must be free of units, and there is no ``coef_at``.
    linear_in_x: ClassVar[bool] = True
    # Whether the model is imputation by constants followed by one linear model (Section 3.1 of the paper). Not
    # inherited: a subclass with another basis is another model.
    constant_imputation: ClassVar[bool] = False

    @from_patterns
    def fit(self, X: FloatArray, M: BoolArray) -> Self:
        """A copy fitted to the training rows.

        Parameters
        ----------
        X : array of shape (n, d)
            Training rows, NaN where missing: centred features x_j - c_j in the user's units, not scaled.
        M : bool array of shape (n, d)
            Their patterns.

        A class may take ``sample_weight`` as a third argument.
        """
        return copy.copy(self)

    def basis(self, M: FloatArray) -> Matrix:
        """The values phi_k(m) of the basis functions, of shape (rows of M, K), dense or csr.

        Parameters
        ----------
        M : array of shape (P, d)
            Patterns, 1.0 where missing and 0.0 where observed.
        """
        raise TypeError(f"{type(self).__name__} must implement basis(M).")

    def mask(self, d: int) -> BoolArray:
        """Which (j, k) exist, of shape (d + 1, K); row 0 is the intercept. All of them by default."""
        phi = self.basis(np.zeros((1, d)))
        _require_rows(self, phi, 1)
        return np.ones((d + 1, phi.shape[1]), dtype=bool)

    def names(self, feature_names: Sequence[str]) -> list[str]:
        """Names of the basis functions."""
        return [f"phi_{k}" for k in range(self.basis(np.zeros((1, len(feature_names)))).shape[1])]

    def feature_words(self, feature_names: Sequence[str]) -> list[str]:
        """Printed names of the features; they may differ from the given names if ``columns`` is replaced."""
        return list(feature_names)

    def columns(self, X: FloatArray, M: BoolArray) -> Matrix:
        """The design: x_j (1 - m_j) phi_k(m) for every (j, k) of the mask, row by row of the mask.

        A replacement must be affine in x, for ``coef_at`` and ``intercept_at`` to describe it, and in the units of x_j,
        for features to be scaled correctly. x_j is a centred feature: 0 is its mean in training. A class with
        ``linear_in_x = False`` need not be affine in x; its columns are free of units.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows, NaN where missing: centred features x_j - c_j in the user's units, with the c_j of training.
        M : bool array of shape (n, d)
            Their patterns.
        """
        phi = self.basis(M.astype(float))
        mask = self.mask(X.shape[1])
        if sp.issparse(phi) or len(X) * mask.sum() > DENSE_ENTRIES:
            Z = np.column_stack([np.ones(len(X)), np.where(M, 0.0, X)])
            phi = sp.csc_array(phi)
            features = [sp.diags_array(Z[:, j]) @ phi[:, np.flatnonzero(mask[j])] for j in range(len(mask))]
            product = sp.csr_array(sp.hstack(features))
            product.eliminate_zeros()
            return product
        pairs = map(np.ascontiguousarray, np.nonzero(mask))
        return _product_columns(np.ascontiguousarray(X), np.ascontiguousarray(M), np.asarray(phi, dtype=float), *pairs)

    def counts(self, patterns: BoolArray, weights: FloatArray) -> FloatArray:
        """n_k of shape (d + 1, K): the total weight of rows with x_j observed and phi_k(m) nonzero."""
        used = self.basis(patterns.astype(float)) != 0
        observed = weights[:, None] * np.column_stack([np.ones(len(patterns)), ~patterns])
        return np.asarray((used.astype(float).T @ observed).T)

    def penalty_factors(self, counts: FloatArray) -> FloatArray:
        """f_jk of shape (d + 1, K) in the penalties c_k f_jk lambda / n_jk; 1 by default.

        Parameters
        ----------
        counts : array of shape (d + 1, K)
            n_jk over all training rows; 0 for a column that is left out.

        A class with factors of its own states all proportions: ``adaptive_penalty="auto"`` is then 1.
        """
        return np.ones_like(counts)

    def has_penalty_factors(self) -> bool:
        """Whether the class has penalty factors of its own."""
        return type(self).penalty_factors is not Adaptivity.penalty_factors

    def structure(self, W: "cp.Expression") -> "tuple[cp.Expression, list[cp.Constraint]]":
        """A convex penalty and constraints on W, the cvxpy expression of shape (d + 1, K); none by default.

        W is in the units in which the penalty acts: those of the scaled features if the estimator scales.
        """
        return 0.0, []

    def has_homogeneous_structure(self) -> bool:
        """Whether the structure is marked as homogeneous."""
        return bool(getattr(type(self).structure, "homogeneous", False))

    def has_structure(self) -> bool:
        """Whether the class imposes a structure on W."""
        return type(self).structure is not Adaptivity.structure

    def linear_at_patterns(self) -> bool:
        """Whether predictions are affine in x at every pattern, as ``coef_at`` requires."""
        return self.linear_in_x

    def degrees(self) -> tuple[int, int] | None:
        """Degrees of the monomials of m that multiply x_j and 1, if these are the basis; None for any other class.

        The columns of such a class, and their sums over rows, are computed faster; it changes nothing else.
        """
        return None

    def n_coefficients(self, d: int, n: float) -> int | None:
        """p(F) of Theorem 1 at most, for d features and n rows (which may be infinity).

        For a class whose basis depends on the training rows. None by default: p(F) is the rank of the columns.
        """
        return None

    def imputes_constants(self) -> bool:
        """Whether this class itself is declared to be imputation by constants."""
        return bool(vars(type(self)).get("constant_imputation", False))


@dataclass(frozen=True)
class Basis:
    """All that a fitted class says of its columns before any row is made into them.

    Attributes
    ----------
    adaptivity : Adaptivity
        The fitted class.
    mask : bool array of shape (d + 1, K)
        The pairs (j, k) that exist.
    constant : bool array of shape (K,)
        Whether each basis function is constant and not 0 on the training patterns.
    counts, factors : arrays of shape (d + 1, K)
        n_jk, and the penalty factors.
    has_factors, has_structure : bool
        Whether the class has penalty factors of its own, and a structure on W.
    """

    adaptivity: Adaptivity
    mask: BoolArray
    constant: BoolArray
    counts: FloatArray
    factors: FloatArray
    has_factors: bool
    has_structure: bool

    @classmethod
    def of(cls, fitted: Adaptivity, mask: BoolArray, constant: BoolArray, counts: FloatArray) -> "Basis":
        """The basis of a fitted class with these counts."""
        used = np.where(mask, counts, 0.0)
        factors = np.asarray(fitted.penalty_factors(used), dtype=float)
        if factors.shape != used.shape or not np.all((factors[used > 0] >= 0) & np.isfinite(factors[used > 0])):
            raise ValueError(
                f"{type(fitted).__name__}.penalty_factors must give {used.shape} finite non-negative numbers."
            )
        return cls(fitted, mask, constant, counts, factors, fitted.has_penalty_factors(), fitted.has_structure())

    @classmethod
    def learned(
        cls, adaptivity: Adaptivity, X: FloatArray, M: BoolArray, sample_weight: FloatArray, table: PatternTable
    ) -> "Basis":
        """The basis of a class that is fitted to training rows, with their patterns in ``table``."""
        weighted = {"sample_weight": sample_weight} if has_fit_parameter(adaptivity, "sample_weight") else {}
        fitted = copy.copy(adaptivity).fit(X, M, **weighted)
        mask = fitted.mask(X.shape[1])
        low = np.full(1, np.inf)
        high = np.full(1, -np.inf)
        counts = np.zeros(1)
        for start in range(0, len(table.patterns), PATTERN_BLOCK):
            patterns = table.patterns[start : start + PATTERN_BLOCK]
            phi = fitted.basis(patterns.astype(float))
            _require_rows(fitted, phi, len(patterns))
            block_low, block_high = column_extremes(phi)
            low, high = np.minimum(low, block_low), np.maximum(high, block_high)
            counts = counts + fitted.counts(patterns, table.weights[start : start + PATTERN_BLOCK])
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise ValueError(f"{type(fitted).__name__}.basis gives NaN or infinity on the training patterns.")
        return cls.of(fitted, mask, (low == high) & (low != 0), counts)


def _require_rows(adaptivity: Adaptivity, phi: Matrix, n: int) -> None:
    if np.ndim(phi) != 2 or phi.shape[0] != n:
        raise ValueError(
            f"{type(adaptivity).__name__}.basis must give a row for each of {n} patterns, not {np.shape(phi)}."
        )


def column_extremes(columns: Matrix) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest entry of each column."""
    low, high = columns.min(axis=0), columns.max(axis=0)
    if sp.issparse(columns):
        return low.toarray().ravel(), high.toarray().ravel()
    return low, high


@compiled
def _product_columns(X, M, phi, j, k):  # type: ignore[no-untyped-def]
    """x_j (1 - m_j) phi_k(m) for the pairs (j, k), one column per pair; j = 0 is the intercept."""
    n, p = len(X), len(j)
    columns = np.empty((n, p))
    for i in range(n):
        for c in range(p):
            feature = j[c] - 1
            if feature < 0:
                columns[i, c] = phi[i, k[c]]
            elif M[i, feature]:
                columns[i, c] = 0.0
            else:
                columns[i, c] = X[i, feature] * phi[i, k[c]]
    return columns
