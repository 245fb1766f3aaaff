"""Cross-validated errors of one adaptivity class over a grid of penalties.

For every fold the model is fitted on the other rows along a path of lambda, for each pair (alpha, c) of l1_ratio and
adaptive penalty, and its loss on the held-out rows is added up. Everything that a fit learns (the basis, the scale of
the features, the counts n_k) is learned on the training rows of the fold; where the basis comes out the same as on all
rows, which is the rule, the sufficient statistics of the fold are the total minus the held-out ones.

The lambdas are geometric, from the smallest at which all penalised coefficients are 0 on all rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity import Adaptivity
from admiss.estimator.folds import Split
from admiss.linear.design import Design, fit_design
from admiss.linear.engine import MAX_COLUMNS, MAX_OFFSET
from admiss.linear.fit import CERTAIN, one_class_cells, separable
from admiss.linear.moments import Moments, Quadratic, Shift, eliminate, linear_term, moments_of, shift_of
from admiss.linear.penalty import penalty_weights
from formulations.arrays import FloatArray, IntArray
from formulations.erm.logistic_path import logistic_path
from formulations.erm.quadratic_path import quadratic_path
from formulations.erm.risk import EmpiricalRisk, centred
from formulations.losses import Logistic

# alpha below this is taken as this where the largest lambda is computed: ridge has none.
SMALLEST_ALPHA = 1e-3
# The conditions of a logistic fit in a path hold to this share of the size of their column.
PATH_TOLERANCE = 5e-6
# Beyond this violation a fit in a path does not count.
UNFINISHED = 1e-3
# Lambdas between two looks at the error, if a path may stop early.
CHUNK = 10

Fit = Callable[[int, float, FloatArray, Any], tuple[FloatArray, FloatArray, Any]]
Weights = list[tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class GridOptions:
    """What is crossed with every adaptivity class, and how."""

    l1_ratios: Sequence[float]
    adaptive_penalties: Sequence[float]
    n_lambdas: int
    eps: float | None
    penalty_weights: str
    scale: bool
    fit_intercept: bool
    stop_early: bool


@dataclass(frozen=True)
class ClassFolds:
    """The folds of one adaptivity class, ready for paths.

    Attributes
    ----------
    n_columns : int
        Columns of its design on all rows.
    largest : array of shape (n_penalties,)
        For each adaptive penalty alpha times the smallest lambda at which all penalised coefficients are 0.
    eps : float
        Smallest lambda as a share of the largest.
    fit : list of callables
        For each fold a function of (adaptive penalty index, alpha, lambdas, state) that returns, for each lambda, the
        summed loss on the held-out rows and the violation of the optimality conditions, and a state from which the path
        can go on.
    weight : float
        Weight of all held-out rows.
    """

    n_columns: int
    largest: FloatArray
    eps: float
    fit: list[Fit]
    weight: float


def path_errors(
    folds: ClassFolds, penalty: int, alpha: float, options: GridOptions
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lambdas, the held-out loss by fold and lambda (NaN where the path was stopped), and the largest violations."""
    largest = folds.largest[penalty] / max(alpha, SMALLEST_ALPHA)
    lambdas = np.geomspace(largest, folds.eps * largest, options.n_lambdas)
    errors, violations = np.full((2, len(folds.fit), options.n_lambdas), np.nan)
    states: list[Any] = [None] * len(folds.fit)
    size = CHUNK if options.stop_early else options.n_lambdas
    for start in range(0, options.n_lambdas, size):
        part = slice(start, start + size)
        for f, fit in enumerate(folds.fit):
            errors[f, part], violations[f, part], states[f] = fit(penalty, alpha, lambdas[part], states[f])
        total = errors[:, : part.stop].sum(axis=0)
        best = int(total.argmin())
        # clearly past the minimum: by more than a tenth, for the whole last chunk
        if options.stop_early and best < start and total[part].min() > 1.1 * total[best]:
            break
    # a fit that does not meet its conditions is no fit
    errors[violations > UNFINISHED] = np.inf
    return lambdas, errors, violations.max(axis=0)


def _narrow_design(X: FloatArray, s: FloatArray, adaptivity: Adaptivity, options: GridOptions) -> Design:
    """The design of all rows, if the engine can take it."""
    design = fit_design(X, s, adaptivity, scale=options.scale, fit_intercept=options.fit_intercept)
    if len(design.pairs) > MAX_COLUMNS:
        raise ValueError(
            f"{adaptivity!r} has {len(design.pairs):,} columns, and fast paths go up to {MAX_COLUMNS:,}: "
            "leave it out, or search with scikit-learn's GridSearchCV."
        )
    far = np.flatnonzero(np.abs(design.mean) > MAX_OFFSET * design.spread)
    if len(far):
        listed = ", ".join(str(j) for j in design.features[far][:5])
        raise ValueError(
            f"The features in columns {listed} of X lie more than {MAX_OFFSET:,.0f} standard deviations away from 0: "
            "centre them first, for instance with scikit-learn's StandardScaler."
        )
    return design


