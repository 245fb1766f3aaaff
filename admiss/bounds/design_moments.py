"""Second moments of the design of an adaptivity class, and the risk of its best member.

Let X have mean mu and covariance C, z = (1, X), S = E z z', and let M be independent of (X, y). The best member of F
for y = b'(X - mu), in mean square, leaves b'U b unexplained, with

    U = C - H' G^+ H,     G = E a a',     H = E a (X - mu)',

where a = (z_i (1 - m_i) phi_k(m)) is the design of F, m_0 = 0. A constant added to y is explained by every class, and
what X does not explain of y is uncorrelated with a: b are the slopes of the best linear predictor of y from X.

*Independent bits.* For M_k ~ Bernoulli(p_k), q_k = 1 - p_k, take products phi_T = prod_{k in T} (m_k - p_k) /
sqrt(p_k q_k) as the basis of the polynomials, over bits with 0 < p_k < 1 (the others are constant). Column (i, T) has
i not in T, as phi_i (1 - m_i) is a multiple of 1 - m_i. The expectation of a product of two columns is one factor per
bit: 1 if k is in both sets or in neither and 0 if in one of them, but E (1 - m_k) = q_k and E (1 - m_k) phi_k =
-sqrt(p_k q_k) if k is one of the features of the two columns. So

    E a_(i,T) a_(i,T')  =  S_ii q_i 1(T = T')
    E a_(i,T) a_(j,T')  =  S_ij g_i(T') g_j(T) 1(T - j = T' - i),     i != j,

with g_k(T) = -sqrt(p_k q_k) if k is in T, else q_k (1 for the intercept). And E a_(i,T) = 0 unless T is empty: H has
the rows q_i (0, C)_i for empty T, and 0 elsewhere.

*Any law of M.* Sums over its patterns, with the basis of the class itself.

*At a pattern.* The best member has the weights w_i(m) = sum_T (1 - m_i) phi_T(m) W_(i,T), with W = G^+ H b, and leaves
b'C b - 2 sum_i w_i (C b)_i + w'S w of b'(X - mu) unexplained at m. Its mean over M is b'U b.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpstrf
from scipy.sparse.linalg import cg

from admiss.adaptivity import Adaptivity
from admiss.bounds.counts import class_name, dense, polynomial_degrees
from admiss.bounds.setting import MissingLaw
from formulations.arrays import FloatArray, IntArray
from formulations.rounding import PIVOT_TOLERANCE as DEPENDENT

# Number of columns up to which the moments are factorised, in 200 MB; more are a system for conjugate gradients.
FACTORISED = 5000
# Number of patterns at a time: their residual covariances of 50 features take 20 MB.
BATCH = 1024


@dataclass(frozen=True, eq=False)
class Design:
    """The design of a class, of p columns."""

    # The feature i of each column, 0 for the intercept.
    features: IntArray
    # From patterns to (1 - m_i) phi_k(m) of each column.
    values: Callable[[FloatArray], FloatArray]
    S: FloatArray
    G: sp.csr_array
    H: FloatArray

    def unexplained(self, covariance: FloatArray) -> FloatArray:
        """U, such that the best member leaves b'U b of y = b'(X - mean) unexplained."""
        W = self.solve(self.H)
        cross = self.H.T @ W
        # never above H'G^+ H, with the square of the error of W
        return np.asarray(covariance - (cross + cross.T - W.T @ (self.G @ W)))

    def unexplained_at(self, patterns: FloatArray, covariance: FloatArray, slopes: FloatArray) -> FloatArray:
        """What the best member for the slopes leaves unexplained at each pattern."""
        W = self.solve(self.H @ slopes[:, None])[:, 0]
        of_feature = sp.csr_array((W, (np.arange(len(W)), self.features)), shape=(len(W), len(self.S)))
        parts = [self.values(patterns[k : k + BATCH]) @ of_feature for k in range(0, len(patterns), BATCH)]
        weights, target = np.concatenate(parts), covariance @ slopes
        return np.asarray(slopes @ target - 2 * weights[:, 1:] @ target + ((weights @ self.S) * weights).sum(axis=1))

    def solve(self, H: FloatArray) -> FloatArray:
        """W with G W = H, for H in the range of G.

        By a Cholesky factor with pivots, after the columns are brought to unit norm; large systems by conjugate
        gradients.
        """
        norm = np.sqrt(self.G.diagonal())
        used = np.flatnonzero(norm)
        scale = sp.diags_array(1 / norm[used])
        G, right = scale @ self.G[used][:, used] @ scale, scale @ H[used]
        W = np.zeros(H.shape)
        if len(used) <= FACTORISED:
            factor, pivots, rank, _ = dpstrf(G.toarray(), tol=DEPENDENT, lower=1)
            retained = pivots[:rank] - 1
            W[used[retained]] = cho_solve((factor[:rank, :rank], True), right[retained])
        else:
            # the error of U is of the order of the square of this residual
            W[used] = np.column_stack([cg(G, h, rtol=1e-9, maxiter=10_000)[0] for h in right.T])
        W[used] = scale @ W[used]
        return W


def design_of(adaptivity: Adaptivity, mean: FloatArray, covariance: FloatArray, law: MissingLaw) -> Design:
    """The design of a class, for features of a mean and a covariance.

    Examples
    --------
    >>> from admiss.adaptivity import Static
    >>> law = MissingLaw("independent", rates=np.array([0.5]))
    >>> design = design_of(Static(), np.zeros(1), np.eye(1), law)
    >>> design.unexplained(np.eye(1)).round(9).tolist()  # half of the values are missing
    [[0.5]]
    >>> design.unexplained_at(np.array([[0.0], [1.0]]), np.eye(1), np.ones(1)).round(9).tolist()
    [0.0, 1.0]
    """
    if adaptivity.has_structure() or type(adaptivity).columns is not Adaptivity.columns:
        raise ValueError(
            f"The second moments do not determine the best member of {class_name(adaptivity)}, which has a structure "
            "or columns of its own: use another class, or give its bias to a BoundSetting as a number."
        )
    degrees = polynomial_degrees(adaptivity, len(mean))
    if law.rates is not None and degrees is not None:
        return _independent_bits(*degrees, mean, covariance, law.rates)
    return _by_patterns(adaptivity, mean, covariance, law)


def _independent_bits(
    degree: int, intercept_degree: int, mean: FloatArray, covariance: FloatArray, rates: FloatArray
) -> Design:
    """G and H in closed form."""
    d = len(rates)
    S = _second_moment(mean, covariance)
    bits = [k + 1 for k in range(d) if 0 < rates[k] < 1]  # features are numbered from 1, the intercept is 0
    q = np.concatenate([[1.0], 1 - rates])
    with_bit = -np.sqrt((1 - q) * q)
    columns = _columns(degree, intercept_degree, bits, [i for i in range(d + 1) if q[i] > 0])
    index = {column: k for k, column in enumerate(columns)}
    features = sorted({i for i, _ in columns})
    rows: list[int] = []
    others: list[int] = []
    entries: list[float] = []
    for (i, T), k in index.items():
        for j in features:
            if j == i:
                partners = [((i, T), S[i, i] * q[i])]
            else:
                rest, factor = T - {j}, S[i, j] * (with_bit[j] if j in T else q[j])
                partners = [((j, rest), factor * q[i]), ((j, rest | {i}), factor * with_bit[i])]
            for column, value in partners:
                if value != 0 and column in index:
                    rows.append(k)
                    others.append(index[column])
                    entries.append(value)
    G = sp.csr_array((entries, (rows, others)), shape=(len(columns), len(columns)))
    H = np.zeros((len(columns), d))
    for i in features[1:]:
        H[index[i, frozenset()]] = q[i] * covariance[i - 1]
    places = np.array([i for i, _ in columns])

    def values(patterns: FloatArray) -> FloatArray:
        z = np.column_stack([np.ones(len(patterns)), 1 - patterns])[:, places]
        phi = np.zeros((len(patterns), d + 1))
        phi[:, bits] = (patterns[:, np.array(bits, dtype=int) - 1] - (1 - q[bits])) / -with_bit[bits]
        for k, (_, T) in enumerate(columns):
            for bit in T:
                z[:, k] *= phi[:, bit]
        return z

    return Design(places, values, S, G, H)


def _columns(
    degree: int, intercept_degree: int, bits: list[int], features: list[int]
) -> list[tuple[int, frozenset[int]]]:
    """The columns (i, T) of a polynomial class; an error if there are too many."""
    own = {i: [k for k in bits if k != i] for i in features}
    degrees = {i: degree if i else intercept_degree for i in features}
    if sum(math.comb(len(own[i]), size) for i in features for size in range(degrees[i] + 1)) > 200_000:
        raise ValueError(
            "A class with more than 200,000 columns is too large for its second moments: use a lower order or fewer "
            "features."
        )
    return [(i, frozenset(T)) for i in features for size in range(degrees[i] + 1) for T in combinations(own[i], size)]


def _by_patterns(adaptivity: Adaptivity, mean: FloatArray, covariance: FloatArray, law: MissingLaw) -> Design:
    """G and H as sums over patterns."""
    d = len(mean)
    if law.rates is not None and d > 12:
        raise ValueError(
            f"The second moments of {class_name(adaptivity)} are summed over all patterns, for up to 12 features: use "
            "another class, or give its bias to a BoundSetting as a number."
        )
    patterns, probabilities = law.enumerated()
    missing = patterns.astype(bool)
    fitted = adaptivity.fit(np.where(missing, np.nan, 0.0), missing)
    features, functions = np.nonzero(fitted.mask(d))

    def values(m: FloatArray) -> FloatArray:
        observed = np.column_stack([np.ones(len(m)), 1 - m])
        return np.asarray(observed[:, features] * dense(fitted.basis(m))[:, functions])

    a, S = values(patterns), _second_moment(mean, covariance)
    G = (a.T @ (probabilities[:, None] * a)) * S[np.ix_(features, features)]
    H = (probabilities @ a)[:, None] * np.vstack([np.zeros(d), covariance])[features]
    return Design(features, values, S, sp.csr_array(G), H)


def _second_moment(mean: FloatArray, covariance: FloatArray) -> FloatArray:
    """S = E z z', z = (1, X)."""
    z = np.concatenate([[1.0], mean])
    S = np.outer(z, z)
    S[1:, 1:] += covariance
    return S
