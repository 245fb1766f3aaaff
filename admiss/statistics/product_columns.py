"""The columns whose second moments suffice for an adaptivity class, whatever the features are centred at.

The design of a class has the columns phi_k(m) and o_j (x_j - c_j) phi_k(m), with o_j = 1 - m_j. The centre c_j is known
only after the pass, and each fold has its own. So the moments are those of

    psi(m)                        functions of the pattern whose span contains 1, phi_k and o_j phi_k
    o_j (x_j - a_j) phi_k(m)      with an anchor a_j near the data
    y - a_y

and centring is a linear map afterwards:  o_j (x_j - c_j) phi_k = o_j (x_j - a_j) phi_k + (a_j - c_j) o_j phi_k.

*Monomials of degree t.* phi_J(m) = prod_{i in J} m_i, |J| <= t, and o_j phi_J = phi_J - phi_{J + j}: psi are the
monomials up to degree t + 1. For affine intercepts (t = 0) these are 2 d + 2 columns, for affine weights (t = 1)
3 d^2 / 2 + d / 2 + 2. They contain static weights, and every class of lower degree.

*A basis of your own* that is fixed before the pass: psi are 1, all phi_k and all o_j phi_k.
"""

import itertools
import math
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity import Adaptivity
from admiss.statistics.blocks import RowBlock
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.jit import compiled

# Columns beyond which moments are not collected.
MAX_COLUMNS = 5000


@dataclass(frozen=True)
class ProductColumns:
    """The columns of the module.

    Attributes
    ----------
    adaptivity : Adaptivity
        The class as it was given.
    sets : list of tuples of int, or None
        The monomials psi, by their features; None for a basis of its own.
    pairs : int array of shape (V, 2)
        For each column of values its feature, counted from 0, and its basis function: a monomial by its place among
        psi, or k.
    of_observed : csr array of shape (V, Q)
        The function o_j phi_k of each column of values as a combination of psi.
    of_basis : csr array of shape (K, Q)
        phi_k as a combination of psi.
    """

    adaptivity: Adaptivity
    sets: list[tuple[int, ...]] | None
    pairs: IntArray
    of_observed: sp.csr_array
    of_basis: sp.csr_array

    @property
    def n_functions(self) -> int:
        """Q, the number of functions psi."""
        return int(self.of_observed.shape[1])

    @property
    def n_columns(self) -> int:
        """All columns: psi, values, and y."""
        return self.n_functions + len(self.pairs) + 1

    def serves(self, adaptivity: Adaptivity) -> bool:
        """Whether the design of a class is a linear map of these columns."""
        own = degree_of(self.adaptivity)
        if own is not None:
            degree = degree_of(adaptivity)
            return degree is not None and degree <= own
        return identity(adaptivity) == identity(self.adaptivity) and type(adaptivity) is type(self.adaptivity)

    def fill(self, rows: RowBlock, order: IntArray, anchor: FloatArray, U: FloatArray) -> FloatArray | None:
        """Write the columns of the rows, in the given order and times the root of their weight, to U.

        Returns psi without weights, of shape (n, Q), unless psi are monomials.
        """
        feature, factor = np.ascontiguousarray(self.pairs.T)
        if self.sets is not None:
            width = max(map(len, self.sets))
            if width <= 1:
                _fill_indicators(rows.X, rows.y, rows.s, order, anchor, U)
                return None
            members = np.array([[*J, *[-1] * (width - len(J))] for J in self.sets]).reshape(len(self.sets), width)
            _fill_monomials(rows.X, rows.y, rows.s, order, anchor, members, feature, factor, U)
            return None
        X, Q = rows.X[order], self.n_functions
        M = np.isnan(X)
        phi = _dense_basis(self.adaptivity, M)
        observed = np.where(M[:, feature], 0.0, phi[:, factor])
        psi = np.hstack([np.ones((len(X), 1)), phi, observed])
        U[:, :Q] = psi
        U[:, Q:-1] = observed * np.where(M, 0.0, X - anchor[:-1])[:, feature]
        U[:, -1] = rows.y[order] - anchor[-1]
        U *= np.sqrt(rows.s[order])[:, None]
        return psi


def identity(adaptivity: Adaptivity) -> str:
    """A class with its parameters as text: the printed one, and digests of arrays, which printing abridges."""
    params = adaptivity.get_params()
    arrays = {name: np.ascontiguousarray(value) for name, value in params.items() if np.ndim(value) > 0}
    if not arrays:
        return repr(adaptivity)
    digests = [
        f"{name} {value.dtype} {value.shape} {blake2b(value.tobytes(), digest_size=12).hexdigest()}"
        for name, value in arrays.items()
    ]
    others = {name: value for name, value in params.items() if name not in arrays}
    return f"{type(adaptivity).__name__}({others}; {'; '.join(digests)})"


def degree_of(adaptivity: Adaptivity) -> int | None:
    """The degree t of the monomials by which features are multiplied, or None if the class has another basis."""
    degrees = adaptivity.degrees()
    return None if degrees is None else degrees[0]


def count_columns(degree: int, d: int) -> int:
    """The number of columns for monomials of a degree: psi, values, and y.

    Examples
    --------
    >>> from admiss.adaptivity import Affine
    >>> count_columns(0, 20), count_columns(1, 20), product_columns(Affine(), 20).n_columns
    (42, 612, 612)
    """
    functions = sum(math.comb(d, size) for size in range(degree + 2))
    return functions + d * sum(math.comb(d - 1, size) for size in range(degree + 1)) + 1


