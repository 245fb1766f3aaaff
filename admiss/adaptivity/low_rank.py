"""Affine weights whose corrections have low rank, for many features.

*Definition.* The weights are affine in the pattern, w_j(m) = w_0j + sum_k W_jk m_k, and so is the intercept, with the
penalty

    Omega(W) = strength * min_D || W + diag(D) ||_*

on the corrections: the nuclear norm || . ||_* is the sum of the singular values, the convex surrogate of the rank. W_jj
has no effect, since x_j is not observed if m_j = 1, and minimises the norm: otherwise a matrix of rank 1 would count as
one of full rank once its diagonal is set to 0. The base weights w_0 and the intercept are not in the norm: strength = 0
is `Affine`, and above a finite strength the model is `AffineIntercept`, at every lam. W is in the units of the scaled
features.

*p(F)* = d^2 + d + 1, as for `Affine`, of which it is a subset: corrections U V' of rank r have about 2 d r parameters.

*What it can express.* Missing features act on the weights through few scores, sum_k W_jk m_k = sum_r U_jr (V_r'm): each
of them moves all weights along the same few directions.

*Where it loses.* Independent normal features, 40 % missing at random, R2 on 4,000 new rows, strength selected on a
quarter of the training rows, lam of the others by cross-validation, means of 2 (d = 30) or 3 data sets:

============== ==== ===== ========= ======= =================
corrections    d    rows  low rank  affine  affine intercept
============== ==== ===== ========= ======= =================
of rank 1      30   500   .695      .499    .454
of full rank   12   300   .651      .666    .482
none           12   300   .785      .780    .786
============== ==== ===== ========= ======= =================

It loses a little to `Affine` if the corrections have full rank, and gains nothing without corrections. It is slow,
since the norm is a semidefinite constraint of order 2 d: .1 s for d = 10, 2 s for 20, 13 s for 30, 35 s (400 rows) to
2 minutes (2,000 rows) for 40, 4 minutes for 60, per fit on one core. It is practical up to d = 30. There is no fast
path: select the strength with scikit-learn's GridSearchCV over ``adaptivity__strength``.

*Reference.* M. Fazel, H. Hindi and S. Boyd, A rank minimization heuristic with application to minimum order system
approximation, Proceedings of the American Control Conference, 2001.
"""

from typing import TYPE_CHECKING, Self

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity.base import from_patterns, homogeneous
from admiss.adaptivity.polynomial import Affine
from admiss.estimator.validation import require_number
from formulations.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    import cvxpy as cp


class LowRankAffine(Affine):
    """Affine weights with a nuclear norm on the corrections.

    Parameters
    ----------
    strength : float
        Weight of the norm, in addition to the penalty of the estimator; 0 is `Affine`.

    Examples
    --------
    >>> from admiss import AdaptiveRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.where(rng.uniform(size=(200, 4)) < 0.3, np.nan, rng.normal(size=(200, 4)))
    >>> y = np.nansum(X, axis=1) * (1 + np.isnan(X).sum(axis=1))
    >>> model = AdaptiveRegressor(LowRankAffine(strength=0.05), lam=0.1).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.99
    """

    def __init__(self, strength: float = 0.1) -> None:
        self.strength = strength

    @from_patterns
    def fit(self, X: FloatArray, M: BoolArray) -> Self:
        require_number(self, "strength")
        return super().fit(X, M)

    def has_structure(self) -> bool:
        return bool(self.strength != 0)

    @homogeneous
    def structure(self, W: "cp.Expression") -> "tuple[cp.Expression, list[cp.Constraint]]":
        import cvxpy as cp

        own = self.monomials_[1:].T  # the entries (j, k) whose indicator m_k is that of x_j itself
        if not own.any():
            return 0.0, []
        entries, count = np.flatnonzero(own), int(own.sum())
        scatter = sp.csr_array((np.ones(count), (entries, np.arange(count))), shape=(own.size, count))
        D = cp.reshape(scatter @ cp.Variable(count, name="D"), own.shape, order="C")
        return self.strength * cp.normNuc(W[1:, 1:] + D), []
