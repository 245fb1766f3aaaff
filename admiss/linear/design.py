"""From rows to the columns of the program.

A row (x, m) becomes the columns  ((x_j - c_j) / scale_j) (1 - m_j) phi_k(m)  of an adaptivity class, with c_j the mean
of the observed training values, or 0. The difference x_j - c_j is rounded to a double: it is the data of the program.
A class that is not linear in x makes its columns of the features as they are, and c_j = 0, scale_j = 1.
Columns that are 0 on all training rows are dropped, and so are constant ones if there is a free intercept. Rows are
processed in blocks, so the design need not be held as a whole.

The intercept x_0 = 1 is free of penalty: its column (0, k) with phi_k = 1, or the column (0, k) of every cell if the
basis functions of the class are indicators of cells.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity import Adaptivity
from admiss.adaptivity.base import Basis, column_extremes
from admiss.estimator.scaling import centre_of, observed_moments, observed_scale, power_of_two
from admiss.patterns import PatternTable
from admiss.statistics.product_columns import MAX_COLUMNS, count_columns
from admiss.statistics.product_moments import MOST_FEATURES
from formulations.arrays import BoolArray, FloatArray, IntArray, Matrix
from formulations.jit import compiled

# Entries of the design in a block of rows, and the smallest number of rows (wide designs are sparse).
BLOCK_ENTRIES = 2**18
BLOCK_ROWS = 1024
# Rows for each collected column from which sums take the place of rows in memory.
ROWS_PER_COLUMN = 4
# Standard deviations between 0 and the mean of a feature beyond which cross products lose it.
MAX_OFFSET = 1e4
# Entries beyond which a whole design is held sparse.
DENSE_ENTRIES = 2**26


@dataclass(frozen=True)
class Design:
    """A fitted map from rows to columns.

    Attributes
    ----------
    adaptivity : Adaptivity
        Fitted adaptivity class, on the features that were observed at least once.
    features : int array of shape (d,)
        Columns of X with these features.
    missable : bool array of shape (d,)
        Whether each was missing somewhere in training.
    mean, spread, centre, scale : float arrays of shape (d,)
        Mean and standard deviation of the observed training values, and what is subtracted from a feature and by what
        it is divided.
    patterns : PatternTable
        Patterns of the training rows, without their codes.
    pairs : int array of shape (p, 2)
        For each column its feature (0 is the intercept, j the j-th of ``features``) and its basis function.
    position : int array of shape (p,)
        Its index among the columns of the adaptivity class; -1 for an intercept that the basis lacks (its basis
        function is then K).
    counts : float array of shape (p,)
        n_k, the weight of the rows on which it is not 0.
    factors : float array of shape (p,)
        Penalty factors of the class.
    has_factors : bool
        Whether they are its own; all are 1 otherwise.
    free : bool array of shape (p,)
        Columns without penalty.
    adaptive : bool array of shape (p,)
        Columns whose basis function is not constant on the training rows.
    n_basis : int
        K, the number of basis functions.
    """

    adaptivity: Adaptivity
    features: IntArray
    missable: BoolArray
    mean: FloatArray
    spread: FloatArray
    centre: FloatArray
    scale: FloatArray
    patterns: PatternTable
    pairs: IntArray
    position: IntArray
    counts: FloatArray
    factors: FloatArray
    has_factors: bool
    free: BoolArray
    adaptive: BoolArray
    n_basis: int

    @property
    def column_scale(self) -> FloatArray:
        """Divisor of each column: the scale of its feature, 1 for the intercept."""
        return np.concatenate([[1.0], self.scale])[self.pairs[:, 0]]

    def in_powers_of_two(self) -> tuple["Design", FloatArray]:
        """The same columns with divisors that are powers of two near the spread of each feature; and their change.

        Without an intercept that makes up for its mean, the size of a feature takes the place of its spread. The change
        is the new divisor of each column over the old one: coefficients are multiplied by it.
        """
        if not self.adaptivity.linear_in_x:
            return self, np.ones(len(self.pairs))
        offset = 0.0 if self.free.any() else np.abs(self.mean - self.centre)
        changed = replace(self, scale=power_of_two(np.maximum(self.spread, offset)))
        return changed, changed.column_scale / self.column_scale

    def split(self, X: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Centred features and their patterns; one that was never missing in training is set to its mean."""
        part = X if len(self.features) == X.shape[1] else X[:, self.features]
        M = np.isnan(part)
        filled = M & ~self.missable
        if filled.any():
            part = np.where(filled, self.mean, part)
            M &= self.missable
        return _moved(part, self.centre), M

    def matrix(self, X: FloatArray) -> Matrix:
        """The columns of these rows."""
        columns = self.adaptivity.columns(*self.split(X))
        return self._select(columns)

    def matrix_of(self, Z: FloatArray, M: BoolArray) -> Matrix:
        """The columns of centred features with these patterns."""
        return self._select(self.adaptivity.columns(Z, M))

    def _select(self, columns: Matrix) -> Matrix:
        factor = 1.0 / self.column_scale
        if np.any(self.position < 0):
            ones = np.ones((columns.shape[0], 1))
            columns = sp.hstack([columns, ones], format="csr") if sp.issparse(columns) else np.hstack([columns, ones])
        if sp.issparse(columns):
            return sp.csr_array(columns[:, self.position] @ sp.diags_array(factor))
        if columns.shape[1] != len(self.position) or np.any(self.position != np.arange(len(self.position))):
            return columns[:, self.position] * factor
        own = type(self.adaptivity).columns is Adaptivity.columns  # a new array, which may be changed
        return np.multiply(columns, factor, out=columns if own else None)

    def blocks(self, X: FloatArray) -> Iterator[tuple[slice, Matrix]]:
        """Slices of the rows with their columns."""
        for rows in _row_slices(len(X), len(self.pairs)):
            yield rows, self.matrix(X[rows])

    def whole(self, X: FloatArray) -> Matrix:
        """The columns of all rows at once, sparse if a dense array would be too large."""
        parts = [A for _, A in self.blocks(X)]
        if len(X) * len(self.pairs) > DENSE_ENTRIES or sp.issparse(parts[0]):
            return sp.vstack([sp.csr_array(A) for A in parts], format="csr")
        return np.vstack(parts)

    def dense(self, X: FloatArray) -> FloatArray:
        """The columns of all rows as a dense array."""
        A = self.whole(X)
        return A.toarray() if sp.issparse(A) else A

    def predictor(self, X: FloatArray, w: FloatArray) -> FloatArray:
        """The columns times the coefficients ``w`` of shape (p,) or (p, outputs)."""
        degrees = self.adaptivity.degrees()
        if w.ndim == 1 and degrees is not None and degrees[0] == 0 and degrees[1] <= 1 and len(self.features):
            return self._after_imputation(X, w)
        return np.concatenate([A @ w for _, A in self.blocks(X)])

    def _after_imputation(self, X: FloatArray, w: FloatArray) -> FloatArray:
        """The same for static weights and affine intercepts: a feature adds w_j (x_j - c_j), or b_j if missing."""
        slope = np.zeros(len(self.features))
        if_missing = np.zeros(len(self.features))
        constant = 0.0
        of_column, member = w / self.column_scale, vars(self.adaptivity)["monomials_"]
        for value, (j, k) in zip(of_column, self.pairs, strict=True):
            if j > 0:
                slope[j - 1] = value
            elif k < self.n_basis and member[k].any():
                if_missing[np.flatnonzero(member[k])[0]] = value
            else:
                constant += value
        at_mean = np.where(self.missable, if_missing, slope * (self.mean - self.centre))
        part = X if len(self.features) == X.shape[1] else X[:, self.features]
        values: FloatArray = _imputed_sums(np.ascontiguousarray(part), self.centre, slope, at_mean, constant)
        return values

    def scatter(self) -> sp.csr_array:
        """The matrix that maps the coefficients to the entries of W of shape (d + 1, K), row by row."""
        columns = np.flatnonzero(self.position >= 0)
        entries = self.pairs[columns, 0] * self.n_basis + self.pairs[columns, 1]
        shape = ((len(self.features) + 1) * self.n_basis, len(self.pairs))
        return sp.csr_array((np.ones(len(columns)), (entries, columns)), shape=shape)


