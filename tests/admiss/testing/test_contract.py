"""The contract of adaptivity classes: sound classes satisfy it, and checks can be skipped with a reason."""

import ast
import copy
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

import admiss
from admiss.adaptivity import (
    Adaptivity,
    Affine,
    AffineIntercept,
    BinnedAffine,
    FrequentPatterns,
    FullyAdaptive,
    LowRankAffine,
    MissingnessAvoiding,
    Polynomial,
    SharedPatterns,
    Static,
)
from admiss.testing import CHECKS, adaptivity_checks, check_adaptivity, parametrize_with_checks


class CountAdaptive(Adaptivity):
    degree = 0

    def basis(self, M):
        missing = M.sum(axis=1)
        return np.column_stack([np.ones(len(M)), missing, missing**2])


class SparseCount(CountAdaptive):
    def basis(self, M):
        return sp.csr_array(super().basis(M))


class LowRank(Affine):
    def structure(self, W):
        return (0.02 * cp.normNuc(W[1:, 1:]), []) if W.shape[1] > 1 else (0.0, [])


class NearPatterns(FullyAdaptive):
    """A model for each pattern, shrunk towards the average; no weight above 5."""

    def structure(self, W):
        average = cp.sum(W, axis=1, keepdims=True) / W.shape[1]
        return 0.1 * cp.sum_squares(W - average), [cp.abs(W[1:]) <= 5]


class ConditionalExpectation(AffineIntercept):
    """x_j if observed, else its regression on the observed features, under the covariance of mean-imputed rows."""

    def fit(self, X, M, sample_weight=None):
        fitted = super().fit(X, M)
        s = np.where(M, 0.0, (np.ones(len(X)) if sample_weight is None else sample_weight)[:, None])
        fitted.mean_ = (s * np.where(M, 0.0, X)).sum(axis=0) / s.sum(axis=0)
        Z = np.where(M, 0.0, X - fitted.mean_)
        s = np.ones(len(X)) if sample_weight is None else sample_weight
        fitted.covariance_ = (Z * s[:, None]).T @ Z / s.sum()
        return fitted

    def columns(self, X, M):
        Z = np.where(M, 0.0, X - self.mean_)
        for m in np.unique(M, axis=0):
            rows = (M == m).all(axis=1)
            regression = np.linalg.pinv(self.covariance_[np.ix_(~m, ~m)]) @ self.covariance_[np.ix_(~m, m)]
            Z[np.ix_(rows, m)] = Z[np.ix_(rows, ~m)] @ regression
        return np.hstack([self.basis(M.astype(float)), Z + self.mean_])


class Clustered(Adaptivity):
    """Learns a fitted scikit-learn object, a list and a dict: the distance of patterns to frequent ones."""

    def __init__(self, neighbours=3):
        self.neighbours = neighbours

    def fit(self, X, M, sample_weight=None):
        fitted = copy.copy(self)
        s = np.ones(len(M)) if sample_weight is None else sample_weight
        rows = s > 0  # rows of weight zero are dropped
        distinct, code = np.unique(M[rows], axis=0, return_inverse=True)
        counts = np.bincount(code.ravel(), s[rows])
        frequent = distinct[counts >= np.median(counts)]
        fitted.tree_ = NearestNeighbors(n_neighbors=min(self.neighbours, len(frequent))).fit(frequent.astype(float))
        fitted.shares_ = [float(share) for share in np.sort(counts / counts.sum())]
        fitted.sizes_ = {"patterns": len(distinct), "frequent": len(frequent)}
        return fitted

    def basis(self, M):
        near = self.tree_.kneighbors(M)[0].mean(axis=1)
        return np.column_stack([np.ones(len(M)), near + self.shares_[-1] / self.sizes_["patterns"]])


class SumToOne(Affine):
    """A valid constraint on the weights if nothing is missing."""

    def structure(self, W):
        return 0.0, [cp.sum(W[1:, 0]) == 1]


