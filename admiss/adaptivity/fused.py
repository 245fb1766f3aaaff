"""One linear model for each pattern, fused between neighbouring patterns: from static to fully adaptive.

*Definition.* Every observed pattern p has its own weights W_jp of its observed features and its own intercept W_0p, as
in `FullyAdaptive`, with the penalty

    Omega(W) = (strength / P) sum_j sum_{(p, q) in E_j} | W_jp - W_jq |,        j = 0 (the intercept), .., d.

E_j are the pairs of patterns with x_j that are not connected by a path of shorter steps, in Hamming distance: all pairs
one bit apart and, if these leave the patterns with x_j in several components, the nearest pairs between components.
This is the union of all minimum spanning trees: E_j connects all patterns with x_j and does not depend on the order of
the features. The penalty is l1, not squared, so models become equal at a finite strength, group by group. Pairs are not
weighted by rows: a pattern with few rows, whose share of the risk is small, then follows its neighbours, and one with
many rows can depart from them (on the first data set of each kind below, weights by the smaller number of rows, or by
its root, were .001 better to .035 worse at their best strength).

An unseen pattern takes each weight from the nearest pattern with that feature. The intercepts are not penalised by lam;
a weight has lambda_jp = lambda n_p / n_j^2, which sums to lambda / n_j over the patterns with x_j. So strength = 0 is
`FullyAdaptive` (at lam = 0, on observed patterns), and above a finite strength the model is exactly `Static`, at every
lam and on all patterns. With the penalty lambda / n_p of W_jp a single row would outweigh all others. ``coef_table``
shows n_j^2 / n_p as n.

*p(F)* = d 2^(d-1) + 2^d if all patterns occur, as for `FullyAdaptive`; a fit with g groups of equal weights has g.

*What it can express.* Any dependence on the pattern, and cheaply those that change along few edges of the cube
{0, 1}^d, such as interactions of few indicators.

*Where it loses.* Test R2, 500 rows, 6 features, strength by 5 folds at lam = 1, the others by cross-validation, means
of 3 data sets:

================================ ====== ======= ================= ======= ===============
data                             fused  static  affine intercept  affine  fully adaptive
================================ ====== ======= ================= ======= ===============
``make_interacting``             .625   .330    .327              .330    .321
``make_synthetic``, MCAR         .482   .451    .451              .518    .305
``make_synthetic``, censoring    .594   .472    .603              .602    .531
================================ ====== ======= ================= ======= ===============

It loses to `Affine` if the effects of missing features are additive, since it must learn each in every part of the
cube, and it needs several rows per pattern: with 1,000 rows of 10 features in 643 patterns it reaches .35 at its best
strength on ``make_interacting`` (static .32, the best possible .67), and under MCAR, in 414 patterns, .57 (affine .60).

Seconds per fit on one lightly loaded core with up to 10 features: .1 for 30 patterns, 1 for 200, 4 for 400, 16 for
1,000, a twentieth of it compilation; 500 patterns of 30 features took 4 minutes on a busy core. It is practical up to
1,000 patterns of 10 features, or 6,000 coefficients; more than ``max_patterns`` are an error.

*Reference.* R. Tibshirani, M. Saunders, S. Rosset, J. Zhu and K. Knight, Sparsity and smoothness via the fused lasso,
Journal of the Royal Statistical Society B 67, 2005; R. J. Tibshirani and J. Taylor, The solution path of the
generalized lasso, Annals of Statistics 39, 2011.
"""

from typing import TYPE_CHECKING, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from admiss.adaptivity.base import from_patterns, homogeneous
from admiss.adaptivity.fully_adaptive import FullyAdaptive
from admiss.estimator.validation import require_number
from admiss.patterns import nearest
from formulations.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import cvxpy as cp