def against_cross_products(design: Design) -> str | None:
    """Why cross products of the columns, and so fast paths, do not apply; None if they do."""
    if len(design.pairs) > MAX_COLUMNS:
        return (
            f"{design.adaptivity!r} has {len(design.pairs):,} columns, and fast paths go up to {MAX_COLUMNS:,}: "
            "leave it out, or search with scikit-learn's GridSearchCV."
        )
    is_far = np.abs(design.mean - design.centre) > MAX_OFFSET * design.spread
    if design.adaptivity.linear_in_x and is_far.any():
        columns = ", ".join(str(j) for j in design.features[is_far][:5])
        return (
            f"The features in columns {columns} of X lie more than {MAX_OFFSET:,.0f} standard deviations away from 0: "
            "use center=True."
        )
    return None


def refuse_without_cross_products(design: Design) -> None:
    """Raise an error if cross products of the columns do not apply."""
    reason = against_cross_products(design)
    if reason:
        raise ValueError(reason)


def sums_are_faster(X: FloatArray, adaptivity: Adaptivity) -> bool:
    """Whether rows in memory are summed once for all folds, rather than made into columns.

    The sums are those of monomials; they pay if the columns of the design are more than one block of them.
    """
    n, d = X.shape
    most_columns = min(MAX_COLUMNS, n // ROWS_PER_COLUMN)
    if n * most_columns <= BLOCK_ENTRIES:
        return False
    degrees = adaptivity.degrees()
    if degrees is None or (degrees[0] == 1 and d > MOST_FEATURES):
        return False
    n_columns = count_columns(min(degrees[0], d), d)
    return n * n_columns > BLOCK_ENTRIES and n_columns <= most_columns


@compiled
def _imputed_sums(X, centre, slope, if_missing, constant):  # type: ignore[no-untyped-def]
    n, d = X.shape
    sums = np.empty(n)
    for i in range(n):
        total = 0.0
        for j in range(d):
            x = X[i, j]
            total += if_missing[j] if np.isnan(x) else slope[j] * (x - centre[j])
        sums[i] = total + constant
    return sums


def _moved(X: FloatArray, centre: FloatArray) -> FloatArray:
    return X - centre if centre.any() else X


def _attained(X: FloatArray, values: FloatArray) -> BoolArray:
    """Whether each column has its value in some row."""
    is_attained = np.zeros(len(values), dtype=bool)
    for rows in _row_slices(len(X), len(values)):
        is_attained |= (X[rows] == values).any(axis=0)
    return is_attained


def _row_slices(n: int, n_columns: int) -> Iterator[slice]:
    size = max(BLOCK_ROWS, BLOCK_ENTRIES // max(1, n_columns))
    return (slice(start, start + size) for start in range(0, n, size))


@dataclass(frozen=True)
class DesignOptions:
    """Whether features are centred and scaled, and whether there is an intercept, without which none is centred."""

    center: bool = True
    scale: bool = True
    fit_intercept: bool = True

    @property
    def centred(self) -> bool:
        """Whether features are centred: without an intercept they are not, so that predictions are 0 at x = 0."""
        return self.center and self.fit_intercept


def fit_design(
    X: FloatArray, sample_weight: FloatArray, adaptivity: Adaptivity, options: DesignOptions = DesignOptions()
) -> Design:
    """The design of an adaptivity class on training rows whose weights are all positive."""
    centred = options.centred and adaptivity.linear_in_x
    features = np.flatnonzero(~np.isnan(np.fmax.reduce(X, axis=0)))
    part = X if len(features) == X.shape[1] else X[:, features]
    M = np.isnan(part)
    mean, _, size, _ = observed_moments(part, sample_weight)
    shift, deviation, _, _ = observed_moments(part - mean, sample_weight)  # without the rounding of values far from 0
    mean = mean + shift
    spread, is_constant = observed_scale(deviation, size)
    centre = centre_of(mean, deviation) if centred else np.zeros(len(features))
    if not adaptivity.linear_in_x:
        spread = np.ones(len(features))
    table = PatternTable.of_missing(part, sample_weight)
    reads_values = centre.any() and not hasattr(type(adaptivity).fit, "from_patterns")
    basis = Basis.learned(adaptivity, part - centre if reads_values else part, M, sample_weight, table)
    missable, fitted = np.asarray(M.any(axis=0)), basis.adaptivity
    del M  # an eighth of X
    n_columns = int(basis.mask.sum())
    low, high = -np.ones(n_columns), np.ones(n_columns)
    has_zero = _attained(part, centre)
    if type(fitted).columns is not Adaptivity.columns or np.any(has_zero | is_constant):
        # otherwise no product of values is constant, and it is 0 on all rows only if n_k = 0
        low, high = _extremes(fitted, part, centre, n_columns)
    observed = Observed(features, missable, mean, spread, centre, table, float(table.weights.sum()))
    return assembled(basis, observed, (low, high), options)


@dataclass(frozen=True)
class Observed:
    """Training rows as far as a design depends on them: attributes of :class:`Design`, and the weight of the rows."""

    features: IntArray
    missable: BoolArray
    mean: FloatArray
    spread: FloatArray
    centre: FloatArray
    patterns: PatternTable
    weight: float


def assembled(
    basis: Basis, observed: Observed, extremes: tuple[FloatArray, FloatArray], options: DesignOptions
) -> Design:
    """The design of a fitted class, without columns that are 0 or, next to a free intercept, constant.

    ``extremes`` are the smallest and the largest value of each column of the class; only whether they are equal, and 0,
    matters.
    """
    low, high = extremes
    pairs = np.argwhere(basis.mask)
    position = np.arange(len(pairs))
    counts, factors = basis.counts[*pairs.T], basis.factors[*pairs.T]
    adaptive = ~basis.constant[pairs[:, 1]]
    is_intercept = pairs[:, 0] == 0
    free = is_intercept.copy()
    if not basis.adaptivity.cells:
        free[np.flatnonzero(is_intercept & ~adaptive)[1:]] = False
        free &= ~adaptive
    keep = counts > 0
    if not basis.has_structure:  # a structure may determine the coefficient of a column that is 0 on every row
        keep &= (low != 0) | (high != 0)
    if options.fit_intercept:
        keep &= free | (low != high) | (low == 0)
        if not free.any():
            pairs = np.vstack([pairs, [[0, len(basis.constant)]]])
            position = np.append(position, -1)
            keep = np.append(keep, True)
            free = np.append(free, True)
            adaptive = np.append(adaptive, False)
            counts, factors = np.append(counts, observed.weight), np.append(factors, 1.0)
    else:
        keep &= ~free
    is_scaled = options.scale and basis.adaptivity.linear_in_x
    return Design(
        adaptivity=basis.adaptivity,
        features=observed.features,
        missable=observed.missable,
        mean=observed.mean,
        spread=observed.spread,
        centre=observed.centre,
        scale=observed.spread if is_scaled else np.ones(len(observed.features)),
        patterns=observed.patterns,
        pairs=pairs[keep],
        position=position[keep],
        counts=counts[keep],
        factors=factors[keep],
        has_factors=basis.has_factors,
        free=free[keep],
        adaptive=adaptive[keep],
        n_basis=len(basis.constant),
    )


def _extremes(
    adaptivity: Adaptivity, X: FloatArray, centre: FloatArray, n_columns: int
) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest value of each column of the adaptivity class on the training rows."""
    low, high = np.full(n_columns, np.inf), np.full(n_columns, -np.inf)
    for rows in _row_slices(len(X), n_columns):
        columns = adaptivity.columns(_moved(X[rows], centre), np.isnan(X[rows]))
        if columns.shape[1] != n_columns:
            raise ValueError(
                f"{type(adaptivity).__name__}.columns gives {columns.shape[1]} columns, but its mask has {n_columns}."
            )
        block_low, block_high = column_extremes(columns)
        low, high = np.minimum(low, block_low), np.maximum(high, block_high)
    return low, high
