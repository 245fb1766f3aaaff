"""The contract finds what is broken in a class, and says what to do about it.

The docstring of a class starts with the name of the check that must find it.
"""

import copy

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestRegressor

from admiss.adaptivity import Adaptivity, Affine, AffineIntercept, FullyAdaptive
from admiss.testing import adaptivity_checks, check_adaptivity


class CountAdaptive(Adaptivity):
    degree = 0

    def basis(self, M):
        missing = M.sum(axis=1)
        return np.column_stack([np.ones(len(M)), missing, missing**2])


class Centred(CountAdaptive):
    """basis: depends on the other rows."""

    def basis(self, M):
        return super().basis(M) - M.mean()


class RowNumbers(CountAdaptive):
    """basis: depends on the index of the row."""

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), np.arange(len(M))])


class FlatBasis(CountAdaptive):
    """basis: one number per row."""

    def basis(self, M):
        return M.sum(axis=1)


class WrongMask(CountAdaptive):
    """mask: no row for the intercept."""

    def mask(self, d):
        return np.ones((d, 3), dtype=bool)


class WrongNames(CountAdaptive):
    """names: too few."""

    def names(self, feature_names):
        return ["1"]


class WrongCounts(CountAdaptive):
    """counts: rows of any kind."""

    def counts(self, patterns, weights):
        return np.full((patterns.shape[1] + 1, 3), weights.sum())


class LearnsInPlace(CountAdaptive):
    """fit: changes itself."""

    def fit(self, X, M):
        self.share_ = M.mean(axis=0)
        return copy.copy(self)


class Remembers(CountAdaptive):
    """fit: does not learn again."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        if not hasattr(self, "share_"):
            fitted.share_ = M.mean(axis=0)
        return fitted


class Scribbles(CountAdaptive):
    """fit: modifies the rows."""

    def fit(self, X, M):
        X[M] = 0.0
        return copy.copy(self)


class Draws(CountAdaptive):
    """fit: random without a seed."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.direction_ = np.random.default_rng().normal(size=M.shape[1])
        return fitted


class Rounds(CountAdaptive):
    """parameters: not stored unchanged."""

    def __init__(self, power=2.5):
        self.power = int(power)


class LeaksNaN(AffineIntercept):
    """columns: NaN where missing."""

    def columns(self, X, M):
        return np.hstack([self.basis(M.astype(float)), X])


class ReadsHidden(AffineIntercept):
    """hidden_values: the sign of a NaN."""

    def columns(self, X, M):
        return np.hstack([self.basis(M.astype(float)), np.where(M, np.signbit(X), X)])


class Squares(AffineIntercept):
    """affine: not affine in x."""

    def columns(self, X, M):
        return np.hstack([self.basis(M.astype(float)), np.where(M, 0.0, X**2)])


class ImputesOne(AffineIntercept):
    """units: 1.0, in any units."""

    def basis(self, M):
        return super().basis(M) * np.array([1.0] + [0.0] * (len(self.monomials_) - 1))

    def columns(self, X, M):
        return np.hstack([self.basis(M.astype(float)), np.where(M, 1.0, X)])


class NotConvex(Affine):
    """structure: a penalty that is not convex."""

    def structure(self, W):
        return cp.sum(cp.sqrt(cp.abs(W))), []


class NoPair(Affine):
    """structure: no constraints."""

    def structure(self, W):
        return cp.sum_squares(W)


class KnownPatterns(CountAdaptive):
    """unseen_patterns: NaN for unseen numbers of missing features."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.most_ = M.sum(axis=1).max()
        return fitted

    def basis(self, M):
        phi = super().basis(M)
        phi[M.sum(axis=1) > self.most_] = np.nan
        return phi


class MissingOnly(Adaptivity):
    """complete_data: no features are left if nothing is missing."""

    def basis(self, M):
        return M.sum(axis=1, keepdims=True)


class NuclearNorm(Affine):
    """complete_data: W has a single column, and its norm is undefined."""

    def structure(self, W):
        return 0.02 * cp.normNuc(W[1:, 1:]), []


class NoCells(CountAdaptive):
    """cells: says that its basis functions are cells."""

    cells = True


class UnweightedShare(Adaptivity):
    """weights: rows are counted, regardless of their weight."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.share_ = M.mean(axis=0)
        return fitted

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), M @ self.share_ + 0.2])