class FusedPatterns(FullyAdaptive):
    """One linear model for each pattern, with a penalty on the differences between neighbours.

    Parameters
    ----------
    strength : float
        Weight of the penalty, in addition to that of the estimator; 0 is one model per pattern, large values give one
        model for all.
    max_patterns : int
        A larger number of patterns is an error, raised before anything is built.

    Examples
    --------
    >>> from admiss import AdaptiveRegressor
    >>> from admiss.datasets import make_interacting
    >>> data = make_interacting(n=300, d=4, random_state=0)
    >>> model = AdaptiveRegressor(FusedPatterns(strength=0.2)).fit(data.X_train, data.y_train)
    >>> round(model.score(data.X_test, data.y_test), 2)
    0.65
    """

    # Rows (j, p, q): patterns p and q are neighbours for feature j, or for the intercept if j = 0.
    edges_: IntArray

    def __init__(self, strength: float = 0.3, max_patterns: int = 1000) -> None:
        self.strength = strength
        self.max_patterns = max_patterns

    @from_patterns
    def fit(self, X: FloatArray, M: BoolArray, sample_weight: FloatArray | None = None) -> Self:
        require_number(self, "strength")
        require_number(self, "max_patterns")
        fitted = super().fit(X, M, sample_weight)
        P = len(fitted.patterns_)
        if self.strength > 0 and P > self.max_patterns:
            raise ValueError(
                f"FusedPatterns has {P:,} patterns, more than max_patterns={self.max_patterns:,}: use Affine, "
                "whose size does not depend on the number of patterns, or raise the limit."
            )
        fitted.edges_ = _edges(fitted.patterns_) if self.strength > 0 else np.empty((0, 3), dtype=np.int64)
        return fitted

    def columns(self, X: FloatArray, M: BoolArray) -> sp.csr_array:
        """x_j in the column of the nearest pattern that observes x_j."""
        mask = self.mask(X.shape[1])
        position = np.cumsum(mask).reshape(mask.shape) - 1
        Z, observed = np.column_stack([np.ones(len(X)), X]), np.column_stack([np.ones(len(X), dtype=bool), ~M])
        rows, columns = [], []
        for j in range(len(mask)):
            have, rows_j = np.flatnonzero(mask[j]), np.flatnonzero(observed[:, j])
            cells = have[nearest(self.patterns_[have], self.weights_[have], M[rows_j])]
            rows.append(rows_j)
            columns.append(position[j, cells])
        values = np.concatenate([Z[i, j] for j, i in enumerate(rows)])
        return sp.csr_array((values, (np.concatenate(rows), np.concatenate(columns))), shape=(len(X), int(mask.sum())))

    def counts(self, patterns: BoolArray, weights: FloatArray) -> FloatArray:
        """n_jp = n_j^2 / n_p, whose inverses sum to 1 / n_j over the patterns that observe x_j."""
        own = super().counts(patterns, weights)
        together = self.weights_ @ np.column_stack([np.ones(len(self.patterns_)), ~self.patterns_])
        return np.divide(together[:, None] ** 2, own, out=np.zeros_like(own), where=own > 0)

    def has_structure(self) -> bool:
        return bool(self.strength != 0)

    @homogeneous
    def structure(self, W: "cp.Expression") -> "tuple[cp.Expression, list[cp.Constraint]]":
        import cvxpy as cp

        E, P = len(self.edges_), len(self.patterns_)
        if E == 0:
            return 0.0, []
        j, p, q = self.edges_.T
        entries = np.concatenate([j * P + p, j * P + q])
        difference = sp.csr_array((np.repeat([1.0, -1.0], E), (np.tile(np.arange(E), 2), entries)), shape=(E, W.size))
        return self.strength / P * cp.norm1(difference @ cp.vec(W, order="C")), []


def _edges(patterns: BoolArray) -> IntArray:
    """The rows of ``edges_``."""
    m = patterns.astype(float)
    size = m.sum(axis=1)
    distance = size[:, None] + size - 2.0 * m @ m.T
    having = [np.arange(len(patterns)), *(np.flatnonzero(observed) for observed in ~patterns.T)]
    pairs = [own[_spanning_pairs(distance[np.ix_(own, own)])] for own in having]
    return np.vstack([np.column_stack([np.full(len(pair), j), pair]) for j, pair in enumerate(pairs)])


def _spanning_pairs(distance: FloatArray) -> IntArray:
    """The pairs in some minimum spanning tree: those not connected by a path of shorter steps."""
    is_edge = np.zeros(distance.shape, dtype=bool)
    n_groups, group = len(distance), np.arange(len(distance))
    while n_groups > 1:
        apart = group[:, None] != group
        is_edge |= apart & (distance == distance[apart].min())
        n_groups, group = connected_components(sp.csr_array(is_edge), directed=False)
    return np.argwhere(np.triu(is_edge))
