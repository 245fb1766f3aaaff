"""Designs and moments from the pseudo-rows of each pattern, for classes whose columns are known only after the pass.

A class that learns its columns from the patterns, or its structure from the values, has no moments that could be
collected beforehand. If it is linear in x at every pattern, weight, mean and scatter of the rows of each pattern
determine its fit: it is that of their pseudo-rows (:mod:`admiss.statistics.pattern_factors`), which are taken around
the centres c of the design, so that a row of the design is that of a pseudo-row as it is.

*Accuracy.* Columns phi_k(m) (x_j - c_j) are in sizes D_k = s_k + |phi_k| l_j / e, with s_k their norm before they are
shifted, e and l_j the rounding and the loss of the pseudo-rows. Then P and Q of that module satisfy

    |P(v) - Q(v)|  <=  |g| + 2 F sqrt(P) + F^2  <=  4 e (sum_k |v_k| D_k)^2,        F <= e sum_k |v_k| D_k,

and a form that is bounded by  t (sum_k |v_k| D_k)^2  has entries of at most 2 t D_i D_k (v = e_i / D_i +- e_k / D_k).
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity import Adaptivity
from admiss.estimator.scaling import centre_of
from admiss.linear.design import Design, DesignOptions, fit_design
from admiss.linear.fit import solve_moments, solve_on_design
from admiss.linear.penalty import Penalty
from admiss.linear.squared import (
    Moments,
    Shift,
    WeightedRows,
    moments_of,
    shift_of,
)
from admiss.linear.stated_program import Fit
from admiss.linear.training_sums import SummedRows
from admiss.statistics.feature_sums import FeatureSummary
from admiss.statistics.pattern_factors import POINT_ROUNDING, PseudoRows, relative_error
from admiss.statistics.row_statistics import RowStatistics
from formulations.arrays import FloatArray, IntArray
from formulations.certificate import SOLVERS_BOUND
from formulations.losses import Squared


@dataclass(frozen=True)
class PatternColumns:
    """The columns of a design and y / unit, both around an origin, shifted."""

    design: Design
    unit: float
    origin: FloatArray
    shift: Shift

    @property
    def own_shift(self) -> Shift:
        """The shift of targets around the origin."""
        return Shift(self.shift.C, self.shift.y - self.origin[-1] / self.unit)


@dataclass(frozen=True)
class TrainingPatterns(SummedRows):
    """The rows of some folds as their pseudo-rows."""

    statistics: RowStatistics
    folds: IntArray

    def part(self, some: IntArray) -> "TrainingPatterns":
        """The rows of some folds."""
        return replace(self, folds=some)

    def summary(self) -> FeatureSummary:
        """Counts, means and ranges."""
        return self.statistics.summary(self.folds)

    def rows_around(self, origin: FloatArray) -> PseudoRows:
        """The pseudo-rows, with exact values of features that are constant."""
        summary, rows = self.summary(), self.statistics.pseudo_rows(self.folds, origin)
        same = np.flatnonzero(summary.low[:-1] == summary.high[:-1])
        rows.X[:, same] = np.where(np.isnan(rows.X[:, same]), np.nan, (summary.low - origin)[same])
        return rows

    def design(self, adaptivity: Adaptivity, options: DesignOptions) -> Design:
        """The design of a class on these rows."""
        summary = self.summary()
        origin = np.zeros(len(summary.mean))
        if options.centred:
            origin[:-1] = np.nan_to_num(centre_of(summary.mean, summary.deviation)[:-1])
        rows = self.rows_around(origin)
        design = fit_design(rows.X, rows.sample_weight, adaptivity, replace(options, center=False))
        patterns = self.statistics.pattern_table()
        centre = origin[design.features]
        return replace(
            design,
            mean=summary.mean[design.features],
            centre=centre,
            patterns=replace(patterns, patterns=patterns.patterns[:, design.features]),
        )

    def columns(self, design: Design, unit: float) -> PatternColumns:
        """The columns of a design around its centres, and y / unit around its mean if there is an intercept."""
        summary = self.summary()
        origin = np.zeros(len(summary.mean))
        origin[design.features] = design.centre
        if design.free.any() and not design.adaptivity.has_structure():  # a structure may concern the intercept
            origin[-1] = summary.mean[-1]
        rows, around = self.rows_around(origin), around_centre(design)
        shift = shift_of(around, rows.X, rows.y / unit, rows.sample_weight)
        return PatternColumns(around, unit, origin, Shift(shift.C, shift.y + origin[-1] / unit))

    def moments(self, columns: PatternColumns) -> Moments:
        """The moments of columns on these rows."""
        design = columns.design
        unit = columns.unit
        shift = columns.own_shift
        rows, summary = self.rows_around(columns.origin), self.summary()
        s = rows.sample_weight
        moments = moments_of(WeightedRows(design, rows.X, rows.y / unit, s, shift))
        norm = np.sqrt(np.append(np.diag(moments.G), moments.r))
        before = norm + np.append(np.abs(shift.C).T @ norm[:-1][design.free], abs(shift.y) * np.sqrt(moments.S))
        values = rows.lost / POINT_ROUNDING
        values += np.sqrt(relative_error(summary.n_rows, len(design.features)) / POINT_ROUNDING) * np.nan_to_num(
            summary.size + np.abs(columns.origin)
        )
        of_column = np.append(0.0, values[:-1][design.features])[design.pairs[:, 0]] / design.column_scale
        functions = design.matrix_of(np.ones((len(s), len(design.features))), np.isnan(rows.X[:, design.features]))
        squares = functions.multiply(functions) if sp.issparse(functions) else functions**2
        size = np.sqrt(squares.T @ s) * design.column_scale
        sizes = before + np.append(of_column * size, values[-1] / unit * np.sqrt(moments.S))
        accuracy = moments.accuracy + 8.0 * POINT_ROUNDING
        return replace(moments, sizes=sizes * (1.0 + 2.0 * accuracy), accuracy=accuracy)


def solve_patterns(rows: TrainingPatterns, design: Design, penalty: Penalty) -> Fit | None:
    """The fit, as :func:`admiss.linear.fit.solve_moments` returns it.

    If the class has columns or a structure of its own, the fit is that of the pseudo-rows as they are, and its bound
    holds up to their rounding.
    """
    kind = type(design.adaptivity)
    if kind.columns is Adaptivity.columns and not design.adaptivity.has_structure():
        return solve_moments(rows, design, penalty)
    columns = rows.columns(design, 1.0)
    pseudo = rows.rows_around(columns.origin)
    data = pseudo.X, pseudo.y, pseudo.sample_weight
    w, certificate = solve_on_design(columns.design, *data, Squared(), penalty, "auto")
    w[design.free] += columns.origin[-1]
    status = SOLVERS_BOUND if certificate.status == "optimal" else certificate.status
    return w, replace(certificate, status=status, dual=None)


def around_centre(design: Design) -> Design:
    """The design for features from which the centres have been subtracted."""
    return replace(design, mean=design.mean - design.centre, centre=np.zeros(len(design.centre)))