def _fold_design(design: Design, X: FloatArray, s: FloatArray, options: GridOptions) -> tuple[Design, bool]:
    """The design of the training rows of a fold, and whether its columns are those of ``design`` in other units."""
    own = fit_design(X, s, design.adaptivity, scale=options.scale, fit_intercept=options.fit_intercept)
    same = (
        np.array_equal(own.features, design.features)
        and np.array_equal(own.missable, design.missable)
        and _same_state(own.adaptivity, design.adaptivity)
        and set(own.position) <= set(design.position)
    )
    return own, same


def _same_state(a: Adaptivity, b: Adaptivity) -> bool:
    first, second = vars(a), vars(b)
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def squared_folds(
    X: FloatArray, y: FloatArray, s: FloatArray, adaptivity: Adaptivity, splits: Sequence[Split], options: GridOptions
) -> ClassFolds:
    """The folds of one class for the squared loss."""
    design = _narrow_design(X, s, adaptivity, options)
    shift = shift_of(design, X, y, s)
    total: Moments | None = None
    fits, weight = [], 0.0
    for train, test in splits:
        own, same = _fold_design(design, X[train], s[train], options)
        complement = same and np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(X)))
        if complement:
            if total is None:
                total = moments_of(design, X, y, s, shift)
            held = moments_of(design, X[test], y[test], s[test], shift)
            place = np.flatnonzero(np.isin(design.position, own.position))
            factor = design.column_scale[place] / own.column_scale
            quadratic = eliminate((total - held).selected(place), own.free).in_units(factor[~own.free])
            own_shift = Shift(shift.C[:, place] @ sp.diags_array(factor), shift.y)
        else:
            own_shift = shift_of(own, X[train], y[train], s[train])
            quadratic = eliminate(moments_of(own, X[train], y[train], s[train], own_shift), own.free)
        weights = _weights_by_penalty(own, X[train], s[train], options)
        error = _held_out_error(own, own_shift, quadratic, X[test], y[test], s[test])
        fits.append(_squared_fit(quadratic, weights, error))
        weight += float(s[test].sum())
    b = linear_term(moments_of(design, X, y, s, shift) if total is None else total, design.free)
    largest = _largest(np.abs(b), _weights_by_penalty(design, X, s, options))
    return ClassFolds(len(design.pairs), largest, _eps(options, len(X), design), fits, weight)


def _weights_by_penalty(design: Design, X: FloatArray, s: FloatArray, options: GridOptions) -> Weights:
    """u1 and u2 of the penalised columns, for each adaptive penalty."""
    k = ~design.free
    weights = [
        penalty_weights(design, X, s, kind=options.penalty_weights, adaptive_penalty=c, standardise=options.scale)
        for c in options.adaptive_penalties
    ]
    return [(u1[k], u2[k]) for u1, u2 in weights]


def _largest(g: FloatArray, weights: Weights) -> FloatArray:
    """max_k |g_k| / u1_k for each adaptive penalty; 1 where no column is penalised."""
    found = [float(np.max(g[u1 > 0] / u1[u1 > 0], initial=0.0)) for u1, _ in weights]
    return np.array([value if value > 0 else 1.0 for value in found])


def _eps(options: GridOptions, n: int, design: Design) -> float:
    if options.eps is not None:
        return options.eps
    return 1e-2 if n < len(design.pairs) else 1e-4