def product_columns(adaptivity: Adaptivity, d: int) -> ProductColumns:
    """The columns of a class for d features, or an error if its basis is not fixed before the pass."""
    degree, name = degree_of(adaptivity), type(adaptivity).__name__
    refuse_learners(adaptivity)
    n_columns = 2 + 2 * int(adaptivity.mask(d).sum()) if degree is None else count_columns(degree, d)
    if n_columns > MAX_COLUMNS:
        raise ValueError(
            f"{name} needs moments of {n_columns:,} columns for {d} features, more than {MAX_COLUMNS:,}: name a class "
            "with fewer columns, such as affine_intercept."
        )
    return _own_basis(adaptivity, d) if degree is None else _monomials(adaptivity, degree, d)


def refuse_learners(adaptivity: Adaptivity) -> None:
    """Raise an error if the columns of a class are not fixed before the pass."""
    if degree_of(adaptivity) is not None:
        return
    kind = type(adaptivity)
    if kind.fit is not Adaptivity.fit:
        raise ValueError(f"{kind.__name__} learns from the rows before it has columns: {_advice(adaptivity)}.")
    own = kind.columns is not Adaptivity.columns or kind.counts is not Adaptivity.counts or not kind.linear_in_x
    if own or adaptivity.has_structure():
        raise ValueError(
            f"{kind.__name__} has columns, counts or a structure of its own, which moments of columns do not "
            f"determine: {_advice(adaptivity)}."
        )


def _advice(adaptivity: Adaptivity) -> str:
    """How a class can be fitted that has no moments."""
    if adaptivity.linear_at_patterns():
        return "collect its rows by pattern, with RowStatistics(None, patterns=True), or fit it in memory"
    return "it is not linear in x, so fit it in memory"


def _monomials(adaptivity: Adaptivity, degree: int, d: int) -> ProductColumns:
    by_size = (itertools.combinations(range(d), size) for size in range(min(degree + 1, d) + 1))
    sets: list[tuple[int, ...]] = [J for part in by_size for J in part]
    index = {J: q for q, J in enumerate(sets)}
    basis = [J for J in sets if len(J) <= degree]
    pairs = [(j, index[J]) for j in range(d) for J in basis if j not in J]
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for v, (j, q) in enumerate(pairs):
        rows += [v, v]
        columns += [q, index[tuple(sorted({*sets[q], j}))]]
        values += [1.0, -1.0]
    of_observed = sp.csr_array((values, (rows, columns)), shape=(len(pairs), len(sets)))
    return ProductColumns(
        adaptivity, sets, np.array(pairs).reshape(-1, 2), of_observed, sp.eye_array(len(sets)).tocsr()
    )


def _own_basis(adaptivity: Adaptivity, d: int) -> ProductColumns:
    mask = adaptivity.mask(d)
    K, pairs = mask.shape[1], np.argwhere(mask[1:])
    Q = 1 + K + len(pairs)
    of_observed = sp.csr_array(
        (np.ones(len(pairs)), (np.arange(len(pairs)), np.arange(1 + K, Q))), shape=(len(pairs), Q)
    )
    of_basis = sp.csr_array((np.ones(K), (np.arange(K), np.arange(1, 1 + K))), shape=(K, Q))
    return ProductColumns(adaptivity, None, pairs, of_observed, of_basis)


def _dense_basis(adaptivity: Adaptivity, M: BoolArray) -> FloatArray:
    phi = adaptivity.basis(M.astype(float))
    phi = np.asarray(phi.toarray() if sp.issparse(phi) else phi, dtype=float)
    if phi.ndim != 2 or len(phi) != len(M) or not np.isfinite(phi).all():
        name = type(adaptivity).__name__
        raise ValueError(f"{name}.basis must give a row of finite numbers for each of {len(M)} patterns.")
    return phi


@compiled
def _fill_indicators(X, y, s, order, anchor, U):  # type: ignore[no-untyped-def]
    """The monomials up to degree 1, without branches: this loop is vectorised."""
    d = X.shape[1]
    for r in range(len(order)):
        i = order[r]
        root = np.sqrt(s[i])
        U[r, 0] = root
        for j in range(d):
            x = X[i, j]
            U[r, 1 + j] = root if np.isnan(x) else 0.0
            U[r, 1 + d + j] = 0.0 if np.isnan(x) else root * (x - anchor[j])
        U[r, 1 + 2 * d] = root * (y[i] - anchor[d])


@compiled
def _fill_monomials(X, y, s, order, anchor, members, feature, factor, U):  # type: ignore[no-untyped-def]
    n_functions, width = members.shape
    n_values, last = len(feature), U.shape[1] - 1
    for r in range(len(order)):
        i = order[r]
        root = np.sqrt(s[i])
        for q in range(n_functions):
            value = root
            for w in range(width):
                j = members[q, w]
                if j >= 0 and not np.isnan(X[i, j]):
                    value = 0.0
            U[r, q] = value
        for v in range(n_values):
            x = X[i, feature[v]]
            U[r, n_functions + v] = 0.0 if np.isnan(x) else (x - anchor[feature[v]]) * U[r, factor[v]]
        U[r, last] = root * (y[i] - anchor[last - n_functions - n_values - 1])