class Dialled(Affine):
    """A structure unless its strength is 0."""

    def __init__(self, strength=0.0):
        self.strength = strength

    def has_structure(self):
        return self.strength != 0

    def structure(self, W):
        return self.strength * cp.sum(cp.norm(W[1:], 2, axis=0)), []


SOUND = [
    SharedPatterns(), FrequentPatterns(), MissingnessAvoiding(), BinnedAffine(), Static(), AffineIntercept(), Affine(),
    Polynomial(2), FullyAdaptive(), CountAdaptive(), ConditionalExpectation(), Clustered(),
]  # fmt: skip
# Cone programs, and what differs from another class in one method.
MORE = [SparseCount(), LowRank(), NearPatterns(), SumToOne(), Dialled(), Dialled(0.1), LowRankAffine(0.0)]


@parametrize_with_checks(SOUND)
def test_sound_classes_satisfy_the_contract(check):
    check()


@pytest.mark.slow
@parametrize_with_checks(MORE)
def test_more_sound_classes_satisfy_the_contract(check):
    check()


class FirstFeature(Adaptivity):
    """One feature is special."""

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), M[:, 0]])


def test_checks_can_be_skipped_with_a_reason():
    reason = {"permuted_features": "the first feature is the reference"}
    check_adaptivity(FirstFeature(), except_for=reason)
    left = [name for name, _ in adaptivity_checks(FirstFeature(), except_for=reason)]
    assert left == [name for name in CHECKS if name != "permuted_features"]
    with pytest.raises(ValueError, match="except_for names permuted, but the checks are parameters"):
        check_adaptivity(FirstFeature(), except_for={"permuted": "a reason"})
    with pytest.raises(ValueError, match="must give a reason"):
        check_adaptivity(FirstFeature(), except_for={"permuted_features": ""})
    with pytest.raises(TypeError, match=r"pass an instance, Affine\(\)"):
        check_adaptivity(Affine)


def test_a_class_need_not_be_linear_at_patterns():
    class Sizes(AffineIntercept):
        def columns(self, X, M):
            return np.hstack([self.basis(M.astype(float)), np.where(M, 0.0, np.abs(X))])

    class Declared(Sizes):
        def linear_at_patterns(self):
            return False

    reason = {"complete_data": "signs are lost"}
    with pytest.raises(AssertionError, match="Sizes fails 'affine': .* or let linear_at_patterns return False"):
        check_adaptivity(Sizes(), except_for=reason)
    check_adaptivity(Declared(), except_for=reason)


def test_a_class_need_not_be_linear_in_x():
    class Ranks(AffineIntercept):
        """The share of training values below x_j, which has no units."""

        linear_in_x = False

        def fit(self, X, M, sample_weight=None):
            fitted, s = super().fit(X, M), np.ones(len(X)) if sample_weight is None else sample_weight
            fitted.values_ = np.where(M, np.inf, X)
            fitted.shares_ = np.where(M, 0.0, s[:, None]) / np.where(M, 0.0, s[:, None]).sum(axis=0)
            return fitted

        def columns(self, X, M):
            below = np.nan_to_num(X)[:, None] > self.values_ + 1e-9 * np.abs(self.values_)
            return np.hstack([self.basis(M.astype(float)), np.where(M, 0.0, (below * self.shares_).sum(axis=1))])

    check_adaptivity(Ranks())
    X = np.random.default_rng(0).normal(loc=1e5, size=(50, 2))
    model = admiss.AdaptiveRegressor(Ranks(), lam=0.1).fit(X, X[:, 0])
    assert model.certificate_.status == "optimal"
    assert model.score(X, X[:, 0]) > 0.9
    assert not hasattr(model, "imputation_")


def test_the_contract_does_not_change_the_random_state():
    np.random.seed(3)
    state = np.random.get_state()[1].copy()
    check_adaptivity(CountAdaptive())
    np.testing.assert_array_equal(np.random.get_state()[1], state)


def test_pytest_is_not_needed_to_import_the_contract():
    for path in Path(admiss.__file__).parent.rglob("*.py"):
        imports = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert not any("pytest" in ast.unparse(node) for node in imports), path