class FirstRow(Adaptivity):
    """row_order: compares with the first training row."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.first_ = M[0]
        return fitted

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), (self.first_ == M).all(axis=1)])


class FirstFeature(Adaptivity):
    """permuted_features: one feature is special."""

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), M[:, 0]])


class Hidden(Adaptivity):
    """basis: what is learned is stored in the class, and changes with the next fit."""

    learned = 0.0

    def fit(self, X, M, sample_weight=None):
        Hidden.learned = np.average(M.mean(axis=1), weights=sample_weight)
        return copy.copy(self)

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), np.exp(5 * self.learned * M.sum(axis=1))])


class ShareOfOthers(Adaptivity):
    """one_feature: a share of no features."""

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), M.sum(axis=1) / np.float64(M.shape[1] - 1)])


class Boasts(CountAdaptive):
    """bounds: the weights do not contain all linear functions."""

    degree = 1


class SeenCellsOnly(FullyAdaptive):
    """cells: an unseen pattern is in no cell, and has prediction 0."""

    def basis(self, M):
        return (M[:, None] == self.patterns_).all(2)


class ShrunkenIntercept(Affine):
    """shifted_target: a penalty on the intercept."""

    def structure(self, W):
        return 0.1 * cp.sum_squares(W), []


class NoneFeasible(Affine):
    """structure: constraints that contradict each other."""

    def structure(self, W):
        return 0.0, [cp.sum(W[1:]) <= 1, cp.sum(W[1:]) >= 2]


class OutsideOfTheMask(AffineIntercept):
    """structure: requires a weight that the mask excludes."""

    def structure(self, W):
        return 0.0, [W[1:, 1:] >= 1] if W.shape[1] > 1 else []


class NeverApplied(Affine):
    """structure: its penalty is never applied."""

    def structure(self, W):
        return cp.sum_squares(W[1:]), []

    def has_structure(self):
        return False


class NeverHeld(NeverApplied):
    """structure: its constraints are never applied."""

    def structure(self, W):
        return 0.0, [W[1:] >= 0]


class FeaturesFirst(AffineIntercept):
    """columns: those of the intercept come last."""

    def columns(self, X, M):
        return np.hstack([np.where(M, 0.0, X), self.basis(M.astype(float))])


class SwappedFeatures(AffineIntercept):
    """columns: features are swapped."""

    def columns(self, X, M):
        return np.hstack([self.basis(M.astype(float)), np.where(M, 0.0, X)[:, ::-1]])


class Frame(CountAdaptive):
    """basis: a data frame."""

    def basis(self, M):
        return pd.DataFrame(super().basis(M))


class FourFeatures(Adaptivity):
    """one_feature: a weight for each of four features."""

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), M @ np.array([1.0, 2.0, 3.0, 4.0])])


class Clipped(CountAdaptive):
    """parameters: stored unchanged only if small."""

    def __init__(self, k=2):
        self.k = min(k, 3)


class OddNames(CountAdaptive):
    """printing: names for the features a, b, c, d only."""

    def names(self, feature_names):
        if feature_names[0] != "a":
            raise KeyError(feature_names[0])
        return ["1", "one", "two"]


class KeepsLambda(CountAdaptive):
    """fit: stores what cannot be pickled."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.shift_ = lambda x: x + 1
        return fitted


class KeepsDictOfArrays(CountAdaptive):
    """fit: stores a dict whose == is not True or False."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.table_ = {"share": M.mean(axis=0)}
        return fitted


class DrawsInside(Adaptivity):
    """columns: random, inside an opaque object."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.generator_ = np.random.default_rng()
        return fitted

    def basis(self, M):
        slope = copy.deepcopy(self.generator_).normal()
        return np.column_stack([np.ones(len(M)), np.exp(slope * M.sum(axis=1))])


class NegativeFactors(CountAdaptive):
    """counts: rewards large coefficients."""

    def penalty_factors(self, counts):
        return -np.ones_like(counts)


class FactorsBySize(CountAdaptive):
    """counts: factors that depend on the number of rows, which lam should."""

    def penalty_factors(self, counts):
        return counts + 1.0


class UnitsOfSquares(AffineIntercept):
    """columns: not linear in x, but with units."""

    linear_in_x = False

    def columns(self, X, M):
        return np.hstack([self.basis(M.astype(float)), np.where(M, 0.0, X**2)])


class NothingReplaced(CountAdaptive):
    """columns: the products, which are linear in x."""

    linear_in_x = False


class FewCoefficients(CountAdaptive):
    """bounds: fewer coefficients than there are."""

    def n_coefficients(self, d, n):
        return 2


