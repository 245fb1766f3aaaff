"""Fits and searches of adaptive regression under further deletions, without sampling.

The expected risk  (1/S) sum_i s_i [ keep (y_i - a_i'w)^2 + (1 - keep) E (y_i - a(x_i, m_i v D)'w)^2 ]  is a quadratic,
whose sums are below; the penalty has the expected counts n_k. Paths and selection are those of every other fit of the
squared loss, and held-out rows have further deletions as well.

The certificate is that of the expected program, from a factor R'R of its sums  (G, c; c', r) / S: p + 1 rows in place
of all deletions of all rows. These sums are rounded, so its bound holds up to rounding only.

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

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from admiss._version import __version__
from admiss.adaptivity import Adaptivity, Affine, AffineIntercept, Polynomial, Static
from admiss.augmentation.deletions import Deletions
from admiss.estimator.cv import FoldedRows
from admiss.estimator.notices import warn_never_observed
from admiss.estimator.scaling import centre_of, observed_moments, observed_scale, power_of_two
from admiss.estimator.validation import (
    feature_names,
    read_features,
    read_regression_target,
    read_weights,
    refuse_extremes,
)
from admiss.linear.cv import AUTO_CLASSES, AdaptiveRegressorCV, few_affine_columns
from admiss.linear.design import MAX_COLUMNS, Design, far_from_origin
from admiss.linear.estimators import AdaptiveRegressor
from admiss.linear.fit import STEPS
from admiss.linear.folds import class_folds, of_rows, squared_fold
from admiss.linear.grid_paths import ClassFolds, GridOptions
from admiss.linear.moments import Moments, Shift, eliminate, error_by_moments, squared_path
from admiss.linear.penalty import OVERWHELMING, Penalty, lambdas_to_one, penalty_weights
from admiss.linear.stated_program import ACCEPTED, Fit, solve_stated
from admiss.patterns import PatternTable
from formulations.arrays import BoolArray, FloatArray
from formulations.certificate import ROUNDING, certify, clock
from formulations.erm.dual_bound import Rows, gap_tolerance, prove
from formulations.erm.risk import EmpiricalRisk
from formulations.losses import Squared

# Rows whose atoms are held at once.
BLOCK = 4096


def expected_design(
    X: FloatArray,
    s: FloatArray,
    adaptivity: Adaptivity,
    law: Deletions,
    *,
    center: bool,
    scale: bool,
    fit_intercept: bool,
) -> Design:
    """The design of a class of monomials on rows with further deletions; see ``admiss.linear.design.fit_design``."""
    features = np.flatnonzero(~np.isnan(X).all(axis=0))
    part, missable = X[:, features], np.ones(len(features), dtype=bool)
    mean, deviation, size, _ = observed_moments(part, s)
    spread, is_constant = observed_scale(deviation, size)
    centre = centre_of(mean, deviation) if center and fit_intercept else np.zeros(len(features))
    fitted = adaptivity.fit(part, missable[None, :])
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
        scale=spread if scale else np.ones(len(features)),
        patterns=PatternTable.of_missing(part, s),
        pairs=pairs,
        position=np.arange(len(pairs)),
        counts=np.empty(len(pairs)),
        factors=np.ones(len(pairs)),
        free=(pairs[:, 0] == 0) & ~adaptive,
        adaptive=adaptive,
        n_basis=len(_sets(fitted)),
    )
    counts = _expectation(design) @ (law.kept(_atoms(design).sum(axis=1)) * _observed_weights(design, part, s))
    zero = np.append(False, is_constant & (mean == centre))[pairs[:, 0]]
    keep = ~zero & (counts > 0) & (fit_intercept | ~design.free)
    kept = {name: getattr(design, name)[keep] for name in ("pairs", "position", "factors", "free", "adaptive")}
    return Design(**{**vars(design), **kept, "counts": counts[keep]})


def expected_moments(
    design: Design, X: FloatArray, y: FloatArray, s: FloatArray, law: Deletions, shift: Shift
) -> Moments:
    """The expected moments of the columns of an expected design on rows of weights ``s``; only y is shifted."""
    whole = _whole(design)
    p = len(whole.pairs)
    G, c, a = np.zeros((p, p)), np.zeros(p), np.zeros(p)
    for start in range(0, len(X), BLOCK):
        rows = slice(start, start + BLOCK)
        Z, M = whole.split(X[rows])
        B = _products(whole, np.where(M, 0.0, Z) / whole.scale, M)
        weighted = s[rows, None] * B
        G += B.T @ weighted
        c += weighted.T @ (y[rows] - shift.y)
        a += weighted.sum(axis=0)
    sets = _atoms(whole).astype(float)
    sizes = sets.sum(axis=1)
    union = sizes[:, None] + sizes - sets @ sets.T
    L, single = _expectation(whole)[design.position], law.kept(sizes)
    expected = L @ (L @ (law.kept(union) * G)).T
    t = y - shift.y
    return Moments(float(s.sum()), expected, L @ (single * c), float(s @ t**2), L @ (single * a))


def target_shift(design: Design, y: FloatArray, s: FloatArray) -> Shift:
    """The mean of y is subtracted if there is an intercept; columns are centred already."""
    shape = (int(design.free.sum()), len(design.pairs))
    return Shift(sp.csr_array(shape), float(np.average(y, weights=s)) if shape[0] else 0.0)


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
