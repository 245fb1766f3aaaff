"""Second moments of the product columns of an adaptivity class, for each fold.

    G_f = sum_{i in fold f} s_i u_i u_i',        u = (psi(m), o_j (x_j - a_j) phi_k(m), y - a_y)

Rows are processed in blocks, sorted by fold: the matrix of a fold in a block is one product of BLAS, or for affine
weights read off from fewer sums, over sets of missing features. Sums of different anchors are added after a linear map
T of one of them, G -> T G T'.

*Accuracy.* |G_computed - G|_ij <= e D_i D_j  with D_i^2 the sum of squares of column i, and e = gamma(rows of a block):
the sums of blocks are compensated. Folds add one rounding each. A map takes D to |T| D and adds a few to e; the sizes
of sums that are added are sqrt(D^2 + D'^2).

*Affine weights.* The columns are monomials m_J, |J| <= 2, values z_j m_K with z_j = o_j (x_j - a_j) and |K| <= 1, and
z_0 = y - a_y. As m_J m_K = m_{J + K}, their products are determined by

    sum s z_j z_l m_U   |U| <= 2,        sum s z_j m_U   |U| <= 3,        sum s m_U   |U| <= 4,

and a row with missing features M adds to the sums of the sets U within M only: for 6 missing of 20 features, to 22, 42
and 57 sets. The matrix of d^2 columns is then read off from these sums.
"""

import itertools
from functools import lru_cache
from math import comb

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity import Adaptivity
from admiss.statistics.blocks import BLOCK_ROWS, Arrays, CompensatedSum, NamedSums, RowBlock, Shape, anchored
from admiss.statistics.product_columns import ProductColumns, degree_of, product_columns
from formulations.arrays import FloatArray, IntArray
from formulations.jit import compiled
from formulations.leaves.subsets import binomials
from formulations.rounding import gamma

# Entries of a block of columns, 2 MB: it stays in the cache for the product.
BLOCK_ENTRIES = 2**18


