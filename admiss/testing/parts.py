"""Checks of an adaptivity class as an object: its parameters, fit, basis, mask, cells and names."""

import copy
import inspect
import pickle
from dataclasses import fields, is_dataclass
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from admiss.adaptivity import Adaptivity
from admiss.bounds.counts import all_patterns, dense
from admiss.testing.rows import DRAWS_AT_RANDOM, D, by_name, contract_rows, fitted_class, fitted_with_size, require


def check_parameters(adaptivity: Adaptivity) -> None:
    """The constructor stores its parameters unchanged, so that get_params, clone and repr work."""
    kind, given = type(adaptivity), adaptivity.get_params(deep=False)
    defaults = {name: p.default for name, p in inspect.signature(kind).parameters.items()}
    if inspect.Parameter.empty not in defaults.values():
        _require_unchanged(kind().get_params(deep=False), defaults)
    for built in (kind(**given), clone(adaptivity)):
        _require_unchanged(built.get_params(deep=False), given)
    # The given object may have changed its parameters already, which an opaque object reveals.
    for name in given:
        marker = object()
        try:
            unchanged = getattr(kind(**{**given, name: marker}), name) is marker
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
    X, M, state = rows.X.copy(), rows.M.copy(), dict(vars(adaptivity))
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
    given = patterns.copy()
    phi = fitted.basis(given)
    require(np.array_equal(given, patterns), "basis modifies the given patterns: work on a copy")
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
        found = dense(fitted.basis(patterns[part]))
        same = found.shape == phi[part].shape and np.allclose(found, phi[part], rtol=1e-9, atol=1e-12)
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


CHECKS_OF_PARTS = by_name([check_parameters, check_fit, check_basis, check_mask, check_cells, check_names])
