"""Populations of (x, M) over which every expectation is a finite sum, and least squares on them and on their samples.

x = (s_1 u_1, .., s_d u_d), with every sign vector s equally likely and u one of a few fixed points of [0, 1]^d. Then
E x = 0, E x x' is nearly (for u = 1 exactly) a multiple of the identity, and the signs are independent of each other
and of u. Given x, the pattern M has one of these laws:

    half, fifth    M_j ~ Bernoulli(1/2), (1/5), independent
    rare           M_j ~ Bernoulli(1/20), independent
    unequal        M_j ~ Bernoulli(p_j), p_j from .05 to .6, independent
    drop-out       the last K features are missing, K uniform on 0, .., d
    self-masked    M_j ~ Bernoulli(.8) where x_j > 0, else (.2), independent; without x, Bernoulli(1/2)

A function that is linear within patterns is the array W of shape (patterns, d + 1, functions) of its weights, of which
those of missing features are 0; entry 0 is the intercept. Patterns are those of ``all_patterns(d)``.

A truth is a matrix w of shape (d, 2^d), w_j(m) for all patterns m, with 0 where m_j = 1, and

    f*(x, m) = sum_j w_j(m) (1 - m_j) x_j,     L = max_m sum_j |w_j(m)|,

with L the largest |f*| over the box x in [-1, 1]^d.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc
from sklearn.utils import check_random_state

from admiss.adaptivity import Adaptivity
from admiss.bounds.counts import all_patterns, dense
from formulations.arrays import BoolArray, FloatArray, IntArray

# Kinds of truths.
KINDS = ("gaussian", "signs", "parity")
# Number of points u: inside the box, or its corner.
MAGNITUDES = {"box": 8, "corners": 1}
# Singular values below this share of the largest count as 0.
CUTOFF = 1e-10


# P(M_j = 1) of the laws with independent M_j, without x.
RATES: dict[str, Callable[[int], FloatArray]] = {
    "half": lambda d: np.full(d, 0.5),
    "fifth": lambda d: np.full(d, 0.2),
    "rare": lambda d: np.full(d, 0.05),
    "unequal": lambda d: np.linspace(0.05, 0.6, d),
    "self-masked": lambda d: np.full(d, 0.5),
}
LAWS = (*RATES, "drop-out")


def parity_truth(d: int, j: int = 0, L: float = 1.0, over: BoolArray | None = None) -> FloatArray:
    """The truth w_j(m) = L prod_k (1 - 2 m_k) over the other features, or those in a mask; other weights are 0.

    Examples
    --------
    >>> parity_truth(2).tolist()
    [[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    used = np.arange(d) != j
    if over is not None:
        used &= over
    weights = np.zeros((d, 2**d))
    weights[j] = L * (1 - 2 * all_patterns(d)[:, used]).prod(axis=1)
    return _observed_only(weights)


def draw_truth(kind: str, d: int, L: float, random_state: int | np.random.RandomState) -> FloatArray:
    """A random truth of d features whose largest |f*| over the box is L.

    Gaussian: independent normal weights. Signs: independent signs, with |f*| up to L on every pattern. Parity: for a
    random feature, a parity of all other features or, with probability 1/2, of a random subset.
    """
    rng = check_random_state(random_state)
    if kind == "parity":
        j = int(rng.randint(d))
        over = rng.uniform(size=d) < 0.5 if rng.uniform() < 0.5 else None
        return float(rng.choice([-1.0, 1.0])) * parity_truth(d, j, L, over)
    if kind == "signs":
        observed = d - all_patterns(d).sum(axis=1)
        return _observed_only(L * rng.choice([-1.0, 1.0], (d, 2**d)) / np.maximum(observed, 1.0))
    weights = _observed_only(rng.standard_normal((d, 2**d)))
    return weights * (L / np.abs(weights).sum(axis=0).max())


def _observed_only(weights: FloatArray) -> FloatArray:
    """The weights, with 0 at patterns that miss the feature."""
    return np.where(all_patterns(len(weights)).T == 0, weights, 0.0)


def law_given(law: str, x: FloatArray) -> FloatArray:
    """The probability of every pattern given each row of x, of shape (rows, patterns)."""
    d = x.shape[1]
    m = all_patterns(d)
    if law == "drop-out":
        tails = np.all(np.diff(m, axis=1) >= 0, axis=1)
        return np.tile(tails / tails.sum(), (len(x), 1))
    rates = np.where(x > 0, 0.8, 0.2) if law == "self-masked" else np.tile(RATES[law](d), (len(x), 1))
    return np.prod(np.where(m == 1, rates[:, None, :], 1 - rates[:, None, :]), axis=2)


def law_of_patterns(law: str, d: int) -> FloatArray:
    """The law of M in the form of the bounds: the rates of independent M_j, or equally likely patterns."""
    return np.tri(d + 1, d, -1)[:, ::-1] if law == "drop-out" else RATES[law](d)


@dataclass(frozen=True)
class Population:
    """Rows x~ = (1, x), all equally likely, and the probabilities of the patterns given each of them."""

    rows: FloatArray
    patterns: FloatArray

    @property
    def observed(self) -> FloatArray:
        """(1, 1 - m) of every pattern."""
        m = all_patterns(self.rows.shape[1] - 1)
        return np.column_stack([np.ones(len(m)), 1 - m])


def population(where: str, law: str, d: int) -> Population:
    """The population of a box or its corners and a law."""
    signs = 2 * all_patterns(d) - 1
    count = MAGNITUDES[where]
    magnitudes = np.ones((1, d)) if count == 1 else qmc.Sobol(d, seed=0).random(count)
    x = (magnitudes[:, None, :] * signs).reshape(-1, d)
    return Population(np.column_stack([np.ones(len(x)), x]), law_given(law, x))


def draw(rows: int, source: Population, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Rows (1, x (1 - m)) of a sample, and the indices of their patterns."""
    points = rng.integers(len(source.rows), size=rows)
    levels = np.cumsum(source.patterns, axis=1)
    indices = (rng.uniform(size=(rows, 1)) * levels[points, -1:] > levels[points]).sum(axis=1)
    return source.rows[points] * source.observed[indices], indices


def class_map(adaptivity: Adaptivity, d: int) -> FloatArray:
    """The array (patterns, d + 1, p) that takes the coefficients of a class to its weights at each pattern."""
    m = all_patterns(d)
    fitted = adaptivity.fit(np.where(m == 1, np.nan, 1.0), m.astype(bool))
    phi = dense(fitted.basis(m))
    features, functions = np.nonzero(fitted.mask(d))
    columns = np.zeros((len(m), d + 1, len(features)))
    columns[:, features, np.arange(len(features))] = phi[:, functions]
    return columns * np.column_stack([np.ones(len(m)), 1 - m])[:, :, None]


def least_squares(columns: FloatArray, gram: FloatArray, moments: FloatArray) -> FloatArray:
    """Weights W of the class that minimise  sum_m [ W_m' gram_m W_m - 2 W_m' moments_m ],  of smallest coefficients.

    With gram_m = V diag(s) V' that is  sum_m | s^(1/2) V' W_m - s^(-1/2) V' moments_m |^2,  a least squares problem
    with at most d + 1 rows per pattern.
    """
    s, V = np.linalg.eigh(gram)
    positive = s > CUTOFF * s.max()
    root = np.where(positive, np.sqrt(np.maximum(s, 0.0)), 0.0)
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=positive)
    turned = V.transpose(0, 2, 1)
    A = (root[:, :, None] * (turned @ columns))[positive]
    B = (inverse[:, :, None] * (turned @ moments))[positive]
    coefficients = np.linalg.lstsq(A, B, rcond=CUTOFF)[0]
    return columns @ coefficients


def sample_moments(z: FloatArray, indices: IntArray, y: FloatArray, patterns: int) -> tuple[FloatArray, FloatArray]:
    """Sums of z z' and z y over the rows of each pattern."""
    gram = np.zeros((patterns, z.shape[1], z.shape[1]))
    moments = np.zeros((patterns, z.shape[1], y.shape[1]))
    for m in np.unique(indices):
        rows = indices == m
        gram[m], moments[m] = z[rows].T @ z[rows], z[rows].T @ y[rows]
    return gram, moments


def population_gram(source: Population) -> FloatArray:
    """E 1(M = m) z z' for every pattern m, z = (1, x (1 - m))."""
    both = np.einsum("qm,qi,qj->mij", source.patterns, source.rows, source.rows, optimize=True) / len(source.rows)
    return both * source.observed[:, :, None] * source.observed[:, None, :]


def squared_distance(source: Population, W: FloatArray, truths: FloatArray, L: float = np.inf) -> FloatArray:
    """E (T_L f - f*)^2 of each function of W, with its truth."""
    result = np.empty(W.shape[2])
    for k in range(W.shape[2]):
        difference = np.clip(source.rows @ W[:, :, k].T, -L, L) - source.rows @ truths[:, :, k].T
        result[k] = np.sum(source.patterns * difference**2) / len(source.rows)
    return result


def order_biases(weights: FloatArray, rates: FloatArray, second_moment: float) -> FloatArray:
    """Exact bias of the orders t = 0, .., d - 1 for independent M_j ~ Bernoulli(p_j) and x that is independent of M.

    The x_j have mean 0 and are independent of each other; another x may have a larger bias.

    The functions  prod_{k in S} (m_k - p_k) / sqrt(p_k (1 - p_k))  are orthonormal, those with |S| <= t span the
    polynomials of order t: the bias is  E x_j^2 P(M_j = 0)  times the squares of the coefficients of w_j(m) given
    m_j = 0 beyond order t, summed over j.

    Parameters
    ----------
    weights : array of shape (d, 2^d)
        A truth of Assumption 2.1.
    rates : array of shape (d,)
        P(M_j = 1), between 0 and 1.
    second_moment : float
        E x_j^2.
    """
    d = len(rates)
    sizes = all_patterns(d - 1).sum(axis=1)
    biases = np.zeros(d)
    for j in range(d):
        given = np.take(weights[j].reshape((2,) * d), 0, axis=j)
        for axis, p in enumerate(np.delete(rates, j)):
            spread = np.sqrt(p * (1 - p))
            given = np.moveaxis(np.tensordot([[1 - p, p], [-spread, spread]], given, axes=(1, axis)), 0, axis)
        squares = np.bincount(sizes.astype(int), given.ravel() ** 2, minlength=d)
        biases += second_moment * (1 - rates[j]) * (squares.sum() - np.cumsum(squares))
    return np.maximum(biases, 0.0)
