"""The number of coefficients of a class: p(F) of Theorem 1.

Theorem 1 needs the dimension p(F) of the linear space of the functions

    f(x, m) = sum_j w_j(m) (1 - m_j) x_j,     w_j in span{phi_k : (j, k) in the mask},     x_0 = 1.

The x_j are linearly independent of each other, so the dimension is a sum of ranks over all 2^d patterns,

    p(F) = sum_{j=0}^d rank[ (1 - m_j) phi_k(m) ]_{m, k : (j, k) in the mask}                     ("effective"),

which depends on the basis only. Table 1 leaves out the intercept and counts products that vanish everywhere, such as
m_j (1 - m_j) x_j: d times the number of basis functions ("table"). The affine intercept is not in Table 1.

================= ===================== ===========================================
class             table                 effective
================= ===================== ===========================================
static            d                     d + 1
affine intercept  2 d                   2 d + 1
affine            d + d^2               d^2 + d + 1
order t           d sum_{s<=t} C(d, s)  d sum_{s<=t} C(d-1, s) + sum_{s<=t} C(d, s)
fully adaptive    d 2^d                 d 2^(d-1) + 2^d
================= ===================== ===========================================

The basis of other classes depends on the training rows, such as one model for each frequent pattern, or bins between
quantiles. They state p(F) as a function of n (``Adaptivity.n_coefficients``), the largest over all data sets of n rows:
given the patterns of the rows, or also their values for bins, the class is fixed.

Counts are Python integers, which do not overflow.
"""

import math
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity import (
    Adaptivity,
    Affine,
    AffineIntercept,
    FullyAdaptive,
    FusedPatterns,
    Polynomial,
    Static,
    resolve_adaptivity,
)
from admiss.estimator.validation import positive_integer
from admiss.partition import Partition, Partitioner
from formulations.arrays import BoolArray, FloatArray

COUNTS = ("effective", "table")
NAMES = {Static: "static", AffineIntercept: "affine intercept", Affine: "affine", FullyAdaptive: "fully adaptive"}

# Largest number of features for which a class without a formula is evaluated at all 2^d patterns.
ALL_PATTERNS = 8
# Rows per pattern at which a class that is not linear in x is evaluated: so many of its columns can be told apart.
NONLINEAR_ROWS = 64

# A class as an argument: a name, ("polynomial", t), or an object.
ClassLike = str | tuple[str, int] | Adaptivity


def coefficient_count(adaptivity: ClassLike, d: int, count: str = "effective", n: float = math.inf) -> int:
    """The number p(F) of coefficients of a class on d features, any of which can be missing.

    Parameters
    ----------
    adaptivity : str, ("polynomial", t) or Adaptivity
        The class. The count of a new class comes from its basis and is exact for up to 8 features. Above, the pairs of
        its mask are counted; this is at least the rank, so a bound remains valid.
    d : int
        Features.
    count : {"effective", "table"}
        The dimension of the class including its intercept, or the count of Table 1.
    n : float
        Training rows, for a class whose basis depends on them; the count is then the largest for n rows.

    Examples
    --------
    >>> coefficient_count("affine", 10), coefficient_count("affine", 10, count="table")
    (111, 110)
    >>> coefficient_count("frequent_patterns", 10, n=1000), coefficient_count("frequent_patterns", 10)
    (428, 6144)
    >>> coefficient_count("fully_adaptive", 1000) == 1000 * 2**999 + 2**1000
    True
    """
    check_choice("count", count, COUNTS)
    adaptivity = read_class(adaptivity, d)
    d = int(d)
    table = count == "table"
    degrees = (d, d) if type(adaptivity) is FusedPatterns else polynomial_degrees(adaptivity, d)
    if degrees is not None:
        weights, intercept = degrees
        if table:
            return d * _subsets(d, weights) + (d if intercept > weights else 0)
        return d * _subsets(d - 1, weights) + _subsets(d, intercept)
    own = adaptivity.n_coefficients(d, n)
    if own is None:
        return _count_of_basis(adaptivity, d, table)
    if table:
        raise ValueError(f"Table 1 has no count for {class_name(adaptivity)}: use count='effective'.")
    return own


def polynomial_degrees(adaptivity: Adaptivity, d: int) -> tuple[int, int] | None:
    """Degrees of weights and intercept that are all polynomials of the pattern up to them, None for other classes."""
    return (d, d) if type(adaptivity) is FullyAdaptive else adaptivity.degrees()


