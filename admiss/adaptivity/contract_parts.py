"""What the contract asks of the parts of an adaptivity class, before any model is fitted.

Rows of the checks: 4 features, 9 patterns with 5 to 16 rows each, values that depend on each other and lie around 1.
"""

import copy
import inspect
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from admiss.adaptivity import Adaptivity
from admiss.bounds.counts import dense
from admiss.patterns import BoolArray, FloatArray, PatternTable

# Each pattern with its rows, all different, so that no two patterns are alike.
PATTERN_ROWS = {
    "....": 16, "x...": 13, ".x..": 12, "..x.": 11, "...x": 10, "xx..": 9, "..xx": 8, "xxx.": 7, "xxxx": 5,
}  # fmt: skip
D = 4


@dataclass(frozen=True)
class Rows:
    """Rows of the checks: X with NaN, the values behind it, the patterns, and a target that depends on both."""

    X: FloatArray
    values: FloatArray
    M: BoolArray
    y: FloatArray


def contract_rows() -> Rows:
    """The rows, the same in every call."""
    rng = np.random.RandomState(0)
    patterns = [[mark == "x" for mark in text] for text, count in PATTERN_ROWS.items() for _ in range(count)]
    M = rng.permutation(np.array(patterns))
    values = 1.0 + rng.standard_normal(M.shape) @ np.array(
        [[1, 0.5, 0, 0], [0, 1, 0.5, 0], [0, 0, 1, 0.5], [0, 0, 0, 1]]
    )
    weights = np.array([1.0, -1.0, 0.5, 2.0]) + np.where(M[:, [1]], 0.5, 0.0)
    y = 2.0 + (values * weights).sum(axis=1) + M @ np.array([0.5, 1.0, -1.0, 1.5]) + 0.5 * rng.standard_normal(len(M))
    return Rows(np.where(M, np.nan, values), values, M, y)


def require(condition: Any, wrong: str) -> None:
    """Fail with what is wrong, and what to do about it."""
    if not condition:
        raise AssertionError(wrong)


def fitted_class(adaptivity: Adaptivity, X: FloatArray, sample_weight: FloatArray | None = None) -> Adaptivity:
    """The class fitted to rows, as estimators do it."""
    weighted = has_fit_parameter(adaptivity, "sample_weight") and sample_weight is not None
    return adaptivity.fit(X, np.isnan(X), **({"sample_weight": sample_weight} if weighted else {}))


def replaces_columns(adaptivity: Adaptivity) -> bool:
    """Whether the columns are others than the products x_j (1 - m_j) phi_k(m)."""
    return type(adaptivity).columns is not Adaptivity.columns


def check_parameters(adaptivity: Adaptivity) -> None:
    """The constructor keeps its parameters as they are, so that get_params, clone and repr work."""
    given = adaptivity.get_params(deep=False)
    defaults = {p.name: p.default for p in inspect.signature(type(adaptivity)).parameters.values()}
    if inspect.Parameter.empty not in defaults.values():
        given, adaptivity = defaults, type(adaptivity)()
    for kept in (adaptivity.get_params(deep=False), clone(adaptivity).get_params(deep=False)):
        for name, value in given.items():
            same = name in kept and _equal(kept[name], value)
            require(same, f"the parameter {name} is not kept as it is given: do nothing else with it in __init__")
    named = type(adaptivity).__name__ in repr(adaptivity)
    require(named, "its repr does not name the class: leave repr to the base class")


def _equal(a: Any, b: Any) -> bool:
    """Equality that looks into arrays and dataclasses."""
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if is_dataclass(a) or isinstance(a, BaseEstimator):
        return type(a) is type(b) and _same_state(a, b)
    return type(a) is type(b) and bool(np.all(a == b))


def _same_state(a: Any, b: Any) -> bool:
    return vars(a).keys() == vars(b).keys() and all(_equal(value, vars(b)[name]) for name, value in vars(a).items())


