"""Fits and searches of adaptive regression under further deletions, without sampling.

The expected risk  (1/S) sum_i s_i [ keep (y_i - a_i'w)^2 + (1 - keep) E (y_i - a(x_i, m_i v D)'w)^2 ]  is a quadratic,
whose sums are in :mod:`admiss.augmentation.expected_moments`; the penalty has the expected counts n_k. Paths and
selection are those of every other fit of the squared loss, and held-out rows have further deletions as well.

The certificate is that of the expected program, from a factor R'R of its sums  (G, c; c', r) / S: p + 1 rows in place
of all deletions of all rows. These sums are rounded, so its bound holds up to rounding only.
"""

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from admiss._version import __version__
from admiss.adaptivity import Affine, AffineIntercept, Polynomial, Static, resolve_adaptivity
from admiss.augmentation.deletions import Deletions
from admiss.augmentation.expected_moments import expected_design, expected_moments, target_shift
from admiss.estimator.cv import FoldedRows
from admiss.estimator.notices import warn_never_observed
from admiss.estimator.scaling import power_of_two
from admiss.estimator.validation import (
    feature_names,
    read_features,
    read_regression_target,
    read_weights,
    refuse_extremes,
)
from admiss.linear.cv import AUTO_CLASSES, AdaptiveRegressorCV, few_affine_columns
from admiss.linear.design import Design
from admiss.linear.estimators import AdaptiveRegressor
from admiss.linear.fit import STEPS
from admiss.linear.folds import class_folds, of_rows, squared_fold
from admiss.linear.grid_paths import ClassFolds, GridOptions
from admiss.linear.moments import Moments, Shift, eliminate, error_by_moments, far_from_origin, squared_path
from admiss.linear.penalty import OVERWHELMING, Penalty, lambdas_to_one, penalty_weights
from admiss.linear.stated_program import ACCEPTED, Fit, solve_stated
from formulations.arrays import FloatArray
from formulations.certificate import ROUNDING, certify, clock
from formulations.erm.dual_bound import Rows, gap_tolerance, prove
from formulations.erm.risk import EmpiricalRisk
from formulations.losses import Squared, resolve_loss

# Classes whose columns are sums of products of o; subclasses may have others.
MONOMIALS = (Static, AffineIntercept, Affine, Polynomial)


def is_exact(estimator: Any) -> bool:
    """Whether the expectation over deletions is computed exactly for an estimator."""
    if type(estimator) is AdaptiveRegressor:
        classes, loss = [resolve_adaptivity(estimator.adaptivity)], resolve_loss(estimator.loss)
    elif type(estimator) is AdaptiveRegressorCV:
        classes, finite, _ = estimator._read_grid()
        if finite:
            return False
        loss = Squared()
    else:
        return False
    plain = estimator.penalty_weights == "count" and estimator.on_unseen_pattern == "nearest"
    return plain and isinstance(loss, Squared) and all(type(each) in MONOMIALS for each in classes)


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
    X, y, s, names = X[s > 0], y[s > 0], s[s > 0], feature_names(model)
    refuse_extremes(y, s, X, names)
    options = {name: bool(getattr(model, name)) for name in ("center", "scale", "fit_intercept")}
    design = _checked(expected_design(X, s, adaptivity, law, **options))
    warn_never_observed(names, sorted(set(range(len(names))) - set(design.features.tolist())))
    u1, u2 = penalty_weights(
        design, X, s, kind="count", adaptive_penalty=model.adaptive_penalty, standardise=model.scale
    )
    lam, alpha = float(model.lam), float(model.l1_ratio)
    penalty = Penalty(alpha * lam, (1.0 - alpha) * lam, u1, u2)
    w, model.certificate_ = _solve(design, X, y, s, law, penalty, model.solver)
    model.design_, model.coefficients_ = design, w / design.column_scale
    model.target_range_ = float(y.min()), float(y.max())
    return model


def _checked(design: Design) -> Design:
    """The design, if its cross products are accurate enough."""
    far = far_from_origin(design)
    if len(far):
        listed = ", ".join(str(j) for j in design.features[far][:5])
        raise ValueError(
            f"The features in columns {listed} of X lie far from 0 for their spread: use center=True, or a number of "
            "copies."
        )
    return design


