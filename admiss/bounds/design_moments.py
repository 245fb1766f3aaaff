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
"""

import math
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.sparse.linalg import cg

from admiss.adaptivity import Adaptivity, Affine, AffineIntercept, Polynomial, Static
from admiss.bounds.counts import all_patterns, class_name, dense
from admiss.bounds.missing_law import MissingLaw
from formulations.arrays import FloatArray

# Pivots below this share of their diagonal entry belong to linearly dependent columns.
DEPENDENT = 1e-11
# Number of columns up to which the moments are factorised; more are a system for conjugate gradients.
FACTORISED = 5000
MOST_COLUMNS = 200_000
# Relative residual of conjugate gradients; the error of U is of the order of its square.
RESIDUAL = 1e-9
# Largest number of features of a new class, whose design is summed over all patterns.
SUMMED_FEATURES = 12


def unexplained(adaptivity: Adaptivity, mean: FloatArray, covariance: FloatArray, law: MissingLaw) -> FloatArray:
    """U, such that the best member of the class leaves b'U b of y = b'(X - mean) unexplained.

    Examples
    --------
    >>> law = MissingLaw("independent", rates=np.array([0.5]))
    >>> unexplained(Static(), np.zeros(1), np.eye(1), law).round(9).tolist()  # half of the values are missing
    [[0.5]]
    """
    if adaptivity.has_structure() or type(adaptivity).columns is not Adaptivity.columns:
        raise ValueError(
            f"The second moments do not determine the best member of {class_name(adaptivity)}, which has a structure "
            "or columns of its own: give its bias as a number."
        )
    degrees = polynomial_degrees(adaptivity)
    if law.rates is not None and degrees is not None:
        G, H = _independent_bits(*degrees, mean, covariance, law.rates)
    else:
        G, H = _by_patterns(adaptivity, mean, covariance, law)
    return covariance - _explained(G, H)


def polynomial_degrees(adaptivity: Adaptivity) -> tuple[int, int] | None:
    """Degrees of the weights and of the intercept of a polynomial class."""
    if type(adaptivity) is Polynomial:
        return adaptivity.degree, adaptivity.degree
    return {Static: (0, 0), AffineIntercept: (0, 1), Affine: (1, 1)}.get(type(adaptivity))


def _independent_bits(
    degree: int, intercept_degree: int, mean: FloatArray, covariance: FloatArray, rates: FloatArray
) -> tuple[sp.csr_array, FloatArray]:
    """G and H in closed form."""
    d = len(rates)
    S = _second_moment(mean, covariance)
    bits = [k + 1 for k in range(d) if 0 < rates[k] < 1]  # features are numbered from 1, the intercept is 0
    q = np.concatenate([[1.0], 1 - rates])
    with_bit = -np.sqrt((1 - q) * q)
    columns = _columns(degree, intercept_degree, bits, [i for i in range(d + 1) if q[i] > 0])
    index = {column: k for k, column in enumerate(columns)}
    features = sorted({i for i, _ in columns})
    rows, others, values = [], [], []
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
                    values.append(value)
    G = sp.csr_array((values, (rows, others)), shape=(len(columns), len(columns)))
    H = np.zeros((len(columns), d))
    for i in features[1:]:
        H[index[i, frozenset()]] = q[i] * covariance[i - 1]
    return G, H


def _columns(
    degree: int, intercept_degree: int, bits: list[int], features: list[int]
) -> list[tuple[int, frozenset[int]]]:
    """The columns (i, T) of a polynomial class; an error if there are too many."""
    own = {i: [k for k in bits if k != i] for i in features}
    degrees = {i: degree if i else intercept_degree for i in features}
    if sum(math.comb(len(own[i]), size) for i in features for size in range(degrees[i] + 1)) > MOST_COLUMNS:
        raise ValueError(
            f"A class with more than {MOST_COLUMNS:,} columns is too large for its second moments: use a lower order "
            "or fewer features."
        )
    return [(i, frozenset(T)) for i in features for size in range(degrees[i] + 1) for T in combinations(own[i], size)]


def _by_patterns(
    adaptivity: Adaptivity, mean: FloatArray, covariance: FloatArray, law: MissingLaw
) -> tuple[sp.csr_array, FloatArray]:
    """G and H as sums over patterns."""
    d = len(mean)
    patterns, probabilities = law.patterns, law.probabilities
    if patterns is None or probabilities is None:
        rates = law.rates
        if rates is None or d > SUMMED_FEATURES:
            raise ValueError(
                f"The second moments of {class_name(adaptivity)} are summed over all patterns, for up to "
                f"{SUMMED_FEATURES} features: give its bias as a number."
            )
        patterns = all_patterns(d)
        probabilities = np.where(patterns == 1, rates, 1 - rates).prod(axis=1)
        patterns, probabilities = patterns[probabilities > 0], probabilities[probabilities > 0]
    missing = patterns.astype(bool)
    fitted = adaptivity.fit(np.where(missing, np.nan, 0.0), missing)
    features, functions = np.nonzero(fitted.mask(d))
    observed = np.column_stack([np.ones(len(patterns)), 1 - patterns])
    a = observed[:, features] * dense(fitted.basis(patterns))[:, functions]
    G = (a.T @ (probabilities[:, None] * a)) * _second_moment(mean, covariance)[np.ix_(features, features)]
    H = (probabilities @ a)[:, None] * np.vstack([np.zeros(d), covariance])[features]
    return sp.csr_array(G), H


def _second_moment(mean: FloatArray, covariance: FloatArray) -> FloatArray:
    """S = E z z', z = (1, X)."""
    z = np.concatenate([[1.0], mean])
    S = np.outer(z, z)
    S[1:, 1:] += covariance
    return S


def _explained(G: sp.csr_array, H: FloatArray) -> FloatArray:
    """H' G^+ H of a positive semidefinite G whose range contains H.

    By a Cholesky factor with pivots, after the columns are brought to unit norm; large systems by conjugate gradients,
    W = G^+ H up to a residual, where 2 H'W - W'G W is never above and has the squared error.
    """
    norm = np.sqrt(G.diagonal())
    used = norm > 0
    scale = sp.diags_array(1 / norm[used])
    G, H = scale @ G[used][:, used] @ scale, scale @ H[used]
    if G.shape[0] <= FACTORISED:
        factor, pivots, rank, _ = dpstrf(G.toarray(), tol=DEPENDENT, lower=1)
        Y = solve_triangular(factor[:rank, :rank], H[pivots[:rank] - 1], lower=True)
        return np.asarray(Y.T @ Y)
    W = np.column_stack([cg(G, h, rtol=RESIDUAL, maxiter=10_000)[0] for h in H.T])
    cross = H.T @ W
    return np.asarray(cross + cross.T - W.T @ (G @ W))
