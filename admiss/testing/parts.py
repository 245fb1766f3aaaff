"""Checks of an adaptivity class without a model.

The object: its parameters, fit, basis, mask, cells and names. The ingredients of the program: counts, columns and
structure.
"""

import copy
import inspect
import pickle
import sys
from dataclasses import fields, is_dataclass
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from admiss.adaptivity import Adaptivity
from admiss.bounds.counts import all_patterns, dense
from admiss.patterns import PatternTable
from admiss.testing.rows import (
    DRAWS_AT_RANDOM,
    PATTERN_ROWS,
    D,
    by_name,
    contract_rows,
    fitted_class,
    fitted_with_size,
    replaces_columns,
    require,
)
from formulations.arrays import FloatArray


def check_parameters(adaptivity: Adaptivity) -> None:
    """The constructor stores its parameters unchanged, so that get_params, clone and repr work."""
    kind, parameters = type(adaptivity), adaptivity.get_params(deep=False)
    defaults = {name: p.default for name, p in inspect.signature(kind).parameters.items()}
    if inspect.Parameter.empty not in defaults.values():
        _require_unchanged(kind().get_params(deep=False), defaults)
    for built in (kind(**parameters), clone(adaptivity)):
        _require_unchanged(built.get_params(deep=False), parameters)
    # The given object may have changed its parameters already, which an opaque object reveals.
    for name in parameters:
        marker = object()
        try:
            unchanged = getattr(kind(**{**parameters, name: marker}), name) is marker
        except Exception:
            unchanged = False
        require(unchanged, _changed(name))
    require(kind.__name__ in repr(adaptivity), "its repr does not name the class: leave repr to the base class")


def _require_unchanged(stored: dict[str, Any], given: dict[str, Any]) -> None:
    for name, value in given.items():
        require(name in stored and _equal(stored[name], value), _changed(name))


def _changed(name: str) -> str:
    return f"the parameter {name} is not stored unchanged: only assign it in __init__, and check it in fit"