def _solve(
    design: Design, X: FloatArray, y: FloatArray, s: FloatArray, law: Deletions, penalty: Penalty, solver: str
) -> Fit:
    """The fit in columns and targets of unit size, as in :mod:`admiss.linear.fit`."""
    start, unit = clock(), float(power_of_two(np.abs(y).max()))
    y, s, (scaled, change) = y / unit, s / power_of_two(s.max()), design.in_powers_of_two()
    shift = target_shift(scaled, y, s)
    moments = expected_moments(scaled, X, y, s, law, shift)
    stated = penalty.for_target(unit, unit**2).in_units(change).at_most(OVERWHELMING)
    v, null = _shifted_coefficients(scaled, moments, shift, stated, solver)
    rows = Rows.of(_compressed(moments))
    proof = prove(rows, stated.l1, stated.l2, v)
    tolerance = gap_tolerance(proof.objective, null)
    engine = ("admiss engine", __version__, start)
    certificate = certify(proof.objective, proof.bound, tolerance, ROUNDING, *engine, rigorous=False)
    w = v.copy()
    w[scaled.free] += shift.y
    return w / change * unit, certificate.in_units(unit**2, unit)


def _shifted_coefficients(
    design: Design, moments: Moments, shift: Shift, penalty: Penalty, solver: str
) -> tuple[FloatArray, float]:
    """Coefficients for the shifted target, and the risk of the free columns alone."""
    quadratic, k = eliminate(moments, design.free, shift), ~design.free
    v, l1 = np.zeros(len(design.pairs)), penalty.l1[k]
    if not np.any(l1) and not np.any(penalty.l2[k]):
        v[k] = np.linalg.pinv(quadratic.H, hermitian=True) @ quadratic.b
    elif solver == "auto":
        path, _ = squared_path(quadratic, penalty, lambdas_to_one(np.abs(quadratic.b), l1, STEPS))
        v[k] = path.w[-1]
        if not path.violation[-1] <= ACCEPTED:
            solver = "cvxpy"
    if solver != "auto":
        v = solve_stated(design, _compressed(moments), penalty, solver)[0]
    else:
        v[design.free] = quadratic.shifted_free_coefficients(v[k])
    return penalty.without_overwhelmed(v), quadratic.rho


def _compressed(moments: Moments) -> EmpiricalRisk:
    """The squared risk with these moments, in p + 1 rows."""
    sums = np.block([[moments.G, moments.c[:, None]], [moments.c, moments.r]]) / moments.S
    values, vectors = np.linalg.eigh(sums)
    R = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return EmpiricalRisk(np.ascontiguousarray(R[:, :-1]), R[:, -1].copy(), np.ones(len(R)), Squared())


def expected_folds(rows: FoldedRows, adaptivity: Any, options: GridOptions, law: Deletions) -> ClassFolds:
    """The folds of one class for the squared loss, with further deletions in training and in held-out rows."""
    X, (y,), s = rows.X, rows.targets, rows.s
    unit = float(power_of_two(np.abs(y).max()))
    y = y / unit
    design = _design(X, s, adaptivity, options, law)
    paths = []
    for train, test in rows.splits:
        own = _design(X[train], s[train], adaptivity, options, law)
        shift = target_shift(own, y[train], s[train])
        quadratic = eliminate(expected_moments(own, X[train], y[train], s[train], law, shift), own.free, shift)
        error = error_by_moments(expected_moments(own, X[test], y[test], s[test], law, shift), quadratic)
        paths.append(squared_fold(quadratic, options.weights(own, X[train], s[train]), error, unit))
    shift = target_shift(design, y, s)
    whole = eliminate(expected_moments(design, X, y, s, law, shift), design.free, shift)
    slope = unit * whole.b, np.diag(whole.H)
    return class_folds(adaptivity, design, *of_rows(design, rows, options), *slope, paths, options, exact=True)


def _design(X: FloatArray, s: FloatArray, adaptivity: Any, options: GridOptions, law: Deletions) -> Design:
    parts = {name: getattr(options, name) for name in ("center", "scale", "fit_intercept")}
    design = _checked(expected_design(X, s, adaptivity, law, **parts))
    return design if options.scale else design.in_powers_of_two()[0]
