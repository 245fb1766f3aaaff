"""Fits and searches of adaptive regression under further deletions, without sampling.

The expected risk  (1/S) sum_i s_i [ keep (y_i - a_i'w)^2 + (1 - keep) E (y_i - a(x_i, m_i v D)'w)^2 ]  is a quadratic,
whose sums are below; the penalty has the expected counts n_k. Paths and selection are those of every other fit of the
squared loss, and held-out rows have further deletions as well.

The certificate is that of the expected program, proven from its sums as every fit of the squared loss is.

**Columns and sufficient statistics of a class of monomials, in expectation.** A column of the class is z_j o_j prod_{k
in J} m_k, with z = x - c, o = 1 - m, and z_0 o_0 = 1 for the intercept. With m_k = 1 - o_k it is a sum of *atoms*,
which are products of o:

    z_j o_j prod_{k in J} m_k  =  sum_{T subset of J} (-1)^|T| z_j prod_{k in T + j} o_k         (T + 0 = T)

The sets J of a class are closed under subsets, so that its columns and its atoms b_A, A = J + j, have the same indices,
and a = b L' with a matrix L of 0, 1 and -1. Deletions turn b_A into b_A prod_{k in A} u_k. Over the deletions, with
``kept`` as in :mod:`admiss.augmentation.deletions`,

    E[b_A b_B] = b_A b_B kept(|A u B|),     E[b_A] = b_A kept(|A|),

and so, with G, c, a the sums over the rows as they are, and * the product of entries,

    E[G] = L (kept(|A u B|) * G_atoms) L',   E[c] = L (kept(|A|) * c_atoms),   E[a] = L (kept(|A|) * a_atoms).

Likewise n_k becomes L (kept(|A|) * N), N_A the weight of the rows in which all of A are observed. The means c_j and the
scales of the features stay: the weights of all observed values of a feature change by the same factor.

Every feature that is observed somewhere can be missing after deletions, so the sets J range over all of them. A column
is 0 on all rows only if its feature is constant, and then left out.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from admiss._version import __version__
from admiss.adaptivity import Adaptivity, Affine, AffineIntercept, Polynomial, Static
from admiss.augmentation.deletions import Deletions
from admiss.estimator.cross_validation import FoldedRows
from admiss.estimator.scaling import centre_of, observed_moments, observed_scale
from admiss.estimator.validation import (
    feature_names,
    read_features,
    read_regression_target,
    read_weights,
    refuse_extremes,
)
from admiss.linear.cv import AUTO_CLASSES, AdaptiveRegressorCV, few_affine_columns
from admiss.linear.design import Design, DesignOptions, refuse_without_cross_products
from admiss.linear.estimators import AdaptiveRegressor
from admiss.linear.fit import solve_moments
from admiss.linear.folds import ClassFolds, GridOptions, training_folds
from admiss.linear.penalty import Penalty, UnitProgram
from admiss.linear.squared import (
    Moments,
    RowColumns,
    Shift,
    Training,
    TrainingRows,
    eliminate,
)
from admiss.linear.stated_program import Fit, solve_stated
from admiss.patterns import PatternTable
from admiss.statistics.product_columns import MAX_COLUMNS
from formulations.arrays import BoolArray, FloatArray
from formulations.certificate import ROUNDING, certify, clock, gap_tolerance
from formulations.erm.dual_bound import Rows, prove
from formulations.erm.risk import EmpiricalRisk
from formulations.losses import Squared
from formulations.rounding import gamma

# Rows whose atoms are held at once: 500 columns of them take 16 MB.
BLOCK = 4096


def expected_design(
    X: FloatArray, s: FloatArray, adaptivity: Adaptivity, law: Deletions, options: DesignOptions
) -> Design:
    """The design of a class of monomials on rows with further deletions; see ``admiss.linear.design.fit_design``."""
    features = np.flatnonzero(~np.isnan(X).all(axis=0))
    part, missable = X[:, features], np.ones(len(features), dtype=bool)
    mean, deviation, size, _ = observed_moments(part, s)
    spread, is_constant = observed_scale(deviation, size)
    centre = centre_of(mean, deviation) if options.centred else np.zeros(len(features))
    fitted = adaptivity.fit(part, np.eye(len(features), dtype=bool))  # deletions separate all features
    pairs = np.argwhere(fitted.mask(len(features)))
    if len(pairs) > MAX_COLUMNS:
        raise ValueError(
            f"{adaptivity!r} has {len(pairs):,} columns if every feature can be missing, and expectations go up to "
            f"{MAX_COLUMNS:,}: use another class, or a number of copies."
        )
    adaptive = np.asarray(_sets(fitted)[pairs[:, 1]].any(axis=1))
    design = Design(
        adaptivity=fitted,
        features=features,
        missable=missable,
        mean=mean,
        spread=spread,
        centre=centre,
        scale=spread if options.scale else np.ones(len(features)),
        patterns=PatternTable.of_missing(part, s),
        pairs=pairs,
        position=np.arange(len(pairs)),
        counts=np.empty(len(pairs)),
        factors=np.ones(len(pairs)),
        has_factors=False,
        free=(pairs[:, 0] == 0) & ~adaptive,
        adaptive=adaptive,
        n_basis=len(_sets(fitted)),
    )
    counts = _expectation(design) @ (law.kept(_atoms(design).sum(axis=1)) * _observed_weights(design, part, s))
    zero = np.append(False, is_constant & (mean == centre))[pairs[:, 0]]
    keep = ~zero & (counts > 0) & (options.fit_intercept | ~design.free)
    kept = {name: getattr(design, name)[keep] for name in ("pairs", "position", "factors", "free", "adaptive")}
    return Design(**{**vars(design), **kept, "counts": counts[keep]})


@dataclass(frozen=True)
class ExpectedRows(TrainingRows):
    """Rows in memory with further deletions, as a fit of the squared loss takes them."""

    law: Deletions
    # never by the rows as they are
    squared_error = Training.squared_error
    at_zero = Training.at_zero
    dual = Training.dual

    def design(self, adaptivity: Adaptivity, options: DesignOptions) -> Design:
        """The design of a class of monomials."""
        return expected_design(self.X, self.s, adaptivity, self.law, options)

    def columns(self, design: Design, unit: float) -> RowColumns:
        """The columns, which are centred already; the mean of y is subtracted if there is an intercept."""
        shape = (int(design.free.sum()), len(design.pairs))
        middle = float(np.average(self.y / unit, weights=self.s)) if shape[0] else 0.0
        return RowColumns(design, unit, Shift(sp.csr_array(shape), middle))

    def moments(self, columns: RowColumns) -> Moments:
        """The expected moments. With D the sizes of the atoms, those of the columns are accurate to sizes |L| D."""
        whole, t = _whole(columns.design), self.y / columns.unit - columns.shift.y
        p = len(whole.pairs)
        G = np.zeros((p, p))
        c = np.zeros(p)
        a = np.zeros(p)
        for start in range(0, len(t), BLOCK):
            rows = slice(start, start + BLOCK)
            Z, M = whole.split(self.X[rows])
            B = _products(whole, np.where(M, 0.0, Z) / whole.scale, M)
            weighted = self.s[rows, None] * B
            G += B.T @ weighted
            c += weighted.T @ t[rows]
            a += weighted.sum(axis=0)
        sets = _atoms(whole).astype(float)
        members = sets.sum(axis=1)
        union = members[:, None] + members - sets @ sets.T
        L, single = _expectation(whole)[columns.design.position], self.law.kept(members)
        r = float(self.s @ t**2)
        accuracy = gamma(len(t) + 4 * p + 100)
        sizes = np.append(np.abs(L) @ np.sqrt(np.diag(G)), np.sqrt(r)) * (1.0 + accuracy)
        expected = L @ (L @ (self.law.kept(union) * G)).T
        return Moments(self.weight, expected, L @ (single * c), r, L @ (single * a), sizes, accuracy)


def _whole(design: Design) -> Design:
    """The design with all pairs of the class."""
    pairs = np.argwhere(design.adaptivity.mask(len(design.features)))
    return Design(**{**vars(design), "pairs": pairs})


def _sets(fitted: Any) -> BoolArray:
    """The sets J of the basis functions, of shape (K, d)."""
    return np.asarray(fitted.monomials_)


def _atoms(design: Design) -> BoolArray:
    """The sets A = J + j, of shape (p, d)."""
    d = len(design.features)
    return np.asarray(
        _sets(design.adaptivity)[design.pairs[:, 1]] | np.eye(d + 1, d, -1, dtype=bool)[design.pairs[:, 0]]
    )


def _expectation(design: Design) -> sp.csr_array:
    """The matrix L from atoms to columns."""
    feature, J = design.pairs[:, 0], _sets(design.adaptivity)[design.pairs[:, 1]].astype(float)
    is_subset = (J @ (1.0 - J.T) == 0).T  # of columns (rows of the matrix): atoms whose set is contained in theirs
    entries = np.where(is_subset & (feature[:, None] == feature), (-1.0) ** J.sum(axis=1), 0.0)
    return sp.csr_array(entries)


def _products(design: Design, Z: FloatArray, M: BoolArray) -> FloatArray:
    """The atoms z_j prod_{k in J} o_k of rows with z_j = 0 if missing: the basis evaluated at o in place of m."""
    phi = np.asarray(design.adaptivity.basis((~M).astype(float)))
    ones = np.ones((len(Z), 1))
    return np.hstack([ones, Z])[:, design.pairs[:, 0]] * phi[:, design.pairs[:, 1]]


def _observed_weights(design: Design, X: FloatArray, s: FloatArray) -> FloatArray:
    """N_A, the weight of the rows in which all of A are observed."""
    table = PatternTable.of(np.isnan(X), s)
    return np.asarray(table.weights @ _products(design, (~table.patterns).astype(float), table.patterns))


# Classes whose columns are sums of products of o; subclasses may have others.
MONOMIALS = (Static, AffineIntercept, Affine, Polynomial)


def is_exact(estimator: Any) -> bool:
    """Whether the expectation over deletions is computed exactly for an estimator."""
    if type(estimator) is AdaptiveRegressor:
        adaptivity, loss = estimator._check_parameters()
        classes = [adaptivity]
    elif type(estimator) is AdaptiveRegressorCV:
        classes, finite, _ = estimator._read_grid()
        if finite:
            return False
        loss = estimator._loss()
    else:
        return False
    plain = estimator.penalty_weights == "count" and estimator.on_unseen_pattern == "nearest"
    free = estimator.constraints is None and estimator.monotonic_cst is None
    return plain and free and isinstance(loss, Squared) and all(type(each) in MONOMIALS for each in classes)


def fit_expected(estimator: Any, X: Any, y: Any, sample_weight: Any, law: Deletions) -> Any:
    """A fitted copy of an adaptive regression, or of a search for one, under a law of deletions."""
    model = clone(estimator)
    if type(model) is AdaptiveRegressorCV:
        rows = read_features(model, X, reset=True)
        d = int((~np.isnan(rows)).any(axis=0).sum())
        if model._is_auto():  # every observed feature can be deleted
            model.set_params(adaptivity=AUTO_CLASSES if few_affine_columns(d, d, len(rows)) else AUTO_CLASSES[:1])
        folded, grid = model._read_rows(X, y, sample_weight), model._read_grid()
        selected = model._select_on(partial(expected_folds, law=law), folded, grid)
        model.best_estimator_ = _fit_single(selected, X, y, sample_weight, law)
        return model
    return _fit_single(model, X, y, sample_weight, law)


def _fit_single(model: AdaptiveRegressor, X: Any, y: Any, sample_weight: Any, law: Deletions) -> AdaptiveRegressor:
    adaptivity, _ = model._check_parameters()
    X = read_features(model, X, reset=True)
    y, s = read_regression_target(model, y, len(X)), read_weights(sample_weight, X)
    rows = ExpectedRows(X[s > 0], y[s > 0], s[s > 0], law)
    refuse_extremes(rows.y, rows.s, rows.X, feature_names(model))
    design = rows.design(adaptivity, model._design_options())
    refuse_without_cross_products(design)
    model._warn_never_observed(design)
    penalty = model._penalty(design)
    fit = solve_moments(rows, design, penalty) if model.solver == "auto" else None
    w, model.certificate_ = fit or _solve_factor(rows, design, penalty, model.solver)
    model.design_ = design
    model.coefficients_ = w
    model.target_range_ = rows.target_range
    return model


def _solve_factor(rows: ExpectedRows, design: Design, penalty: Penalty, solver: str) -> Fit:
    """The fit from a factor R'R of the moments: by cvxpy, or the one of minimum norm if there is no penalty.

    The factor is rounded, so the bound holds up to rounding only.
    """
    start, program = clock(), UnitProgram.of(design, penalty, Squared(), float(np.abs(rows.y).max()))
    scaled, stated = program.design, program.penalty
    columns = rows.columns(scaled, program.unit)
    moments = rows.moments(columns)
    quadratic, k = eliminate(moments, scaled.free, columns.shift), ~scaled.free
    values, vectors = np.linalg.eigh(moments.matrix / moments.S)
    R = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    risk = EmpiricalRisk(np.ascontiguousarray(R[:, :-1]), R[:, -1].copy(), np.ones(len(R)), Squared())
    if stated.is_positive:
        v = np.where(program.overwhelmed, 0.0, solve_stated(scaled, risk, stated, solver)[0])
    else:
        v = np.zeros(len(k))
        v[k] = np.linalg.pinv(quadratic.H, hermitian=True) @ quadratic.b
        v[scaled.free] = quadratic.shifted_free_coefficients(v[k])
    proof = prove(Rows.of(risk), stated.l1, stated.l2, v)
    tolerance = gap_tolerance(proof.objective, quadratic.rho)
    engine = ("admiss engine", __version__, start)
    certificate = certify(proof.objective, proof.bound, tolerance, ROUNDING, *engine, rigorous=False)
    w = v.copy()
    w[scaled.free] += columns.shift.y
    return program.restored(w), certificate.in_units(program.factor, program.unit)


def expected_folds(rows: FoldedRows, adaptivity: Any, options: GridOptions, law: Deletions) -> ClassFolds:
    """The folds of one class for the squared loss, with further deletions in training and in held-out rows."""
    return training_folds(ExpectedRows(rows.X, rows.targets[0], rows.s, law), rows.splits, adaptivity, options)