class ProductMoments(NamedSums):
    """The moments of the module."""

    plain = ("anchor", "squares", "n_maps", "low", "high")
    compensated = ("sums", "n_used")

    def __init__(self, shape: Shape, adaptivity: Adaptivity) -> None:
        self.shape = shape
        self.columns: ProductColumns = product_columns(adaptivity, shape.n_features)
        p = self.columns.n_columns
        self.anchor = np.full(shape.n_features + 1, np.nan)
        self.sums = CompensatedSum((shape.n_folds, p, p))
        self.squares = np.zeros((shape.n_folds, p))
        self.n_maps = 0
        # of functions that are not indicators: the weight of the rows on which they are not 0, and their range
        Q = self.columns.n_functions if self.columns.sets is None else 0
        self.n_used = CompensatedSum((shape.n_folds, Q))
        self.low, self.high = np.full((shape.n_folds, Q), np.inf), np.full((shape.n_folds, Q), -np.inf)

    def update(self, rows: RowBlock) -> None:
        """Add a block of rows."""
        self.anchor = anchored(self.anchor, rows)
        if degree_of(self.columns.adaptivity) == 1 and self.shape.n_features <= MOST_FEATURES:
            self._add_affine(rows)
            return
        p = self.columns.n_columns
        size = min(BLOCK_ROWS, max(512, BLOCK_ENTRIES // p))
        U = np.empty((min(size, len(rows)), p))
        for start in range(0, len(rows), size):
            block = rows.block(slice(start, start + size))
            order = np.argsort(block.fold.astype(np.int16), kind="stable")
            ends = np.cumsum(np.bincount(block.fold, minlength=self.shape.n_folds))
            filled = U[: len(block)]
            psi = self.columns.fill(block, order, self.anchor, filled)
            for f, (first, end) in enumerate(zip(np.append(0, ends), ends, strict=False)):
                if end > first:
                    part = filled[first:end]
                    G = part.T @ part
                    self.sums.add(f, G)
                    self.squares[f] += np.diag(G)
                    if psi is not None:
                        self._count(f, psi[first:end], block.s[order[first:end]])

    def _add_affine(self, rows: RowBlock) -> None:
        """The same for affine weights, by far fewer sums than products of columns."""
        d = self.shape.n_features
        places, n_sums = product_places(d)
        for f in range(self.shape.n_folds):
            inside = np.flatnonzero(rows.fold == f)
            total = CompensatedSum((1, n_sums))
            for start in range(0, len(inside), BLOCK_ROWS):
                sums = np.zeros(n_sums)
                add_rows(rows.X, rows.y, rows.s, inside[start : start + BLOCK_ROWS], self.anchor, *set_tables(d), sums)
                total.add(0, sums)
            if len(inside):
                self.squares[f] += total.high[0][np.diag(places)]
                for part in (total.high, total.low):
                    self.sums.add(f, part[0][places])

    def _count(self, f: int, psi: FloatArray, s: FloatArray) -> None:
        self.n_used.add(f, s @ (psi != 0))
        self.low[f], self.high[f] = np.minimum(self.low[f], psi.min(axis=0)), np.maximum(self.high[f], psi.max(axis=0))

    def merged(self, other: "ProductMoments") -> "ProductMoments":
        """The moments of the rows of both, with the anchors of the larger part: sizes grow with every map."""
        found = ProductMoments(self.shape, self.columns.adaptivity)
        first, second = (self, other) if self.squares[:, 0].sum() >= other.squares[:, 0].sum() else (other, self)
        found.anchor = np.where(np.isnan(first.anchor), second.anchor, first.anchor)
        for part in (self, other):
            T = part.centring(found.anchor)
            is_same = T.nnz == len(part.squares[0])
            high, low = (
                G if is_same else np.stack([T @ (T @ M).T for M in G]) for G in (part.sums.high, part.sums.low)
            )
            found.sums = found.sums.plus(high, low)
            found.squares += part.squares if is_same else (np.abs(T) @ np.sqrt(part.squares.T)).T ** 2
            found.n_maps = max(found.n_maps, part.n_maps + (not is_same))
            found.n_used = found.n_used.plus(part.n_used.high, part.n_used.low)
        found.low, found.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return found

    def read(self, arrays: Arrays) -> None:
        """Take over saved sums."""
        super().read(arrays)
        self.n_maps = int(self.n_maps)

    def moments(self, folds: IntArray) -> FloatArray:
        """The matrix G of the rows of some folds."""
        total = self.sums.high[folds].sum(axis=0)
        return np.asarray(total + self.sums.low[folds].sum(axis=0))

    def sizes(self, folds: IntArray) -> FloatArray:
        """D of these rows, rounded up."""
        return np.sqrt(self.squares[folds].sum(axis=0)) * (1.0 + self.accuracy)

    @property
    def accuracy(self) -> float:
        """e of the module."""
        return gamma(BLOCK_ROWS + 64 + self.shape.n_folds + 32 * self.n_maps)

    def counts(self, folds: IntArray) -> FloatArray:
        """The weight of the rows on which each psi is not 0."""
        if self.columns.sets is None:
            return np.asarray(self.n_used.value[folds].sum(axis=0))
        return np.asarray(self.sums.value[folds, 0, : self.columns.n_functions].sum(axis=0))

    def feature_sums(self) -> FloatArray:
        """The sums of :mod:`admiss.statistics.feature_sums`, of monomials: their products contain them."""
        d, Q = self.shape.n_features, self.columns.n_functions
        G, constant = self.sums.value, Q + np.flatnonzero(self.columns.pairs[:, 1] == 0)
        values = np.append(constant, Q + len(self.columns.pairs))
        found = np.empty((self.shape.n_folds, 3, d + 1))
        found[:, 0] = G[:, 0, 0][:, None]
        found[:, 0, :d] -= G[:, 0, 1 : 1 + d]  # monomials of one feature follow the constant
        found[:, 1], found[:, 2] = G[:, 0, values], G[:, values, values]
        return found

    def centring(self, centre: FloatArray) -> sp.csr_array:
        """The linear map from these columns to those of other anchors: of features, and of y as the last one."""
        Q, V = self.columns.n_functions, len(self.columns.pairs)
        move = self.anchor - centre
        move[np.isnan(move)] = 0.0  # nothing was observed
        values = sp.diags_array(move[self.columns.pairs[:, 0]]) @ self.columns.of_observed
        of_y = sp.csr_array(([move[-1]], ([0], [0])), shape=(1, Q))
        change = sp.vstack([sp.csr_array((Q, Q)), values, of_y], format="csr")
        change.eliminate_zeros()
        return sp.csr_array(sp.eye_array(Q + V + 1) + sp.hstack([change, sp.csr_array((Q + V + 1, V + 1))]))


# Most features: beyond, the places of all products take too much memory.
MOST_FEATURES = 30


@lru_cache(maxsize=4)
def set_tables(d: int) -> tuple[IntArray, IntArray]:
    """C(i, k) for i up to d, and the number of sets of fewer than k features, k up to 5."""
    return binomials(d), np.array([sum(comb(d, size) for size in range(k)) for k in range(6)])


@lru_cache(maxsize=4)
def product_places(d: int) -> tuple[IntArray, int]:
    """For each pair of columns the place of the sum of their products, and the number of sums.

    Columns are in the order of :mod:`admiss.statistics.product_columns`: monomials, values by feature, y. Sums are
    those of the module one after the other, by set.
    """
    sets = [J for size in range(5) for J in itertools.combinations(range(d), size)]
    n_sets = set_tables(d)[1][3:]
    # sets by their bits: the place of a union is found in the sorted list of all
    bits = np.array([sum(1 << j for j in J) for J in sets], dtype=np.int64)
    choose, smaller = set_tables(d)
    rank = np.array([smaller[len(J)] + sum(choose[u, i + 1] for i, u in enumerate(J)) for J in sets])
    order = np.argsort(bits)
    functions = bits[: n_sets[0]]
    values = [(j, k) for j in range(d) for k in (-1, *range(d)) if k != j]
    own = np.concatenate([functions, [0 if k < 0 else 1 << k for _, k in values], [0]])
    factor = np.concatenate([np.full(n_sets[0], -1), [j for j, _ in values], [d]])  # -1 is the constant 1
    union = rank[order[np.searchsorted(bits[order], own[:, None] | own)]]
    low, high = np.minimum(factor[:, None], factor), np.maximum(factor[:, None], factor)
    pairs = (d + 1) * (d + 2) // 2
    first, weights = n_sets[0] * pairs, n_sets[0] * pairs + n_sets[1] * (d + 1)
    second = union * pairs + high * (high + 1) // 2 + low
    places = np.where(low >= 0, second, np.where(high >= 0, first + union * (d + 1) + high, weights + union))
    return places, weights + n_sets[2]


@compiled
def _rank(members, size, choose, smaller):  # type: ignore[no-untyped-def]
    """The place of a set {u_1 < .. < u_k}: by size, then in colexicographic order, the sum of C(u_i, i)."""
    place = smaller[size]
    for i in range(size):
        place += choose[members[i], i + 1]
    return place


@compiled
def _add(sums, begin, values, weight):  # type: ignore[no-untyped-def]
    part = sums[begin : begin + len(values)]  # indices from 0, so that the loop is vectorised
    for j in range(len(values)):
        part[j] += weight * values[j]


@compiled
def add_rows(X, y, s, order, anchor, choose, smaller, sums):  # type: ignore[no-untyped-def]
    """Add rows to the sums of the module, given C(i, k) and the number of smaller sets by size."""
    d = X.shape[1]
    pairs = (d + 1) * (d + 2) // 2
    first = smaller[3] * pairs
    weights = first + smaller[4] * (d + 1)
    z, products = np.empty(d + 1), np.empty(pairs)
    missing, chosen = np.empty(d, dtype=np.int64), np.empty(4, dtype=np.int64)
    for row in order:
        weight, n_missing = s[row], 0
        for j in range(d):
            x = X[row, j]
            z[j] = 0.0 if np.isnan(x) else x - anchor[j]
            missing[n_missing] = j
            n_missing += np.isnan(x)
        z[d] = y[row] - anchor[d]
        at = 0
        for j in range(d + 1):
            for l in range(j + 1):
                products[at + l] = z[j] * z[l]
            at += j + 1
        # all sets of at most 4 missing features, a being the last one
        for a in range(-1, n_missing):
            for b in range(-1, max(a, 0)):
                for c in range(-1, max(b, 0)):
                    for e in range(-1, max(c, 0)):
                        size = 0
                        for index in (e, c, b, a):
                            if index >= 0:
                                chosen[size] = missing[index]
                                size += 1
                        place = _rank(chosen, size, choose, smaller)
                        sums[weights + place] += weight
                        if size <= 3:
                            _add(sums, first + place * (d + 1), z, weight)
                        if size <= 2:
                            _add(sums, place * pairs, products, weight)