def _equal(a: Any, b: Any) -> bool:
    """Equality of arrays and containers; other objects are compared by the columns that they lead to."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if sp.issparse(a):
        return a.shape == b.shape and np.array_equal(dense(a), dense(b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, BaseEstimator):
        return _equal(a.get_params(deep=False), b.get_params(deep=False))
    if is_dataclass(a):
        return all(_equal(getattr(a, field.name), getattr(b, field.name)) for field in fields(a))
    if isinstance(a, Number | str | bytes):
        return bool(a == b) or bool(a != a and b != b)  # NaN is not equal to itself
    return True


def check_fit(adaptivity: Adaptivity) -> None:
    """Fit returns a fitted copy that depends on the given rows only, and changes neither the object nor the rows."""
    rows = contract_rows()
    X = rows.X.copy()
    M = rows.M.copy()
    state = dict(vars(adaptivity))
    contents = copy.deepcopy(state)
    fitted = adaptivity.fit(X, M)
    require(type(fitted) is type(adaptivity), f"fit returns {fitted!r}: return a fitted copy, copy.copy(self)")
    unchanged = vars(adaptivity).keys() == state.keys() and all(
        vars(adaptivity)[name] is value and _equal(value, contents[name]) for name, value in state.items()
    )
    wrong = "fit changes the object itself: start with fitted = copy.copy(self) and set attributes of fitted"
    require(fitted is not adaptivity and unchanged, wrong)
    same = np.array_equal(X, rows.X, equal_nan=True) and np.array_equal(M, rows.M)
    require(same, "fit modifies the given rows: work on a copy")
    again = adaptivity.fit(rows.X, rows.M)
    for name in sorted(vars(fitted).keys() - state.keys()):
        _require_learned(name, vars(fitted)[name], vars(again).get(name))
    require(_equal(vars(again), vars(fitted)), f"two fits to the same rows differ: {DRAWS_AT_RANDOM}")
    few = rows.X[: len(rows.X) // 2]
    same = _equal(vars(fitted_class(fitted, few)), vars(fitted_class(adaptivity, few)))
    require(same, "a second fit depends on the first: fit must learn from the given rows only")


def _require_learned(name: str, value: Any, again: Any) -> None:
    """A learned attribute has a name that ends in _, can be pickled, and can be compared as in folds."""
    stored = f"fit stores {name} as {type(value).__name__}"
    require(name.endswith("_"), f"{stored}: give learned attributes names that end in _")
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:
        require(False, f"{stored}, which cannot be pickled: store numpy arrays, or objects that can be")
    try:
        np.array_equal(value, value)
        np.array_equal(value, again)
    except Exception:
        wrong = f"{stored}, whose == is not True or False: store numpy arrays, or objects that are equal to themselves"
        require(False, wrong)


def check_basis(adaptivity: Adaptivity) -> None:
    """The basis has a row of finite numbers for each pattern, which depends on this pattern only."""
    rows = contract_rows()
    fitted = fitted_class(adaptivity, rows.X)
    patterns = rows.M.astype(float)
    copied = patterns.copy()
    phi = fitted.basis(copied)
    require(np.array_equal(copied, patterns), "basis modifies the given patterns: work on a copy")
    numbers = isinstance(phi, np.ndarray) or (sp.issparse(phi) and phi.format == "csr")
    wrong = f"basis(M) is a {type(phi).__name__}: return a numpy array of numbers, or a csr_array"
    require(numbers and phi.dtype.kind in "biuf", wrong)
    two = np.ndim(phi) == 2 and phi.shape[0] == len(patterns)
    require(two, f"basis(M) has shape {np.shape(phi)} for {len(patterns)} patterns: return one row for each pattern")
    phi = dense(phi)
    require(phi.shape[1] > 0, "basis(M) has no columns: return at least one basis function, such as 1")
    wrong = "basis(M) has NaN or infinity on the training patterns: define it for every pattern"
    require(np.isfinite(phi).all(), wrong)
    fitted_class(adaptivity, rows.X[::2])
    same = np.array_equal(dense(fitted.basis(patterns)), phi)
    require(same, "a fit to other rows changes the basis of this one: store what fit learns in attributes of the copy")
    alone = "a row of the basis may depend only on its own pattern and on what fit has learned"
    parts = {
        "rows of M are permuted": np.random.RandomState(1).permutation(len(patterns)),
        "rows of M are repeated": np.repeat(np.arange(len(patterns)), 2),
        "M has a single row": np.array([7]),
    }
    for when, part in parts.items():
        values = dense(fitted.basis(patterns[part]))
        same = values.shape == phi[part].shape and np.allclose(values, phi[part], rtol=1e-9, atol=1e-12)
        require(same, f"basis(M) gives other values if {when}: {alone}")


def check_mask(adaptivity: Adaptivity) -> None:
    """The mask is a bool array of shape (d + 1, K)."""
    fitted, K = fitted_with_size(adaptivity)
    mask = np.asarray(fitted.mask(D))
    require(
        mask.shape == (D + 1, K) and mask.dtype == bool,
        f"mask({D}) is an array of {mask.dtype} and shape {mask.shape}: return bool of shape {(D + 1, K)}, the "
        "intercept and the features by the basis functions",
    )
    require(mask.any(), "mask excludes every pair of feature and basis function: include at least one")


def check_cells(adaptivity: Adaptivity) -> None:
    """If cells is True, every pattern, seen or not, is in one cell, and the basis functions are their indicators."""
    if not adaptivity.cells:
        return
    rows = contract_rows()
    phi = dense(fitted_class(adaptivity, rows.X).basis(all_patterns(D)))
    within = phi[(phi != 0).any(axis=1)]
    indicators = len(within) and np.isin(within, (0.0, 1.0)).all() and (within.sum(axis=1) == 1).all()
    require(indicators, "cells is True, but the basis functions are not indicators of cells: set it to False")
    require(
        len(within) == len(phi),
        f"cells is True, but {len(phi) - len(within)} of {len(phi)} patterns are in no cell and have no prediction: "
        "assign an unseen pattern to the cell of the nearest one",
    )


def check_names(adaptivity: Adaptivity) -> None:
    """Every basis function has a unique name."""
    fitted, K = fitted_with_size(adaptivity)
    names = list(fitted.names(["a", "b", "c", "d"]))
    strings = all(isinstance(name, str) for name in names)
    wrong = f"names has {len(names)} names for {K} basis functions: return one string for each"
    require(strings and len(names) == K, wrong)
    require(len(set(names)) == K, "names gives two basis functions the same name: make names unique")


def check_counts(adaptivity: Adaptivity) -> None:
    """The counts are the total weights of the rows with x_j observed and phi_k(m) nonzero; factors are non-negative."""
    rows, s = contract_rows(), np.random.RandomState(2).uniform(0.5, 2.0, size=sum(PATTERN_ROWS.values()))
    fitted, K = fitted_with_size(adaptivity)
    table = PatternTable.of(rows.M, s)
    counts = np.asarray(fitted.counts(table.patterns, table.weights))
    require(counts.shape == (D + 1, K), f"counts has shape {counts.shape}: return {(D + 1, K)}, as for the mask")
    halves = [fitted.counts(table.patterns[part], table.weights[part]) for part in (slice(3), slice(3, None))]
    adds_up = np.isfinite(counts).all() and (counts >= 0).all() and np.allclose(halves[0] + halves[1], counts)
    require(adds_up, "counts of two sets of patterns do not add up to those of both: sum non-negative weights")
    if not replaces_columns(adaptivity):
        observed = np.column_stack([np.ones(len(s)), ~rows.M])
        expected = (s[:, None] * observed).T @ (dense(fitted.basis(rows.M.astype(float))) != 0)
        wrong = "counts is not the weight of rows with x_j observed and phi_k(m) nonzero: leave it to the base class"
        require(np.allclose(counts, expected), wrong)
    else:
        j, k = np.nonzero(fitted.mask(D))
        used = (dense(fitted.columns(rows.X, rows.M)) != 0).any(axis=0)
        wrong = "counts is 0 for a column that is nonzero on the training rows and would be dropped: count its rows"
        require((counts[j, k][used] > 0).all(), wrong)
    n_k = np.where(fitted.mask(D), counts, 0.0)
    factors = np.asarray(fitted.penalty_factors(n_k.copy()))
    wrong = f"penalty_factors is an array of shape {factors.shape}: return {(D + 1, K)} finite non-negative numbers"
    require(factors.shape == (D + 1, K) and np.all(np.isfinite(factors[n_k > 0]) & (factors[n_k > 0] >= 0)), wrong)
    twice = np.asarray(fitted.penalty_factors(2.0 * n_k))
    wrong = (
        "penalty_factors changes if every row is counted twice: let factors depend on shares of counts, not on sizes"
    )
    require(np.allclose(twice[n_k > 0], factors[n_k > 0]), wrong)


def check_columns(adaptivity: Adaptivity) -> None:
    """The columns are finite, one for each pair of the mask, and a row of them depends on its own row only."""
    rows = contract_rows()
    X, M = rows.X.copy(), rows.M.copy()
    fitted = fitted_class(adaptivity, rows.X)
    columns = dense(fitted.columns(X, M))
    shape = (len(X), int(np.sum(fitted.mask(D))))
    wrong = f"columns has shape {columns.shape}: return {shape}, one column for each pair of the mask"
    require(columns.shape == shape, wrong)
    same = np.array_equal(X, rows.X, equal_nan=True) and np.array_equal(M, rows.M)
    require(same, "columns modifies the given rows: work on a copy")
    require(np.isfinite(columns).all(), "columns has NaN or infinity: replace missing values by a number")
    _require_order(adaptivity, fitted, rows.X, columns)
    for part in (np.random.RandomState(3).permutation(len(X)), np.array([5])):
        values = dense(fitted.columns(X[part], M[part]))
        wrong = "columns of a row depend on the other rows: they may depend only on it and on what fit has learned"
        require(np.allclose(values, columns[part], rtol=1e-9, atol=1e-9), wrong)
    for start, wrong in (
        (adaptivity, f"two fits to the same rows give other columns: {DRAWS_AT_RANDOM}"),
        (fitted_class(adaptivity, X[::2]), "a second fit gives other columns: fit must learn from the given rows only"),
    ):
        again = dense(fitted_class(start, X).columns(X, M))
        require(np.allclose(again, columns, rtol=1e-9, atol=1e-9), wrong)
    if not replaces_columns(adaptivity):
        phi, Z = dense(fitted.basis(M.astype(float))), np.column_stack([np.ones(len(X)), np.nan_to_num(X)])
        expected = np.column_stack([Z[:, j] * phi[:, k] for j, k in np.argwhere(fitted.mask(D))])
        for storage in (sp.csr_array, np.asarray):
            other = copy.copy(fitted)
            other.basis = lambda M, storage=storage: storage(dense(fitted.basis(M)))  # type: ignore[method-assign, misc]
            other.mask = fitted.mask  # type: ignore[method-assign]
            wrong = f"columns are not x_j (1 - m_j) phi_k(m) with a basis as {storage.__name__}: return plain numbers"
            require(np.allclose(dense(other.columns(X, M)), expected, rtol=1e-12, atol=1e-12), wrong)


def _require_order(adaptivity: Adaptivity, fitted: Adaptivity, X: FloatArray, columns: FloatArray) -> None:
    """Each column is in the units of the feature of its pair, which reveals a wrong order; or free of units."""
    if not replaces_columns(adaptivity):
        require(adaptivity.linear_in_x, "linear_in_x is False, but columns are x_j (1 - m_j) phi_k(m): replace columns")
        return
    units = np.array([1.0, 2.0, 3.0, 5.0, 7.0])  # primes: no product of units is the unit of another feature
    names = ["the intercept", *(f"feature {j}" for j in range(D))]
    scaled = X * units[1:]
    after = dense(fitted_class(adaptivity, scaled).columns(scaled, np.isnan(X)))
    if not adaptivity.linear_in_x:
        wrong = "linear_in_x is False, but columns change with the units of features: make them free of units"
        require(np.allclose(after, columns, rtol=1e-9, atol=1e-9), wrong)
        return
    for index, (j, k) in enumerate(np.argwhere(fitted.mask(D))):
        used = np.abs(columns[:, index]) > 1e-9
        ratio = after[used, index] / columns[used, index]
        others = [i for i in range(D + 1) if i != j and len(ratio) and np.allclose(ratio, units[i], rtol=1e-6)]
        require(
            not others,
            f"column {index} belongs to {names[j]} and basis function {k}, but it is in the units of "
            f"{names[others[0] if others else 0]}: return the columns in the row-major order of the mask, the "
            "intercept first, each in the units of its feature",
        )


def check_hidden_values(adaptivity: Adaptivity) -> None:
    """The sign and the payload of a NaN do not matter to fit and columns."""
    rows = contract_rows()
    other = np.where(rows.M, -np.nan, rows.X)
    other.view(np.uint64)[rows.M] += 1234
    first, second = (dense(fitted_class(adaptivity, X).columns(X, rows.M)) for X in (rows.X, other))
    wrong = "columns or fit depend on the bits of a NaN: read M, and X only where M is False"
    require(np.array_equal(first, second), wrong)


def check_affine(adaptivity: Adaptivity) -> None:
    """At every pattern the columns are affine in the observed values, unless linear_at_patterns returns False."""
    if not adaptivity.linear_at_patterns():
        return
    rows = contract_rows()
    fitted = fitted_class(adaptivity, rows.X)
    rng = np.random.RandomState(4)
    a, b = rng.standard_normal((2, *rows.X.shape))
    points = [np.where(rows.M, np.nan, point) for point in (a, b, 3.0 * a - 2.0 * b)]
    at_a, at_b, beyond = (dense(fitted.columns(point, rows.M)) for point in points)
    require(
        np.allclose(3.0 * at_a - 2.0 * at_b, beyond, rtol=1e-7, atol=1e-7),
        "columns are not affine in x at a fixed pattern, so coef_at cannot describe them: make them affine, or let "
        "linear_at_patterns return False (if they are in the units of x) or set linear_in_x = False (if free of units)",
    )


def check_pickle(adaptivity: Adaptivity) -> None:
    """A fitted class can be pickled, and a clone has no learned attributes."""
    rows = contract_rows()
    fitted = fitted_class(adaptivity, rows.X)
    learned = sorted(vars(clone(fitted)).keys() - vars(clone(adaptivity)).keys())
    require(not learned, f"clone has the learned {', '.join(learned)}: do not set learned attributes in __init__")
    before, after = (dense(a.columns(rows.X, rows.M)) for a in (fitted, _through_pickle(fitted)))
    require(np.array_equal(before, after), "pickle changes its columns: store all that it needs in attributes")


def _through_pickle(adaptivity: Adaptivity) -> Adaptivity:
    """The object pickled and loaded; only its attributes if pickle cannot find the class (one inside a function)."""
    kind = type(adaptivity)
    if getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind:
        loaded: Adaptivity = pickle.loads(pickle.dumps(adaptivity))
        return loaded
    loaded = copy.copy(adaptivity)
    loaded.__dict__.update(pickle.loads(pickle.dumps(vars(adaptivity))))
    return loaded


def check_structure(adaptivity: Adaptivity) -> None:
    """A structure is a scalar convex penalty and a list of convex constraints that some W satisfies."""
    if type(adaptivity).structure is Adaptivity.structure:
        return
    import cvxpy as cp

    fitted, K = fitted_with_size(adaptivity)
    W = cp.Variable((D + 1, K))
    returned = fitted.structure(W)
    wrong = (
        f"structure returns a {type(returned).__name__}: return a penalty and a list of constraints, 0.0, [] for none"
    )
    require(isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], list), wrong)
    omega = cp.Constant(returned[0]) if isinstance(returned[0], Number) else returned[0]
    require(isinstance(omega, cp.Expression) and omega.size == 1, "the penalty of structure is not a scalar: sum it up")
    wrong = "the penalty of structure is not convex by the rules of cvxpy (DCP): build it from convex atoms"
    require(omega.is_convex(), wrong)
    wrong = "a constraint of structure is not convex by the rules of cvxpy (DCP): write it as convex <= concave"
    require(all(isinstance(c, cp.constraints.constraint.Constraint) and c.is_dcp() for c in returned[1]), wrong)
    mask = np.asarray(fitted.mask(D))
    if adaptivity.has_structure():
        outside = [cp.multiply(~mask, W) == 0] if not mask.all() else []
        status, _ = _solved(cp.Minimize(omega + cp.sum_squares(W)), [*returned[1], *outside])
        wrong = "no W satisfies the constraints of structure, with 0 outside of the mask: relax them"
        require("infeasible" not in status, wrong)
    else:
        W_0 = np.where(mask, np.random.RandomState(8).standard_normal(mask.shape), 0.0)
        status, penalty = _solved(cp.Minimize(omega), [*returned[1], W == W_0])
        require(
            "infeasible" not in status and abs(penalty) <= 1e-6,
            "has_structure is False, but structure has a penalty or constraints, which would never be applied: leave "
            "has_structure to the base class, or return False only if there are none",
        )


def _solved(objective: Any, constraints: list[Any]) -> tuple[str, float]:
    """Status and value of a small program."""
    import cvxpy as cp

    problem = cp.Problem(objective, constraints)
    value = problem.solve(solver="CLARABEL")
    return problem.status, float(value)


CHECKS_OF_PARTS = by_name([
    check_parameters, check_fit, check_basis, check_mask, check_cells, check_names, check_counts, check_columns,
    check_hidden_values, check_affine, check_pickle, check_structure,
])  # fmt: skip
