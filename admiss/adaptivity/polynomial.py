"""Weights that are polynomials of the pattern (Section 2.2 of the paper).

The basis functions are monomials  phi_J(m) = prod_{j in J} m_j  over sets J of features that are missing in some
training rows (the monomials of the others are 0). Of features that are always missing together in training, as the
columns of one category are, only the first is in a set: the monomials of the others are the same functions of the
training rows.

===================== ====================== ======================
class                 J for the features     J for the intercept
===================== ====================== ======================
`Static`              the empty set          the empty set
`AffineIntercept`     the empty set          |J| <= 1
`Affine`              |J| <= 1               |J| <= 1
`Polynomial(t)`       |J| <= t               |J| <= t
===================== ====================== ======================

A feature x_j has no coefficient for sets J that contain j, since (1 - m_j) phi_J(m) = 0.
"""

import copy
import itertools
import math
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from admiss.adaptivity.base import Adaptivity, from_patterns
from admiss.estimator.validation import require_integer, require_number
from admiss.patterns import alike, missing_once
from formulations.arrays import BoolArray, FloatArray, IntArray


class _Monomials(Adaptivity):
    """Monomials of the pattern; ``monomials_[k, j]`` is True if feature j is in the set of basis function k."""

    monomials_: BoolArray
    alike_: IntArray
    degree: int
    static_features: ClassVar[bool] = False

    @from_patterns
    def fit(self, X: FloatArray, M: BoolArray) -> Self:
        missable = missing_once(M)
        sets = [J for s in range(min(self.degree, len(missable)) + 1) for J in itertools.combinations(missable, s)]
        fitted = copy.copy(self)
        fitted.alike_ = alike(M)
        fitted.monomials_ = np.zeros((len(sets), M.shape[1]), dtype=bool)
        for k, J in enumerate(sets):
            fitted.monomials_[k, list(J)] = True
        return fitted

    def basis(self, M: FloatArray) -> FloatArray:
        missing = M @ self.monomials_.T
        return np.asarray(missing == self.monomials_.sum(axis=1), dtype=float)

    def mask(self, d: int) -> BoolArray:
        features = ~self.monomials_.T
        if self.static_features:
            features = np.zeros_like(features)
            features[:, 0] = True
        return np.vstack([np.ones(len(self.monomials_), dtype=bool), features])

    def degrees(self) -> tuple[int, int] | None:
        methods = ("fit", "basis", "mask", "columns", "counts", "structure")
        own = Polynomial if isinstance(self, Polynomial) else _Monomials
        if any(getattr(type(self), name) is not getattr(own, name) for name in methods):
            return None  # a subclass with columns of its own
        return (0 if self.static_features else self.degree), self.degree

    def names(self, feature_names: Sequence[str]) -> list[str]:
        together = [
            ", ".join(name for name, first in zip(feature_names, self.alike_, strict=True) if first == j)
            for j in range(len(feature_names))
        ]
        sets = [[together[j] for j in np.flatnonzero(J).tolist()] for J in self.monomials_]
        return [" & ".join(f"{names} missing" for names in J) if J else "1" for J in sets]


class Static(_Monomials):
    """One linear model for all patterns: phi = 1.

    Equivalent to zero imputation followed by linear regression. p(F) = d + 1, including the intercept.

    Examples
    --------
    >>> from admiss import AdaptiveRegressor
    >>> from admiss.adaptivity import Static
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=200, d=3, rank=3, n_active=3, mechanism="censoring", random_state=0)
    >>> model = AdaptiveRegressor(Static()).fit(data.X_train, data.y_train)
    >>> model.coefficients_.shape
    (4,)
    """

    constant_imputation: ClassVar[bool] = True
    degree = 0


class AffineIntercept(_Monomials):
    """Static weights, and an intercept b(m) = b_0 + sum_j b_j m_j (Section 3.1 of the paper).

    Equivalent to imputing mu_j = b_j / w_j and a linear model, learned jointly. p(F) = 2 d + 1.

    Examples
    --------
    >>> from admiss import AdaptiveRegressor
    >>> from admiss.adaptivity import AffineIntercept
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=200, d=3, rank=3, n_active=3, mechanism="censoring", random_state=0)
    >>> model = AdaptiveRegressor(AffineIntercept()).fit(data.X_train, data.y_train)
    >>> model.coefficients_.shape
    (7,)
    """

    constant_imputation: ClassVar[bool] = True
    static_features: ClassVar[bool] = True
    degree = 1


class Affine(_Monomials):
    """Weights and intercept that are affine in the pattern: w_j(m) = w_0j + sum_k W_jk m_k.

    p(F) = d^2 + d + 1, since W_jj has no effect.

    Examples
    --------
    >>> from admiss import AdaptiveRegressor
    >>> from admiss.adaptivity import Affine
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=200, d=3, rank=3, n_active=3, mechanism="censoring", random_state=0)
    >>> model = AdaptiveRegressor(Affine()).fit(data.X_train, data.y_train)
    >>> model.coefficients_.shape
    (13,)
    """

    degree = 1


class Polynomial(_Monomials):
    """Weights and intercept that are polynomials of the pattern.

    Parameters
    ----------
    degree : int
        Order t of the polynomial, up to 100.
    max_columns : int
        A larger number of columns is an error, raised before any is built.

    Examples
    --------
    >>> M = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0]], dtype=bool)
    >>> fitted = Polynomial(degree=2).fit(np.zeros((3, 3)), M)
    >>> fitted.names(["a", "b", "c"])
    ['1', 'a missing', 'b missing', 'a missing & b missing']
    >>> int(fitted.mask(3).sum()) == Polynomial(degree=2).n_columns(d=3, missable=2)
    True
    """

    def __init__(self, degree: int = 2, max_columns: int = 20_000) -> None:
        self.degree = degree
        self.max_columns = max_columns

    def degrees(self) -> tuple[int, int] | None:
        require_integer(self, "degree", 0)
        return super().degrees()

    def n_columns(self, d: int, missable: int) -> int:
        """Number of columns of the design for d features, of which ``missable`` are missing in some rows."""
        require_integer(self, "degree", 0)
        degree = min(self.degree, missable)
        sets = sum(math.comb(missable, s) for s in range(degree + 1))
        sets_without_own = sum(math.comb(missable - 1, s) for s in range(degree + 1)) if missable else 0
        return sets + (d - missable) * sets + missable * sets_without_own

    @from_patterns
    def fit(self, X: FloatArray, M: BoolArray) -> Self:
        require_number(self, "max_columns")
        d, missable = M.shape[1], len(missing_once(M))
        columns = self.n_columns(d, missable)
        if columns > self.max_columns:
            raise ValueError(
                f"Polynomial(degree={self.degree}) has {columns:,} columns on {d} features, of which {missable} can be "
                f"missing, more than max_columns={self.max_columns:,}: lower the degree or raise the limit."
            )
        return super().fit(X, M)
