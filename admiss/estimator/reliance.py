"""Reliance of predictions on missing values.

A prediction relies on a missing value x_j if

    linear models       the coefficient of x_j, or one that depends on m_j, is not 0: the model then replaces the value,
                        by its mean or another constant, or predicts from the fact that it is missing
    trees and forests   the path of the row, in some tree, has a split on x_j
    finite models       the leaf has a split on m_j, or the model in the leaf a coefficient of x_j or m_j that is not 0

and the reliance of a model is the share of the rows whose prediction relies on any of their missing values, rho in

    L. Stempfle, A. Matsson, N. Mwai and F. D. Johansson, Prediction models that learn to avoid missing values, ICML
    2025, arXiv 2505.03393.

In an adaptive model with weights w_j(m) = sum_k W_jk phi_k(m) a coefficient W_jk of a missing x_j counts if phi_k(m) is
not 0, and one of the intercept or of an observed feature if phi_k(m) changes when x_j, or all missing values at once,
become observed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from admiss.estimator.validation import AllowsMissing, read_features
from admiss.patterns import PatternTable
from formulations.arrays import BoolArray, FloatArray

# A coefficient of scaled features below this share of the largest one is 0 up to rounding.
NO_WEIGHT = 1e-13
# Patterns whose basis is evaluated at once.
BLOCK = 1024


def reliance(model: Any, X: Any, missing: Any = None) -> float:
    """The share of the rows whose prediction relies on a missing value.

    Parameters
    ----------
    model : fitted estimator
        An adaptive or finite model of this package, a linear model, tree, or ensemble of trees of scikit-learn, or a
        search over these with ``best_estimator_``.
    X : array or data frame of shape (n, d)
        Rows as the model takes them.
    missing : bool array of shape (n, d), optional
        Which values are missing, for a model of imputed rows; those that are NaN in X by default.

    Examples
    --------
    >>> from sklearn.linear_model import Lasso
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 1.0], [4.0, 0.0]])
    >>> model = Lasso(alpha=0.1).fit(X, X[:, 0])
    >>> model.coef_.round(1).tolist()
    [0.9, 0.0]
    >>> reliance(model, X, missing=[[1, 0], [0, 1], [0, 0], [1, 1]])
    0.5
    """
    while inner := getattr(model, "best_estimator_", None) or _augmented(model):
        model = inner
    check_is_fitted(model)
    if isinstance(model, AllowsMissing):
        rows = read_features(model, X, reset=False)
    else:
        rows = validate_data(model, X, reset=False, ensure_all_finite="allow-nan", dtype=float)
    M = np.isnan(rows) if missing is None else np.asarray(missing, dtype=bool)
    if M.shape != rows.shape:
        raise ValueError(f"missing must have the shape of X, {rows.shape}, not {M.shape}.")
    if hasattr(model, "design_"):
        return float(np.mean(_adaptive(model, M)))
    if hasattr(model, "leaf_weights_"):
        return float(np.mean(_finite(model, M)))
    coef: Any = getattr(model, "coef_", None)
    coef = coef.toarray() if sp.issparse(coef) else coef
    if coef is not None and np.shape(coef)[-1] == rows.shape[1]:
        return float(np.mean((M & np.any(np.atleast_2d(coef) != 0, axis=0)).any(axis=1)))
    trees = [model] if hasattr(model, "tree_") else list(np.ravel(getattr(model, "estimators_", [])))
    if trees and all(hasattr(tree, "tree_") for tree in trees):
        subsets = getattr(model, "estimators_features_", [slice(None)] * len(trees))
        return float(np.mean(_trees(trees, subsets, rows, M)))
    raise TypeError(
        f"The reliance of {type(model).__name__} is not defined: give an adaptive or finite model, a linear model of "
        "the columns of X, a tree, or an ensemble of trees (of a pipeline its last step, with transformed rows and "
        "missing=np.isnan(X))."
    )


def _adaptive(model: Any, M: BoolArray) -> BoolArray:
    """Whether the prediction of each row relies on a missing value, for an adaptive model."""
    design = model.design_
    is_used = np.zeros((len(design.features) + 1, design.n_basis + 1), dtype=bool)
    size = np.max(np.abs(np.atleast_2d(model.coefficients_ * design.column_scale)), axis=0)
    is_used[*design.pairs.T] = size > NO_WEIGHT * size.max(initial=0.0)
    is_used = is_used[:, :-1]  # without an intercept that the basis lacks
    table = PatternTable.of(M[:, design.features])
    relies = [
        _adaptive_at(design, is_used, table.patterns[start : start + BLOCK])
        for start in range(0, len(table.patterns), BLOCK)
    ]
    return np.concatenate(relies)[table.codes]


def _adaptive_at(design: Any, is_used: BoolArray, patterns: BoolArray) -> BoolArray:
    phi = _basis(design, patterns)
    relies = ((patterns.astype(float) @ is_used[1:] > 0) & (phi != 0)).any(axis=1)
    seen = np.column_stack([np.ones(len(patterns)), ~patterns]) @ is_used > 0
    relies |= ((_basis(design, np.zeros_like(patterns)) != phi) & seen).any(axis=1)
    for j in np.flatnonzero(patterns.any(axis=0)):
        open_rows = np.flatnonzero(patterns[:, j] & ~relies)
        observed = patterns[open_rows]
        observed[:, j] = False
        relies[open_rows] |= ((_basis(design, observed) != phi[open_rows]) & seen[open_rows]).any(axis=1)
    return relies


def _basis(design: Any, patterns: BoolArray) -> FloatArray:
    """phi(m); a feature that was never missing in training stays at its mean."""
    phi = design.adaptivity.basis((patterns & design.missable).astype(float))
    return np.asarray(phi.toarray() if sp.issparse(phi) else phi)


def _finite(model: Any, M: BoolArray) -> BoolArray:
    """The same for a finite model; the leaf of an arbitrary group of patterns depends on every missing value."""
    features, partition = model.leaf_features_, model.partition_
    as_trained = M & features.missable
    as_trained[:, np.setdiff1d(np.arange(M.shape[1]), features.observed)] = True
    leaves = partition.assign(as_trained)
    is_used = np.zeros((partition.n_leaves, M.shape[1]), dtype=bool)
    weights = (model.leaf_weights_ != 0).any(axis=1)
    k = len(features.observed)
    is_used[:, features.observed] = weights[:, :k]
    is_used[:, features.indicators] |= weights[:, k:]
    if partition.boxes is None:
        is_used[:, features.observed] = True
    for leaf, literals in enumerate(partition.boxes or []):
        is_used[leaf, [j for j, is_missing in literals if is_missing]] = True
    return (M & is_used[leaves]).any(axis=1)


def _augmented(model: Any) -> Any:
    """The model inside one that was trained on further deletions."""
    return getattr(model, "estimator_", None) if hasattr(model, "copies_") else None


def _trees(trees: list[Any], subsets: Sequence[Any], rows: FloatArray, missing: BoolArray) -> BoolArray:
    """The same for trees of scikit-learn, each on a subset of the columns."""
    relies = np.zeros(len(rows), dtype=bool)
    for tree, subset in zip(trees, subsets, strict=True):
        X, M = rows[:, subset], missing[:, subset]
        feature = tree.tree_.feature
        splits = np.flatnonzero(feature >= 0)
        of_node = sp.csr_array((np.ones(len(splits)), (splits, feature[splits])), shape=(len(feature), X.shape[1]))
        path = tree.tree_.decision_path(X.astype(np.float32))
        relies |= np.asarray((sp.csr_array(path) @ of_node).multiply(M).sum(axis=1)).ravel() > 0
    return relies