def check_fit(adaptivity: Adaptivity) -> None:
    """Fit returns a fitted copy that depends on the given rows alone, and changes neither the object nor the rows."""
    rows = contract_rows()
    X, M, state = rows.X.copy(), rows.M.copy(), dict(vars(adaptivity))
    contents = copy.deepcopy(state)
    fitted = adaptivity.fit(X, M)
    require(type(fitted) is type(adaptivity), f"fit returns {fitted!r}: return a fitted copy, copy.copy(self)")
    unchanged = vars(adaptivity).keys() == state.keys() and all(
        vars(adaptivity)[name] is value and _equal(value, contents[name]) for name, value in state.items()
    )
    if fitted is adaptivity or not unchanged:
        require(
            False, "fit changes the object itself: begin with fitted = copy.copy(self) and set attributes of fitted"
        )
    same = np.array_equal(X, rows.X, equal_nan=True) and np.array_equal(M, rows.M)
    require(same, "fit writes into the rows that it is given: work on a copy")
    for name in sorted(vars(fitted).keys() - state.keys()):
        value = vars(fitted)[name]
        right = name.endswith("_") and (isinstance(value, np.ndarray | Number | str | None) or is_dataclass(value))
        kept = f"fit keeps {name} as {type(value).__name__}"
        require(right, f"{kept}: keep numpy arrays, or a dataclass of them, under a name that ends in _")
    again = adaptivity.fit(rows.X, rows.M)
    require(
        _same_state(again, fitted), "two fits to the same rows differ: take randomness from a parameter random_state"
    )
    few = rows.X[: len(rows.X) // 2]
    same = _same_state(fitted_class(fitted, few), fitted_class(adaptivity, few))
    require(same, "a second fit remembers the first: fit must learn from the rows that it is given alone")


def check_basis(adaptivity: Adaptivity) -> None:
    """The basis has a row of finite numbers for each pattern, which depends on this pattern alone."""
    rows = contract_rows()
    fitted = fitted_class(adaptivity, rows.X)
    patterns = rows.M.astype(float)
    given = patterns.copy()
    phi = fitted.basis(given)
    require(np.array_equal(given, patterns), "basis writes into the patterns that it is given: work on a copy")
    two = np.ndim(phi) == 2 and phi.shape[0] == len(patterns)
    require(two, f"basis(M) has shape {np.shape(phi)} for {len(patterns)} patterns: give one row for each pattern")
    phi = dense(phi)
    require(phi.shape[1] > 0, "basis(M) has no columns: give at least one basis function, such as 1")
    require(
        np.isfinite(phi).all(), "basis(M) holds NaN or infinity on the training patterns: define it for every pattern"
    )
    fitted_class(adaptivity, rows.X[::2])
    same = np.array_equal(dense(fitted.basis(patterns)), phi)
    require(same, "a fit to other rows changes the basis of this one: keep what fit learns in attributes of the copy")
    alone = "a row of the basis may depend on its own pattern and on what fit has learned, on nothing else"
    order = np.random.RandomState(1).permutation(len(patterns))
    parts = {
        "rows of M are permuted": order,
        "rows of M are repeated": np.repeat(np.arange(len(patterns)), 2),
        "M has a single row": np.array([7]),
    }
    for when, part in parts.items():
        found = dense(fitted.basis(patterns[part]))
        same = found.shape == phi[part].shape and np.allclose(found, phi[part], rtol=1e-9, atol=1e-12)
        require(same, f"basis(M) gives other values where {when}: {alone}")


def check_mask(adaptivity: Adaptivity) -> None:
    """The mask is a bool array of shape (d + 1, K)."""
    fitted, K = _fitted_with_size(adaptivity)
    mask = np.asarray(fitted.mask(D))
    right = mask.shape == (D + 1, K) and mask.dtype == bool
    require(
        right,
        f"mask({D}) is an array of {mask.dtype} and shape {mask.shape}: give bool of shape {(D + 1, K)}, the intercept "
        "and the features by the basis functions",
    )
    require(mask.any(), "mask leaves out every pair of feature and basis function: keep at least one")


def _fitted_with_size(adaptivity: Adaptivity) -> tuple[Adaptivity, int]:
    rows = contract_rows()
    fitted = fitted_class(adaptivity, rows.X)
    return fitted, int(fitted.basis(rows.M.astype(float)).shape[1])


def check_names(adaptivity: Adaptivity) -> None:
    """Every basis function has a name of its own."""
    fitted, K = _fitted_with_size(adaptivity)
    names = list(fitted.names(["a", "b", "c", "d"]))
    strings = all(isinstance(name, str) for name in names)
    require(
        strings and len(names) == K, f"names gives {len(names)} names for {K} basis functions: give one string for each"
    )
    require(len(set(names)) == K, "names gives two basis functions the same name: tell them apart")


def check_counts(adaptivity: Adaptivity) -> None:
    """The counts are the weights of the rows in which x_j is observed and phi_k(m) is not 0."""
    rows, s = contract_rows(), np.random.RandomState(2).uniform(0.5, 2.0, size=sum(PATTERN_ROWS.values()))
    fitted, K = _fitted_with_size(adaptivity)
    table = PatternTable.of(rows.M, s)
    counts = np.asarray(fitted.counts(table.patterns, table.weights))
    require(counts.shape == (D + 1, K), f"counts has shape {counts.shape}: give {(D + 1, K)}, as the mask")
    halves = [fitted.counts(table.patterns[part], table.weights[part]) for part in (slice(3), slice(3, None))]
    adds_up = np.isfinite(counts).all() and (counts >= 0).all() and np.allclose(halves[0] + halves[1], counts)
    require(adds_up, "counts of two sets of patterns do not add up to those of both: sum weights that are not negative")
    if not replaces_columns(adaptivity):
        observed = np.column_stack([np.ones(len(s)), ~rows.M])
        expected = (s[:, None] * observed).T @ (dense(fitted.basis(rows.M.astype(float))) != 0)
        right = np.allclose(counts, expected)
        require(
            right,
            "counts is not the weight of the rows with x_j observed and phi_k(m) not 0: leave it to the base class",
        )
    else:
        j, k = np.nonzero(fitted.mask(D))
        used = (dense(fitted.columns(rows.X, rows.M)) != 0).any(axis=0)
        right = (counts[j, k][used] > 0).all()
        require(
            right, "counts is 0 for a column that is not 0 on the training rows, which would be dropped: count its rows"
        )


def check_columns(adaptivity: Adaptivity) -> None:
    """The columns are finite, one for each pair of the mask, and a row of them depends on its own row alone."""
    rows = contract_rows()
    X, M = rows.X.copy(), rows.M.copy()
    fitted = fitted_class(adaptivity, rows.X)
    columns = dense(fitted.columns(X, M))
    shape = (len(X), int(np.sum(fitted.mask(D))))
    require(
        columns.shape == shape, f"columns has shape {columns.shape}: give {shape}, one column for each pair of the mask"
    )
    same = np.array_equal(X, rows.X, equal_nan=True) and np.array_equal(M, rows.M)
    require(same, "columns writes into the rows that it is given: work on a copy")
    require(np.isfinite(columns).all(), "columns holds NaN or infinity: put a number in the place of what is missing")
    for part in (np.random.RandomState(3).permutation(len(X)), np.array([5])):
        found = dense(fitted.columns(X[part], M[part]))
        same = np.allclose(found, columns[part], rtol=1e-9, atol=1e-9)
        require(
            same, "columns of a row depend on the other rows: a row may depend on what fit has learned, on nothing else"
        )
    if not replaces_columns(adaptivity):
        phi, Z = dense(fitted.basis(M.astype(float))), np.column_stack([np.ones(len(X)), np.nan_to_num(X)])
        expected = np.column_stack([Z[:, j] * phi[:, k] for j, k in np.argwhere(fitted.mask(D))])
        for storage in (sp.csr_array, np.asarray):
            other = copy.copy(fitted)
            other.basis = lambda M, storage=storage: storage(dense(fitted.basis(M)))  # type: ignore[method-assign, misc]
            other.mask = fitted.mask  # type: ignore[method-assign]
            same = np.allclose(dense(other.columns(X, M)), expected, rtol=1e-12, atol=1e-12)
            require(
                same, f"columns are not x_j (1 - m_j) phi_k(m) with a basis as {storage.__name__}: give plain numbers"
            )


def check_hidden_values(adaptivity: Adaptivity) -> None:
    """What stands under a NaN, its sign and its payload, does not matter to fit and columns."""
    rows = contract_rows()
    other = np.where(rows.M, -np.nan, rows.X)
    other.view(np.uint64)[rows.M] += 1234
    first, second = (dense(fitted_class(adaptivity, X).columns(X, rows.M)) for X in (rows.X, other))
    require(
        np.array_equal(first, second),
        "columns or fit read what stands under a NaN: look at M, and at X where M is False",
    )


def check_affine(adaptivity: Adaptivity) -> None:
    """At every pattern the columns are affine in what is observed, unless linear_at_patterns says otherwise."""
    if not adaptivity.linear_at_patterns():
        return
    rows = contract_rows()
    fitted = fitted_class(adaptivity, rows.X)
    rng = np.random.RandomState(4)
    a, b = rng.standard_normal((2, *rows.X.shape))
    points = [np.where(rows.M, np.nan, point) for point in (a, b, 3.0 * a - 2.0 * b)]
    at_a, at_b, beyond = (dense(fitted.columns(point, rows.M)) for point in points)
    same = np.allclose(3.0 * at_a - 2.0 * at_b, beyond, rtol=1e-7, atol=1e-7)
    require(
        same,
        "columns are not affine in x at a fixed pattern, so that coef_at cannot describe them: make them so, or let "
        "linear_at_patterns say no",
    )


def check_pickle(adaptivity: Adaptivity) -> None:
    """A fitted class can be pickled, and cloned without what it has learned."""
    rows = contract_rows()
    fitted = fitted_class(adaptivity, rows.X)
    learned = sorted(vars(clone(fitted)).keys() - vars(clone(adaptivity)).keys())
    require(not learned, f"clone keeps {', '.join(learned)}: what fit learns must not be set by __init__")
    before, after = (dense(a.columns(rows.X, rows.M)) for a in (fitted, _through_pickle(fitted)))
    require(np.array_equal(before, after), "pickle changes its columns: keep all that it needs in attributes")


def _through_pickle(adaptivity: Adaptivity) -> Adaptivity:
    """Pickled and loaded; of a class that pickle cannot find (one inside a function) the attributes."""
    kind = type(adaptivity)
    if getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind:
        loaded: Adaptivity = pickle.loads(pickle.dumps(adaptivity))
        return loaded
    loaded = copy.copy(adaptivity)
    loaded.__dict__.update(pickle.loads(pickle.dumps(vars(adaptivity))))
    return loaded


def check_structure(adaptivity: Adaptivity) -> None:
    """A structure is a convex penalty, a single number, and a list of convex constraints on W."""
    if not adaptivity.has_structure():
        return
    import cvxpy as cp

    fitted, K = _fitted_with_size(adaptivity)
    given = fitted.structure(cp.Variable((D + 1, K)))
    pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], list)
    require(
        pair,
        f"structure returns a {type(given).__name__}: return a penalty and a list of constraints, 0.0, [] for none",
    )
    omega = cp.Constant(given[0]) if isinstance(given[0], Number) else given[0]
    require(
        isinstance(omega, cp.Expression) and omega.size == 1, "the penalty of structure is not one number: sum it up"
    )
    require(
        omega.is_convex(),
        "the penalty of structure is not convex by the rules of cvxpy (DCP): build it from convex atoms",
    )
    convex = all(isinstance(c, cp.constraints.constraint.Constraint) and c.is_dcp() for c in given[1])
    require(
        convex, "a constraint of structure is not convex by the rules of cvxpy (DCP): write it as convex <= concave"
    )


def by_name(checks: list[Callable[[Adaptivity], None]]) -> dict[str, Callable[[Adaptivity], None]]:
    """Checks under their names, in their order."""
    return {check.__name__.removeprefix("check_"): check for check in checks}


CHECKS_OF_PARTS = by_name([
    check_parameters, check_fit, check_basis, check_mask, check_names, check_counts, check_columns,
    check_hidden_values, check_affine, check_pickle, check_structure,
])  # fmt: skip