def _held_out_error(
    design: Design, shift: Shift, quadratic: Quadratic, X: FloatArray, y: FloatArray, s: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """The summed squared error on held-out rows as a function of rows of penalised coefficients."""
    f, k = np.flatnonzero(design.free), np.flatnonzero(~design.free)

    def coefficients(W: FloatArray) -> tuple[IntArray, FloatArray]:
        """The columns in use, and their coefficients in shifted columns."""
        used = np.flatnonzero(W.any(axis=0))
        part = W[:, used]
        return np.concatenate([k[used], f]), np.hstack([part, quadratic.free_coefficients(part, used)])

    if len(X) > len(design.pairs):
        moments = moments_of(design, X, y, s, shift)

        def by_moments(W: FloatArray) -> FloatArray:
            columns, full = coefficients(W)
            order = np.argsort(columns)
            return moments.selected(columns[order]).squared_errors(full[:, order])

        return by_moments

    A = design.whole(X)
    A = sp.csc_array(A) if sp.issparse(A) else np.asfortranarray(A)
    C = sp.csc_array(shift.C)

    def by_rows(W: FloatArray) -> FloatArray:
        columns, full = coefficients(W)
        if len(f):
            full[:, -len(f) :] += shift.y * quadratic.one - (C[:, columns] @ full.T).T
        residuals = y[:, None] - A[:, columns] @ full.T
        return np.asarray(s @ residuals**2)

    return by_rows


def _squared_fit(quadratic: Quadratic, weights: Weights, error: Callable[[FloatArray], FloatArray]) -> Fit:
    def fit(penalty: int, alpha: float, lambdas: FloatArray, state: Any) -> tuple[FloatArray, FloatArray, Any]:
        u1, u2 = weights[penalty]
        path = quadratic_path(quadratic.H, quadratic.b, alpha * u1, (1.0 - alpha) * u2, lambdas, state)
        return error(path.w), path.violation, path.w[-1]

    return fit


def logistic_folds(
    X: FloatArray,
    targets: list[FloatArray],
    s: FloatArray,
    adaptivity: Adaptivity,
    splits: Sequence[Split],
    options: GridOptions,
) -> ClassFolds:
    """The folds of one class for the logistic loss, summed over targets (one against the rest)."""
    design = _narrow_design(X, s, adaptivity, options)
    fits, weight = [], 0.0
    for train, test in splits:
        own = fit_design(X[train], s[train], adaptivity, scale=options.scale, fit_intercept=options.fit_intercept)
        weights = _weights_by_penalty(own, X[train], s[train], options)
        A, A_test = _dense(own, X[train]), _dense(own, X[test])
        problems = [_LogisticTarget.of(own, A, A_test, y[train], y[test], s[train], s[test]) for y in targets]
        fits.append(_logistic_fit(problems, weights))
        weight += float(s[test].sum())
    q = s / s.sum()
    gradients = []
    A = _dense(design, X)
    for y in targets:
        risk = centred(EmpiricalRisk(A, y, q, Logistic()), design.free).risk
        root, E = np.sqrt(q), A[:, design.free]
        mean = E @ np.linalg.lstsq(root[:, None] * E, root * y, rcond=None)[0]
        # at the best free coefficients the derivative of the loss is (mean of y - y) / 2
        gradients.append(np.abs(risk.A[:, ~design.free].T @ (q * (mean - y) / 2.0)))
    largest = _largest(np.max(gradients, axis=0), _weights_by_penalty(design, X, s, options))
    return ClassFolds(len(design.pairs), largest, _eps(options, len(X), design), fits, weight)


def _dense(design: Design, X: FloatArray) -> FloatArray:
    A = design.whole(X)
    return A.toarray() if sp.issparse(A) else A


@dataclass(frozen=True)
class _LogisticTarget:
    """Rows of a fold for one target: centred training columns, and held-out rows in the same coordinates."""

    A: FloatArray
    E: FloatArray
    y: FloatArray
    q: FloatArray
    A_test: FloatArray
    certain: FloatArray
    E_test: FloatArray
    y_test: FloatArray
    s_test: FloatArray

    @classmethod
    def of(
        cls,
        design: Design,
        A: FloatArray,
        A_test: FloatArray,
        y: FloatArray,
        y_test: FloatArray,
        s: FloatArray,
        s_test: FloatArray,
    ) -> "_LogisticTarget":
        certain, settled = one_class_cells(design, A, y)
        rest = ~settled
        q = s / s.sum()
        projected = centred(EmpiricalRisk(A[rest], y[rest], q[rest], Logistic()), design.free)
        k, f = ~design.free, design.free & (A[rest] != 0).any(axis=0)
        columns = projected.risk.A
        test = A_test - A_test[:, design.free] @ projected.C
        return cls(
            columns[:, k],
            columns[:, f],
            y[rest],
            q[rest],
            test[:, k],
            CERTAIN * (A_test @ certain),
            test[:, f],
            y_test,
            s_test,
        )


def _logistic_fit(problems: list[_LogisticTarget], weights: Weights) -> Fit:
    loss = Logistic()

    separated = [
        any(separable(problem.A[:, (u1 == 0) & (u2 == 0)], problem.E, problem.y) for problem in problems)
        for u1, u2 in weights
    ]

    def fit(penalty: int, alpha: float, lambdas: FloatArray, state: Any) -> tuple[FloatArray, FloatArray, Any]:
        u1, u2 = weights[penalty]
        errors, violations = np.zeros((2, len(lambdas)))
        states: list[Any] = []
        if separated[penalty]:
            return errors + np.inf, violations, states
        for t, problem in enumerate(problems):
            start = None if state is None else state[t]
            z = np.broadcast_to(problem.certain[:, None], (len(problem.y_test), len(lambdas)))
            if len(problem.y):
                path = logistic_path(
                    problem.A, problem.E, problem.y, problem.q, alpha * u1, (1.0 - alpha) * u2, lambdas,
                    PATH_TOLERANCE, start,
                )  # fmt: skip
                violations = np.maximum(violations, path.violation)
                z = z + problem.A_test @ path.w.T + problem.E_test @ path.free.T
                states.append((path.w[-1], path.free[-1]))
            else:
                states.append(None)
            errors += problem.s_test @ loss.value(problem.y_test[:, None], z)
        return errors, violations, states

    return fit