class RandomGroups(AffineIntercept):
    """columns: the clusters of k-means differ between fits."""

    def fit(self, X, M):
        fitted = super().fit(X, M)
        fitted.clusters_ = KMeans(8, n_init=1, init="random").fit(np.nan_to_num(X))
        return fitted

    def columns(self, X, M):
        near = self.clusters_.predict(np.nan_to_num(X)) == 1
        return np.hstack([self.basis(M.astype(float)), np.where(M, 0.0, X) * near[:, None]])

    def linear_at_patterns(self):
        return False


class ForestOfRows(RandomGroups):
    """row_order: a forest with a seed draws rows by their positions."""

    def fit(self, X, M):
        fitted = AffineIntercept.fit(self, X, M)
        forest = RandomForestRegressor(3, max_depth=3, random_state=0)
        fitted.clusters_ = forest.fit(M, np.nanmean(np.where(M, 0.0, X) ** 2, axis=1))
        return fitted

    def columns(self, X, M):
        return np.hstack([self.basis(M.astype(float)), np.where(M, 0.0, X) * self.clusters_.predict(M)[:, None]])


BROKEN = [
    NegativeFactors, FactorsBySize, UnitsOfSquares, NothingReplaced, FewCoefficients, RandomGroups,
    SeenCellsOnly, ShrunkenIntercept, NoneFeasible, OutsideOfTheMask, NeverApplied, NeverHeld, FeaturesFirst,
    SwappedFeatures, Frame, FourFeatures, Clipped, OddNames, KeepsLambda, KeepsDictOfArrays, DrawsInside,
    Centred, RowNumbers, FlatBasis, WrongMask, WrongNames, WrongCounts, LearnsInPlace, Remembers, Scribbles,
    Draws, Rounds, LeaksNaN, ReadsHidden, Squares, ImputesOne, NotConvex, NoPair, KnownPatterns, MissingOnly,
    NuclearNorm, NoCells, UnweightedShare, FirstRow, FirstFeature, Hidden, ShareOfOthers, Boasts,
]  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_the_contract_names_what_is_broken(broken):
    expected = broken.__doc__.partition(":")[0]
    with pytest.raises(AssertionError) as failure:
        check_adaptivity(broken())
    message = str(failure.value)
    assert message.startswith(f"{broken.__name__} fails '{expected}': ")
    assert message.endswith(".")
    assert ". " not in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (SeenCellsOnly(), "7 of 16 patterns are in no cell"),
        (ShrunkenIntercept(), "structure must not penalise the intercept, row 0 of W"),
        (NoneFeasible(), "no W satisfies the constraints of structure"),
        (NeverApplied(), "has_structure is False, but structure has a penalty or constraints"),
        (FeaturesFirst(), "in the row-major order of the mask, the intercept first"),
        (SwappedFeatures(), "belongs to feature 0 and basis function 0, but it is in the units of feature 3"),
        (Frame(), "basis(M) is a DataFrame: return a numpy array of numbers, or a csr_array"),
        (FourFeatures(), "the number of features must not be fixed"),
        (Clipped(5), "the parameter k is not stored unchanged"),
        (KeepsLambda(), "cannot be pickled"),
        (NuclearNorm(), "without missing values the class can be fitted"),
        (
            RandomGroups(),
            "a randomised learner in fit (a forest, k-means, an imputer that samples) needs a random_state",
        ),
        (UnitsOfSquares(), "linear_in_x is False, but columns change with the units of features"),
        (FewCoefficients(), "n_coefficients must be an upper bound of it"),
    ],
)
def test_the_contract_says_what_to_do(broken, words):
    with pytest.raises(AssertionError) as failure:
        check_adaptivity(broken)
    assert words in str(failure.value)
    assert "tol_gap" not in str(failure.value)


def test_a_learner_that_draws_rows_is_named():
    with pytest.raises(AssertionError, match="a randomised learner draws rows by their positions"):
        dict(adaptivity_checks(ForestOfRows()))["row_order"]()


def test_a_shifted_target_is_checked_on_unseen_patterns():
    with pytest.raises(AssertionError, match="predictions for y \\+ 100"):
        dict(adaptivity_checks(SeenCellsOnly()))["shifted_target"]()


class Restless(Adaptivity):
    """What is learned depends on how often the class was fitted."""

    calls = 0

    def fit(self, X, M):
        Restless.calls += 1
        fitted = copy.copy(self)
        fitted.power_ = np.array(1.0 + Restless.calls)
        return fitted

    def basis(self, M):
        power = getattr(self, "power_", 1.0)
        return np.column_stack([np.ones(len(M)), M.sum(axis=1) ** power])


def test_folds_that_do_not_refit_are_found():
    with pytest.raises(AssertionError, match="Restless fails 'folds'"):
        dict(adaptivity_checks(Restless()))["folds"]()
