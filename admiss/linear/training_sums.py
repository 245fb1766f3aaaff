"""Designs and moments from statistics of one pass: those of the rows of some folds, without the rows.

The columns of a design are a linear map of the columns u whose moments were collected
(:mod:`admiss.statistics.product_columns`). Every fold has its own centres, scales and shifts, known after the pass:

    (columns of the design - mu times the intercept,  y - mu_y)  =  L u,         second moments  L G L'.

A column of values is 0 on all rows if its sum of squares is below the accuracy of the moments.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity import Adaptivity
from admiss.adaptivity.base import Basis
from admiss.estimator.scaling import centre_of, observed_scale
from admiss.linear.design import Design, DesignOptions, Observed, assembled
from admiss.linear.squared import Moments, Shift, Training
from admiss.patterns import PatternTable
from admiss.statistics.blocks import RowBlock, Shape
from admiss.statistics.feature_sums import FeatureSummary, FeatureSums
from admiss.statistics.product_moments import ProductMoments
from admiss.statistics.row_statistics import RowStatistics
from formulations.arrays import BoolArray, FloatArray, IntArray

# Sums of squares below this share of the terms that they are the sum of are 0, and so are weights.
ZERO_SQUARES, ZERO_WEIGHT = 1e-11, 1e-13

# Centres are rounded means, see :func:`admiss.estimator.scaling.centre_of`.
ROUNDED_CENTRE = 2.0**-36


class SummedRows(Training):
    """Rows that are not known, with a summary of them."""

    X = s = None

    @abstractmethod
    def summary(self) -> FeatureSummary:
        """Counts, means and ranges."""

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return self.summary().n_rows

    @property
    def weight(self) -> float:  # type: ignore[override]
        """Weight of the rows."""
        return self.summary().weight

    @property
    def target_range(self) -> tuple[float, float]:  # type: ignore[override]
        """Least and largest target."""
        summary = self.summary()
        return float(summary.low[-1]), float(summary.high[-1])


@dataclass(frozen=True)
class TrainingSums(SummedRows):
    """Statistics of the rows of some folds, for one adaptivity class.

    Attributes
    ----------
    features : FeatureSums
    products : ProductMoments
    folds : int array
        The folds whose rows these are.
    patterns : PatternTable
        The patterns of all rows, empty if they are not known.
    """

    features: FeatureSums
    products: ProductMoments
    folds: IntArray
    patterns: PatternTable

    @classmethod
    def of_rows(
        cls, X: FloatArray, y: FloatArray, s: FloatArray, fold: IntArray | None, adaptivity: Adaptivity
    ) -> "TrainingSums":
        """The statistics of rows in memory for a class of monomials."""
        fold = np.zeros(len(y), dtype=np.int64) if fold is None else fold
        shape = Shape(X.shape[1], int(fold.max()) + 1)
        rows, products = RowBlock(np.ascontiguousarray(X), y, s, fold), ProductMoments(shape, adaptivity)
        products.update(rows)
        features = FeatureSums.with_sums(rows, products.anchor, products.feature_sums())
        return cls(features, products, np.arange(shape.n_folds), PatternTable.of_missing(X, s))

    @classmethod
    def of_statistics(cls, statistics: RowStatistics, adaptivity: Adaptivity) -> "TrainingSums":
        """The statistics of all rows for one class."""
        products = statistics.moments_for(adaptivity)
        return cls(statistics.features, products, np.arange(statistics.n_folds), statistics.pattern_table())

    def part(self, some: IntArray) -> "TrainingSums":
        """The statistics of the rows of some folds."""
        return replace(self, folds=some)

    def summary(self) -> FeatureSummary:
        """Counts, means and ranges."""
        return self.features.summary(self.folds)

    def design(self, adaptivity: Adaptivity, options: DesignOptions) -> Design:
        """The design of a class on these rows, as :func:`admiss.linear.design.fit_design` makes it from rows."""
        summary = self.summary()
        features = np.flatnonzero(summary.n_observed > 0)
        missable = (summary.n_observed < summary.n_rows)[features]
        mean, deviation, size, low, high = (
            part[:-1][features] for part in (summary.mean, summary.deviation, summary.size, summary.low, summary.high)
        )
        spread, _ = observed_scale(deviation, size)
        centre = centre_of(mean, deviation) if options.centred else np.zeros(len(features))
        patterns = replace(self.patterns, patterns=self.patterns.patterns[:, features])  # others are always missing
        observed = Observed(features, missable, mean, spread, centre, patterns, summary.weight)
        fitted = self._fitted(adaptivity, features, summary)
        functions, values = _places(self.products, fitted, features)
        constant = self._constant(functions)
        counts, is_zero = self._counts(functions, values, _full(centre, features, summary))
        same = np.zeros(values.shape, dtype=bool)
        same[0], same[1:] = constant, np.outer((low == high) & ~missable, constant)
        smallest = np.where(is_zero, 0.0, np.where(same, 1.0, -1.0))
        largest, mask = np.where(is_zero, 0.0, 1.0), fitted.mask(len(features))
        basis = Basis.of(fitted, mask, constant, counts)
        return assembled(basis, observed, (smallest[mask], largest[mask]), options)

    def _fitted(self, adaptivity: Adaptivity, features: IntArray, found: FeatureSummary) -> Adaptivity:
        """The class on the features that were observed, fitted to rows that miss what is always missing together."""
        if self.products.columns.sets is None and len(features) < self.products.shape.n_features:
            raise ValueError(
                f"A feature was never observed, and the basis of {type(adaptivity).__name__} is fixed for all of them: "
                "leave that feature out of the pass."
            )
        M = found.alike[features] == np.flatnonzero(found.missing_once)[:, None]
        M = np.vstack([np.zeros(len(features), dtype=bool), M])
        return adaptivity.fit(np.zeros(M.shape), M)

    def _constant(self, functions: IntArray) -> BoolArray:
        """Whether each basis function is constant and not 0 on these rows."""
        if self.products.columns.sets is not None:  # a set of features that are missing everywhere is left out before
            return functions == 0
        low, high = self.products.low[self.folds].min(axis=0), self.products.high[self.folds].max(axis=0)
        return ((low == high) & (low != 0))[functions]

    def _counts(self, functions: IntArray, values: IntArray, centre: FloatArray) -> tuple[FloatArray, BoolArray]:
        """n_k of each pair of feature and basis function, and whether its column is 0 on all rows."""
        products = self.products
        weights, G = products.counts(self.folds), products.moments(self.folds)
        O, Q = products.columns.of_observed, products.columns.n_functions
        move = _without_nan(products.anchor - centre)[products.columns.pairs[:, 0]]
        observed = move**2 * O.multiply(O @ G[:Q, :Q]).sum(axis=1)
        cross = 2.0 * move * O.multiply(G[Q:-1, :Q]).sum(axis=1)
        own = np.diag(G)[Q:-1]
        of_values = np.append(own + cross + observed <= ZERO_SQUARES * (own + observed), True)  # -1 is no column
        used = np.append(O @ weights, 0.0)
        counts = np.vstack([weights[functions], used[values[1:]]])
        counts[counts <= ZERO_WEIGHT * weights[0]] = 0.0
        return counts, np.vstack([counts[0] == 0, of_values[values[1:]]])

    def columns(self, design: Design, unit: float) -> "ColumnMap":
        """The map to the columns of a design and to y / unit, shifted by their means on these rows."""
        products, summary = self.products, self.summary()
        Q, V = products.columns.n_functions, len(products.columns.pairs)
        functions, values = _places(products, design.adaptivity, design.features)
        feature, k = design.pairs.T
        of_values = values[feature, np.minimum(k, len(functions) - 1)]
        source = np.where(feature == 0, np.append(functions, 0)[k], Q + of_values)
        middle = summary.mean[-1] if design.free.any() else 0.0
        centre = _full(design.centre, design.features, summary)
        centre[-1] = middle
        L = products.centring(centre)[np.append(source, Q + V)]
        at_centre = np.abs(design.mean - design.centre) <= ROUNDED_CENTRE * design.spread
        if not (design.missable | at_centre).all():
            L = L + self._filled(design, L.shape, functions, of_values)
        L = sp.csr_array(sp.diags_array(1.0 / np.append(design.column_scale, unit)) @ L)
        k, f = np.flatnonzero(~design.free), np.flatnonzero(design.free)
        C = sp.csr_array((len(f), len(source)))
        if len(f) == 1 and not design.adaptivity.cells:
            G = products.moments(self.folds)
            means = (L[k] @ G[:, 0]) / G[0, 0]
            C = sp.csr_array((means, (np.zeros(len(k), dtype=int), k)), shape=C.shape)
            moved = sp.csr_array((means, (k, np.zeros(len(k), dtype=int))), shape=L.shape)
            L = sp.csr_array(L - moved)
        return ColumnMap(L, Shift(C, float(middle) / unit))

    def moments(self, columns: "ColumnMap") -> Moments:
        """The moments of columns on these rows, as :class:`admiss.linear.squared.TrainingRows` has them."""
        G = self.products.moments(self.folds)
        M = np.asarray(columns.L @ (columns.L @ G).T)
        M = 0.5 * (M + M.T)
        sums = np.asarray(columns.L @ G[:, 0])
        sizes = np.asarray(np.abs(columns.L) @ self.products.sizes(self.folds))
        r = max(0.0, float(M[-1, -1]))
        return Moments(float(G[0, 0]), M[:-1, :-1], M[:-1, -1], r, sums[:-1], sizes, self.products.accuracy)

    def _filled(self, design: Design, shape: tuple[int, int], functions: IntArray, of_values: IntArray) -> sp.csr_array:
        """What a value adds to its columns if it is missing in other rows, and never was in these: its mean.

        That is (mean_j - c_j) (phi_k - (1 - m_j) phi_k), which is 0 on these rows.
        """
        feature, k = design.pairs.T
        fill = np.append(0.0, np.where(design.missable, 0.0, design.mean - design.centre))[feature]
        rows = np.flatnonzero(fill)
        O = self.products.columns.of_observed[of_values[rows]]
        one = sp.csr_array((np.ones(len(rows)), (np.arange(len(rows)), functions[k[rows]])), shape=O.shape)
        added = sp.coo_array(sp.diags_array(fill[rows]) @ (one - O))
        return sp.csr_array((added.data, (rows[added.coords[0]], added.coords[1])), shape=shape)


@dataclass(frozen=True)
class ColumnMap:
    """The map L of the module, and the shift that it contains."""

    L: sp.csr_array
    shift: Shift


def _places(products: ProductMoments, fitted: Adaptivity, features: IntArray) -> tuple[IntArray, IntArray]:
    """The place of each basis function among psi, and of each pair (j, k) among the values; -1 for none."""
    columns = products.columns
    if columns.sets is None:
        functions = columns.of_basis.indices.astype(np.int64)
        index = {(int(j), int(k)): v for v, (j, k) in enumerate(columns.pairs)}
        keys = [[(int(j), k) for k in range(len(functions))] for j in features]
    else:
        place = {J: q for q, J in enumerate(columns.sets)}
        sets = [tuple(features[J].tolist()) for J in vars(fitted)["monomials_"]]
        functions = np.array([place[J] for J in sets])
        index = {(int(j), int(q)): v for v, (j, q) in enumerate(columns.pairs)}
        keys = [[(int(j), int(q)) for q in functions] for j in features]
    values = np.full((len(features) + 1, len(functions)), -1)
    for j, row in enumerate(keys):
        values[j + 1] = [index.get(key, -1) for key in row]
    return functions, values


def _full(centre: FloatArray, features: IntArray, found: FeatureSummary) -> FloatArray:
    """Centres of all features and of y."""
    full = np.zeros(len(found.mean))
    full[features], full[-1] = centre, found.mean[-1]
    return full


def _without_nan(move: FloatArray) -> FloatArray:
    return np.where(np.isnan(move), 0.0, move)