def check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    """Raise an error if a value is not one of the known ones."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {value!r}.")


def read_class(adaptivity: ClassLike, d: int) -> Adaptivity:
    """The class as an object, checked to be valid on d features.

    Examples
    --------
    >>> read_class(("polynomial", 3), 5)
    Polynomial(degree=3)
    """
    d = positive_integer("d", d)
    found_from_data = isinstance(adaptivity, Partition | Partitioner) or hasattr(adaptivity, "partitioner")
    if found_from_data or (isinstance(adaptivity, str) and adaptivity == "finite"):
        raise ValueError(
            "A partition that is found from the data has no p(F): the class it comes from is the union over all "
            "partitions, not a linear space, so Theorem 1 does not apply; use a class that is fixed in advance."
        )
    if isinstance(adaptivity, tuple):
        if len(adaptivity) != 2 or adaptivity[0] != "polynomial":
            raise ValueError(f"A class with an order is written ('polynomial', t), not {adaptivity!r}.")
        adaptivity = Polynomial(degree=adaptivity[1])
    adaptivity = resolve_adaptivity(adaptivity)
    if isinstance(adaptivity, Polynomial):
        t = adaptivity.degree
        if not isinstance(t, int | np.integer) or isinstance(t, bool) or not 0 <= t <= d:
            raise ValueError(
                f"The order t of a polynomial must be a whole number from 0 to the number of features {d}, not {t!r}."
            )
    return adaptivity


def hierarchy(d: int, largest_order: int) -> list[Adaptivity]:
    """Static, affine intercept, affine, the orders from 2 to the largest one, and fully adaptive."""
    orders: list[ClassLike] = [("polynomial", t) for t in range(2, largest_order + 1)]
    names: list[ClassLike] = ["static", "affine_intercept", "affine", *orders, "fully_adaptive"]
    return [read_class(name, d) for name in names]


def class_name(adaptivity: Adaptivity) -> str:
    """A class as text.

    Examples
    --------
    >>> class_name(Polynomial(degree=3)), class_name(AffineIntercept())
    ('order 3', 'affine intercept')
    """
    if type(adaptivity) is Polynomial:
        return f"order {adaptivity.degree}"
    return NAMES.get(type(adaptivity), str(adaptivity))


@cache
def _subsets(d: int, t: int) -> int:
    """The number of subsets of d things with at most t elements."""
    return 2**d if t >= d else sum(math.comb(d, s) for s in range(t + 1))


def _count_of_basis(adaptivity: Adaptivity, d: int, table: bool) -> int:
    every_pattern = d <= ALL_PATTERNS
    M = all_patterns(d).astype(bool) if every_pattern else _some_patterns(d, 512)
    mask = _fit(adaptivity, M).mask(d)
    if not every_pattern and mask.shape != _fit(adaptivity, M[: len(M) // 2]).mask(d).shape:
        raise ValueError(
            f"The basis of {class_name(adaptivity)} depends on the patterns it has seen, so p(F) is known for up to "
            f"{ALL_PATTERNS} features only, not for {d}: use a smaller d."
        )
    if table:
        return d * int(mask.shape[1])
    return rank_over_patterns(adaptivity, d) if every_pattern else int(mask.sum())


def rank_over_patterns(adaptivity: Adaptivity, d: int) -> int:
    """The rank of the design over all 2^d patterns, at features in general position."""
    M = all_patterns(d).astype(bool)
    fitted = _fit(adaptivity, M)
    if type(fitted).columns is not Adaptivity.columns:
        # A class that is affine in x on each pattern is determined by d + 1 rows per pattern.
        rows = np.repeat(M, d + 1 if fitted.linear_in_x else NONLINEAR_ROWS, axis=0)
        return int(np.linalg.matrix_rank(dense(fitted.columns(_features(rows), rows))))
    phi, mask = dense(fitted.basis(M.astype(float))), fitted.mask(d)
    observed = np.column_stack([np.ones(len(M)), ~M])
    return sum(int(np.linalg.matrix_rank(observed[:, [j]] * phi[:, mask[j]])) for j in range(d + 1) if mask[j].any())


def contains_polynomials(adaptivity: Adaptivity, d: int, t: int, intercept: bool = False) -> bool:
    """Whether all weights contain all polynomials of degree t on the patterns that observe their feature.

    With ``intercept``, that of the intercept too, on all patterns.
    """
    M = all_patterns(d).astype(bool)
    fitted = _fit(adaptivity, M)
    phi, mask = dense(fitted.basis(M.astype(float))), fitted.mask(d)
    subsets = [S for s in range(t + 1) for S in combinations(range(d), s)]
    monomials = np.column_stack([M[:, list(S)].all(axis=1) for S in subsets]).astype(float)
    observed = np.column_stack([np.ones(len(M), dtype=bool), ~M])
    for j in range(0 if intercept else 1, d + 1):
        own = phi[np.ix_(observed[:, j], mask[j])]
        if np.linalg.matrix_rank(np.hstack([own, monomials[observed[:, j]]])) > np.linalg.matrix_rank(own):
            return False
    return True


def all_patterns(d: int) -> FloatArray:
    """All 2^d patterns in lexicographic order, the first feature slowest.

    Examples
    --------
    >>> all_patterns(2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    return (np.arange(2**d)[:, None] >> np.arange(d)[::-1] & 1).astype(float)


def _fit(adaptivity: Adaptivity, M: BoolArray) -> Adaptivity:
    return adaptivity.fit(_features(M), M)


def _features(M: BoolArray) -> FloatArray:
    return np.where(M, np.nan, np.random.RandomState(0).standard_normal(M.shape))


def dense(matrix: Any) -> FloatArray:
    """A matrix, sparse or not, as an array."""
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=float)


def _some_patterns(d: int, rows: int) -> BoolArray:
    """Random patterns of all densities; in both halves every feature is missing somewhere."""
    rng = np.random.RandomState(0)
    M = np.asarray(rng.uniform(size=(rows, d)) < rng.uniform(size=(rows, 1)))
    M[[0, rows // 2]] = True
    return M
