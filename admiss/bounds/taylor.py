"""Lemma 1 as code: a fully adaptive truth, its Taylor polynomials, and the bounds on their errors.

A truth is a matrix w of shape (d, 2^d), w_j(m) for all patterns m in the order of ``all_patterns``,

    f*(x, m) = sum_j w_j(m) (1 - m_j) x_j,     L = max_m sum_j (1 - m_j) |w_j(m)|,

with L the largest |f*| over the box x in [-1, 1]^d. Only w_j(m) with m_j = 0 matter; the others are set to 0, as
required by the proof in ``bias``. As a function on the cube that is affine in each m_k, w_j is its own Taylor series
around any centre c: along each axis the two values (v_0, v_1) become the value and the slope at c_k,

    (v_0, v_1) -> ((1 - c_k) v_0 + c_k v_1,  v_1 - v_0),

after which the entry of a set S (as a pattern) is the coefficient of prod_{k in S} (m_k - c_k). This takes d 2^d steps,
is exact, and is inverted by (a, b) -> (a - c_k b, a + (1 - c_k) b). The order-t polynomial retains |S| <= t.

Each check returns a pair (computed, bound):

============== =================================== ====================================================
check          computed                            bound
============== =================================== ====================================================
`lemma_pair`   max_x |f* - f^t| at each pattern    2^(t+1) L e_(t+1)(|m - c|)
`norm_pair`    the same                            2^(t+1) L / (t+1)! ||m - c||^(t+1)
`bias_pair`    min_{f of order t} E[(f* - f)^2]    b(F), proved or as printed
============== =================================== ====================================================

The norm is the 1-norm; with the Euclidean norm of Lemma 2, the second one is not a bound. In the last one x is +-1 with
equal probability, independently of M: the minimum is then a projection for each weight, and the intercept is 0.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from admiss.bounds.bias import bias_bound, log_elementary_symmetric, log_mean_square, positive
from admiss.bounds.counts import all_patterns, check_choice
from formulations.arrays import BoolArray, FloatArray

TRUTHS = ("gaussian", "signs", "parity")


def parity_truth(d: int, j: int = 0, L: float = 1.0, over: BoolArray | None = None) -> FloatArray:
    """The truth w_j(m) = L prod_k (1 - 2 m_k) over the other features, or those in a mask; other weights are 0.

    Examples
    --------
    >>> parity_truth(2).tolist()
    [[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    L = positive("L", L)
    if not isinstance(d, int | np.integer) or d < 1 or not 0 <= j < d:
        raise ValueError(f"A parity needs d >= 1 features and an index j from 0 to d - 1, not d = {d!r} and j = {j!r}.")
    used = np.arange(d) != j
    if over is not None:
        used &= over
    weights = np.zeros((d, 2**d))
    weights[j] = L * (1 - 2 * all_patterns(d)[:, used]).prod(axis=1)
    return _observed_only(weights)


def draw_truth(kind: str, d: int, L: float = 1.0, random_state: Any = None) -> FloatArray:
    """A random truth of d features whose largest |f*| over the box is L.

    Parameters
    ----------
    kind : {"gaussian", "signs", "parity"}
        Independent normal weights; independent signs, with |f*| up to L on every pattern; or, for a random feature, a
        parity of all other features or (with probability 1/2) of a random subset.
    d : int
        Features.
    L : float
        The largest |f*|.
    random_state : int, RandomState or None

    Examples
    --------
    >>> w = draw_truth("gaussian", 3, 2.0, random_state=0)
    >>> w.shape, round(truth_range(w), 9)
    ((3, 8), 2.0)
    """
    check_choice("kind", kind, TRUTHS)
    L = positive("L", L)
    rng = check_random_state(random_state)
    if kind == "parity":
        j = int(rng.randint(d))
        over = rng.uniform(size=d) < 0.5 if rng.uniform() < 0.5 else None
        return float(rng.choice([-1.0, 1.0])) * parity_truth(d, j, L, over)
    if kind == "signs":
        observed = d - all_patterns(d).sum(axis=1)
        return _observed_only(L * rng.choice([-1.0, 1.0], (d, 2**d)) / np.maximum(observed, 1.0))
    weights = _observed_only(rng.standard_normal((d, 2**d)))
    return weights * (L / truth_range(weights))


def tabulate(function: Callable[[FloatArray], Any], d: int) -> FloatArray:
    """The truth whose d weights at a pattern are given by a function.

    Examples
    --------
    >>> tabulate(lambda m: [1.0, 1.0 + m[0]], 2).tolist()
    [[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 2.0, 0.0]]
    """
    return _observed_only(np.array([function(m) for m in all_patterns(d)], dtype=float).T)


def truth_range(weights: FloatArray) -> float:
    """L: the largest |f*| over all patterns and x in [-1, 1]^d."""
    return float(_ranges(weights).max())


def _ranges(weights: FloatArray) -> FloatArray:
    """L of each truth, of shape (.., 1)."""
    return np.asarray(np.abs(_observed_only(weights)).sum(axis=-2).max(axis=-1, keepdims=True))


def taylor_coefficients(weights: FloatArray, centre: Any) -> FloatArray:
    """The coefficients of prod_{k in S} (m_k - c_k), S in the order of ``all_patterns``.

    Parameters
    ----------
    weights : array of shape (.., d, 2^d)
        A truth, or several.
    centre : array of shape (d,)
        c, in [0, 1]^d.

    Examples
    --------
    >>> taylor_coefficients(parity_truth(2), [0.5, 0.5])[0].tolist()  # (1 - m_1) (1 - 2 m_2)
    [0.0, -1.0, 0.0, 2.0]
    """
    return _along_axes(_observed_only(weights), centre, lambda v0, v1, c: [(1 - c) * v0 + c * v1, v1 - v0])


def taylor_weights(weights: FloatArray, t: int, centre: Any) -> FloatArray:
    """The order-t Taylor polynomials of the weights around a centre, at all patterns."""
    coefficients = taylor_coefficients(weights, centre)
    retained = all_patterns(_check_order(weights, t)).sum(axis=1) <= t
    return _along_axes(coefficients * retained, centre, lambda a, b, c: [a - c * b, a + (1 - c) * b])


def taylor_error(weights: FloatArray, t: int, centre: Any) -> FloatArray:
    """The largest |f* - f^t| over x in [-1, 1]^d at each pattern, of shape (.., 2^d)."""
    missed = _observed_only(weights - taylor_weights(weights, t, centre))
    return np.asarray(np.abs(missed).sum(axis=-2))


def lemma_pair(weights: FloatArray, t: int, centre: Any) -> tuple[FloatArray, FloatArray]:
    """Pattern by pattern: the error of the order-t polynomial, and 2^(t+1) L e_(t+1)(|m - c|).

    Examples
    --------
    >>> computed, bound = lemma_pair(parity_truth(3), 1, [0.5, 0.5, 0.5])
    >>> computed.round(6).tolist()[:4], bound.round(6).tolist()[:4]
    ([1.0, 1.0, 1.0, 1.0], [3.0, 3.0, 3.0, 3.0])
    """
    d = _check_order(weights, t)
    distance = np.abs(all_patterns(d) - read_centre(centre, d))
    bound = _ranges(weights) * np.exp(log_elementary_symmetric(2 * distance, t + 1))
    return taylor_error(weights, t, centre), bound


def norm_pair(weights: FloatArray, t: int, centre: Any, norm: int = 1) -> tuple[FloatArray, FloatArray]:
    """Pattern by pattern: the error, and 2^(t+1) L / (t+1)! ||m - c||^(t+1), a bound in the 1-norm only."""
    d = _check_order(weights, t)
    if norm not in (1, 2):
        raise ValueError(f"norm must be 1 or 2, not {norm!r}.")
    distance = np.linalg.norm(2 * (all_patterns(d) - read_centre(centre, d)), ord=norm, axis=1)
    bound = _ranges(weights) * distance ** (t + 1) / math.factorial(t + 1)
    return taylor_error(weights, t, centre), np.asarray(bound)


def bias_pair(weights: FloatArray, t: int, law: Any = None, bias: str = "proved") -> tuple[float, float]:
    """The bias of the order-t class for this truth, x = +-1 independent of M, and b(F).

    Parameters
    ----------
    weights : array of shape (d, 2^d)
        The truth.
    t : int
        Order of the polynomials.
    law : array of shape (2^d,), optional
        Probabilities of the patterns; uniform by default.
    bias : {"proved", "paper"}
        Which b(F).

    Examples
    --------
    >>> computed, printed = bias_pair(parity_truth(8), 6, bias="paper")
    >>> print(f"{computed:.3f} is above {printed:.3f}, as printed")
    0.500 is above 0.083, as printed
    """
    d = _check_order(weights, t)
    check_choice("bias", bias, ("proved", "paper"))
    probabilities = read_law(law, d)
    computed = sum(_projection_error(weights[j], j, t, probabilities) for j in range(d))
    L = truth_range(weights)
    if bias == "paper":
        return computed, bias_bound(("polynomial", t), d, L, bias="paper")
    if t >= d - 1:
        return computed, 0.0
    return computed, L * L * math.exp(min(0.0, log_mean_square(all_patterns(d), probabilities, t + 1)))


def independent_law(probabilities: Any) -> FloatArray:
    """The law of independent M_j with the given probabilities, over all patterns.

    Examples
    --------
    >>> independent_law([0.5, 0.25]).tolist()
    [0.375, 0.125, 0.375, 0.125]
    """
    p = np.asarray(probabilities, dtype=float)
    M = all_patterns(len(p))
    return np.asarray((M * p + (1 - M) * (1 - p)).prod(axis=1))


def read_law(law: Any, d: int) -> FloatArray:
    """The probabilities of all patterns, validated."""
    if law is None:
        return np.full(2**d, 0.5**d)
    probabilities = np.asarray(law, dtype=float)
    if probabilities.shape != (2**d,) or not (probabilities >= 0).all() or abs(probabilities.sum() - 1) > 1e-9:
        raise ValueError(f"A law of the patterns is {2**d} probabilities that sum to 1.")
    return probabilities


def read_centre(centre: Any, d: int) -> FloatArray:
    """A point of the cube, validated."""
    c = np.asarray(centre, dtype=float)
    if c.shape != (d,) or not ((c >= 0) & (c <= 1)).all():
        raise ValueError(f"The centre must be {d} numbers between 0 and 1.")
    return c


def _observed_only(weights: FloatArray) -> FloatArray:
    """The weights, with 0 at patterns that miss the feature."""
    weights = np.asarray(weights, dtype=float)
    if weights.ndim < 2 or weights.shape[-1] != 2 ** weights.shape[-2]:
        raise ValueError(f"The weights of a truth have shape (d, 2^d), not {weights.shape}.")
    return np.where(all_patterns(weights.shape[-2]).T == 0, weights, 0.0)


def _check_order(weights: FloatArray, t: int) -> int:
    """The number of features; an invalid order is an error."""
    d = _observed_only(weights).shape[-2]
    if not isinstance(t, int | np.integer) or isinstance(t, bool) or not 0 <= t <= d:
        raise ValueError(f"The order t must be a whole number from 0 to the number of features {d}, not {t!r}.")
    return d


def _along_axes(values: FloatArray, centre: Any, change: Callable[..., list[FloatArray]]) -> FloatArray:
    """The values with ``change`` applied, for each feature k, to the entries without k, those with k, and c_k."""
    d = values.shape[-2]
    table = values.reshape(*values.shape[:-1], *([2] * d))
    for k, c_k in enumerate(read_centre(centre, d)):
        table = np.stack(change(*np.moveaxis(table, k - d, 0), c_k), axis=k - d)
    return table.reshape(values.shape)


def _projection_error(w: FloatArray, j: int, t: int, probabilities: FloatArray) -> float:
    """min over polynomials v of degree t of E[(1 - M_j) (w(M) - v(M))^2]."""
    M = all_patterns(len(w).bit_length() - 1)
    used = (M[:, j] == 0) & (probabilities > 0)
    if not (w[used] != 0).any():
        return 0.0
    # Products of 1 - 2 m_k span the same polynomials as the monomials and are orthogonal for uniform patterns.
    sets = M[(M[:, j] == 0) & (M.sum(axis=1) <= t)]
    root = np.sqrt(probabilities[used])
    basis = root[:, None] * (1 - 2 * (M[used] @ sets.T % 2))
    target = root * w[used]
    fitted = basis @ np.linalg.lstsq(basis, target, rcond=None)[0]
    return float(((target - fitted) ** 2).sum())
