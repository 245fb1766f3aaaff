"""The contract finds what is broken in a class, and says what to do about it."""

import copy

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestRegressor

from admiss.adaptivity import Adaptivity, Affine, AffineIntercept, FullyAdaptive
from admiss.testing import adaptivity_checks, check_adaptivity


def powers(M):
    """1, |m|, |m|^2."""
    missing = M.sum(axis=1)
    return np.column_stack([np.ones(len(M)), missing, missing**2])


def with_one(column):
    return np.column_stack([np.ones(len(column)), column])


class CountAdaptive(Adaptivity):
    degree = 0

    def basis(self, M):
        return powers(M)


class Rounded(CountAdaptive):
    def __init__(self, power=2.5):
        self.power = int(power)


class Clipped(CountAdaptive):
    def __init__(self, k=2):
        self.k = min(k, 3)


def learns(**learned):
    """A fit that stores functions of the rows and patterns."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        for name, value in learned.items():
            setattr(fitted, name, value(X, M))
        return fitted

    return fit


def learns_in_place(self, X, M):
    self.share_ = M.mean(axis=0)
    return copy.copy(self)


def remembers(self, X, M):
    return self if hasattr(self, "share_") else learns(share_=lambda X, M: M.mean(axis=0))(self, X, M)


def scribbles(self, X, M):
    X[M] = 0.0
    return copy.copy(self)


def stores_in_the_class(self, X, M, sample_weight=None):
    type(self).learned = np.average(M.mean(axis=1), weights=sample_weight)
    return copy.copy(self)


def basis_of_known_patterns(self, M):
    phi = powers(M)
    phi[M.sum(axis=1) > self.most_] = np.nan
    return phi


def names_of_abcd_only(self, feature_names):
    if feature_names[0] != "a":
        raise KeyError(feature_names[0])
    return ["1", "one", "two"]


def with_indicators(features):
    """Columns: the indicators of an affine intercept, and a function of the rows and patterns."""
    return lambda self, X, M: np.hstack([self.basis(M.astype(float)), features(X, M)])


def observed(X, M):
    return np.where(M, 0.0, X)


def fit_clusters(self, X, M):
    fitted = AffineIntercept.fit(self, X, M)
    fitted.clusters_ = KMeans(8, n_init=1, init="random").fit(np.nan_to_num(X))
    return fitted


def columns_of_a_cluster(self, X, M):
    near = self.clusters_.predict(np.nan_to_num(X)) == 1
    return np.hstack([self.basis(M.astype(float)), observed(X, M) * near[:, None]])


def draw_slope(self, M):
    return with_one(np.exp(copy.deepcopy(self.generator_).normal() * M.sum(axis=1)))


def broken(check, why, base=CountAdaptive, **parts):
    """A class with a fault, and the check that must find it."""
    return pytest.param(type("Broken", (base,), parts), check, id=f"{check}: {why}")


BROKEN = [
    pytest.param(Rounded, "parameters", id="parameters: not stored unchanged"),
    pytest.param(Clipped, "parameters", id="parameters: stored unchanged only if small"),
    broken("fit", "changes itself", fit=learns_in_place),
    broken("fit", "does not learn again", fit=remembers),
    broken("fit", "modifies the rows", fit=scribbles),
    broken("fit", "random", fit=learns(x_=lambda X, M: np.random.default_rng().normal(size=M.shape[1]))),
    broken("fit", "stores what cannot be pickled", fit=learns(shift_=lambda X, M: lambda x: x + 1)),
    broken("fit", "stores a dict of arrays", fit=learns(table_=lambda X, M: {"share": M.mean(axis=0)})),
    broken("basis", "depends on the other rows", basis=lambda self, M: powers(M) - M.mean()),
    broken("basis", "depends on the index of the row", basis=lambda self, M: with_one(np.arange(len(M)))),
    broken("basis", "one number per row", basis=lambda self, M: M.sum(axis=1)),
    broken("basis", "a data frame", basis=lambda self, M: pd.DataFrame(powers(M))),
    broken(
        "basis", "what is learned is stored in the class, and changes with the next fit",
        fit=stores_in_the_class, basis=lambda self, M: with_one(np.exp(5 * self.learned * M.sum(axis=1))),
    ),
    broken("mask", "no row for the intercept", mask=lambda self, d: np.ones((d, 3), dtype=bool)),
    broken("cells", "basis functions that are no cells", cells=True),
    broken("cells", "an unseen pattern is in no cell", FullyAdaptive,
           basis=lambda self, M: (M[:, None] == self.patterns_).all(2)),
    broken("names", "too few", names=lambda self, feature_names: ["1"]),
    broken("counts", "rows of any kind", counts=lambda self, patterns, weights: np.full((5, 3), weights.sum())),
    broken("counts", "rewards large coefficients", penalty_factors=lambda self, counts: -np.ones_like(counts)),
    broken("counts", "factors by the number of rows", penalty_factors=lambda self, counts: counts + 1.0),
    broken("columns", "NaN where missing", AffineIntercept, columns=with_indicators(lambda X, M: X)),
    broken("columns", "those of the intercept come last", AffineIntercept,
           columns=lambda self, X, M: np.hstack([observed(X, M), self.basis(M.astype(float))])),
    broken("columns", "swapped", AffineIntercept, columns=with_indicators(lambda X, M: observed(X, M)[:, ::-1])),
    broken("columns", "not linear in x, but with units", AffineIntercept, linear_in_x=False,
           columns=with_indicators(lambda X, M: observed(X**2, M))),
    broken("columns", "the products, which are linear in x", linear_in_x=False),
    broken("columns", "random, inside an opaque object", Adaptivity,
           fit=learns(generator_=lambda X, M: np.random.default_rng()), basis=draw_slope),
    broken("columns", "the clusters of k-means differ between fits", AffineIntercept, fit=fit_clusters,
           columns=columns_of_a_cluster, linear_at_patterns=lambda self: False),
    broken("hidden_values", "the sign of a NaN", AffineIntercept,
           columns=with_indicators(lambda X, M: np.where(M, np.signbit(X), X))),
    broken("affine", "squares", AffineIntercept, columns=with_indicators(lambda X, M: observed(X**2, M))),
    broken("structure", "not convex", Affine, structure=lambda self, W: (cp.sum(cp.sqrt(cp.abs(W))), [])),
    broken("structure", "no pair", Affine, structure=lambda self, W: cp.sum_squares(W)),
    broken("structure", "contradictory", Affine,
           structure=lambda self, W: (0.0, [cp.sum(W[1:]) <= 1, cp.sum(W[1:]) >= 2])),
    broken("structure", "requires a weight that the mask excludes", AffineIntercept,
           structure=lambda self, W: (0.0, [W[1:, 1:] >= 1] if W.shape[1] > 1 else [])),
    broken("structure", "a penalty that is never applied", Affine, has_structure=lambda self: False,
           structure=lambda self, W: (cp.sum_squares(W[1:]), [])),
    broken("structure", "constraints that are never applied", Affine, has_structure=lambda self: False,
           structure=lambda self, W: (0.0, [W[1:] >= 0])),
    broken("unseen_patterns", "NaN for unseen numbers of missing features",
           fit=learns(most_=lambda X, M: M.sum(axis=1).max()), basis=basis_of_known_patterns),
    broken("complete_data", "no features are left if nothing is missing", Adaptivity,
           basis=lambda self, M: M.sum(axis=1, keepdims=True)),
    broken("complete_data", "the norm of a single column is undefined", Affine,
           structure=lambda self, W: (0.02 * cp.normNuc(W[1:, 1:]), [])),
    broken("shifted_target", "a penalty on the intercept", Affine,
           structure=lambda self, W: (0.1 * cp.sum_squares(W), [])),
    broken("one_feature", "a share of no features", Adaptivity,
           basis=lambda self, M: with_one(M.sum(axis=1) / np.float64(M.shape[1] - 1))),
    broken("one_feature", "a weight for each of four features", Adaptivity,
           basis=lambda self, M: with_one(M @ np.array([1.0, 2.0, 3.0, 4.0]))),
    broken("weights", "rows are counted, regardless of their weight", Adaptivity,
           fit=learns(share_=lambda X, M: M.mean(axis=0)), basis=lambda self, M: with_one(M @ self.share_ + 0.2)),
    broken("row_order", "compares with the first training row", Adaptivity, fit=learns(first_=lambda X, M: M[0]),
           basis=lambda self, M: with_one((self.first_ == M).all(axis=1))),
    broken("permuted_features", "one feature is special", Adaptivity, basis=lambda self, M: with_one(M[:, 0])),
    broken(
        "units", "imputes 1.0, in any units", AffineIntercept,
        basis=lambda self, M: AffineIntercept.basis(self, M) * (np.arange(len(self.monomials_)) == 0),
        columns=with_indicators(lambda X, M: np.where(M, 1.0, X)),
    ),
    broken("printing", "names for the features a, b, c, d only", names=names_of_abcd_only),
    broken("bounds", "the weights do not contain all linear functions", degree=1),
    broken("bounds", "fewer coefficients than there are", n_coefficients=lambda self, d, n: 2),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "check"), BROKEN)
def test_the_contract_names_what_is_broken(kind, check):
    with pytest.raises(AssertionError) as failure:
        check_adaptivity(kind())
    message = str(failure.value)
    assert message.startswith(f"{kind.__name__} fails '{check}': ")
    assert message.endswith(".")
    assert ". " not in message
    assert "\n" not in message
    assert "tol_gap" not in message


SEEN_CELLS_ONLY, SWAPPED = (
    next(param.values[0] for param in BROKEN if param.id.endswith(words)) for words in ("is in no cell", "swapped")
)


@pytest.mark.parametrize(
    ("adaptivity", "words"),
    [
        (SEEN_CELLS_ONLY(), "7 of 16 patterns are in no cell"),
        (SWAPPED(), "belongs to feature 0 and basis function 0, but it is in the units of feature 3"),
        (Clipped(5), "the parameter k is not stored unchanged"),
    ],
)
def test_the_contract_says_where(adaptivity, words):
    with pytest.raises(AssertionError, match=words):
        check_adaptivity(adaptivity)


class ForestOfRows(AffineIntercept):
    """A forest with a seed draws rows by their positions."""

    def fit(self, X, M):
        fitted = super().fit(X, M)
        forest = RandomForestRegressor(3, max_depth=3, random_state=0)
        fitted.forest_ = forest.fit(M, np.nanmean(observed(X, M) ** 2, axis=1))
        return fitted

    def columns(self, X, M):
        return np.hstack([self.basis(M.astype(float)), observed(X, M) * self.forest_.predict(M)[:, None]])


class Restless(Adaptivity):
    """What is learned depends on how often the class was fitted."""

    calls = 0

    def fit(self, X, M):
        Restless.calls += 1
        fitted = copy.copy(self)
        fitted.power_ = np.array(1.0 + Restless.calls)
        return fitted

    def basis(self, M):
        return with_one(M.sum(axis=1) ** getattr(self, "power_", 1.0))


@pytest.mark.parametrize(
    ("adaptivity", "check", "words"),
    [
        (ForestOfRows(), "row_order", "a randomised learner draws rows by their positions"),
        (SEEN_CELLS_ONLY(), "shifted_target", "predictions for y \\+ 100"),
        (Restless(), "folds", "Restless fails 'folds'"),
    ],
)
def test_a_check_by_itself(adaptivity, check, words):
    """Others would find these classes first."""
    with pytest.raises(AssertionError, match=words):
        dict(adaptivity_checks(adaptivity))[check]()
