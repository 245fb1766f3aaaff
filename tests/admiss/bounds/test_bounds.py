"""The parts of Theorem 1: counts against ranks, expectations against enumeration, crossovers against a search."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln

from admiss import FiniteRegressor
from admiss.adaptivity import Adaptivity, Affine, AffineIntercept, FullyAdaptive, Polynomial, Static
from admiss.bounds import Bound, Estimate, bias_bound, coefficient_count, crossover, generalization_bound, recommend
from admiss.bounds.bias import log_elementary_symmetric
from admiss.bounds.counts import all_patterns, rank_over_patterns
from admiss.bounds.missing_law import read_missing
from admiss.datasets import Censoring, CompletelyAtRandom
from admiss.partition import Greedy


class CountAdaptive(Adaptivity):
    """Weights affine in the number of missing features."""

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), M.sum(axis=1)])


class CountAffine(CountAdaptive):
    """Affine weights, written with one basis function too many."""

    degree = 1

    def basis(self, M):
        return np.column_stack([super().basis(M), M])


class SquaredFeatures(Static):
    """Columns other than the products x_j phi_k."""

    def columns(self, X, M):
        x = np.where(M, 0.0, X)
        return np.column_stack([np.ones(len(x)), x, x.sum(axis=1)])


class SumsToOne(CountAffine):
    def structure(self, W):
        return 0.0, [W.sum() == 1]


def design(adaptivity, d):
    """The design of a class over all patterns, at random features."""
    M = np.repeat(all_patterns(d).astype(bool), d + 1, axis=0)
    X = np.where(M, np.nan, np.random.RandomState(d).standard_normal(M.shape))
    columns = adaptivity.fit(X, M).columns(X, M)
    return columns.toarray() if hasattr(columns, "toarray") else columns


# counts


@pytest.mark.parametrize("d", range(1, 7))
def test_effective_counts_are_ranks(d):
    for adaptivity in (Static(), AffineIntercept(), Affine(), FullyAdaptive(), *map(Polynomial, range(d + 1))):
        count = coefficient_count(adaptivity, d)
        assert count == np.linalg.matrix_rank(design(adaptivity, d)), adaptivity
        assert count == rank_over_patterns(adaptivity, d), adaptivity


def test_table_counts_are_those_of_table_1():
    d = 6
    assert [coefficient_count(name, d, "table") for name in ("static", "affine", "fully_adaptive")] == [6, 42, 6 * 64]
    assert [coefficient_count(("polynomial", t), d, "table") for t in (0, 1, 2, 6)] == [6, 42, 6 * 22, 6 * 64]
    assert coefficient_count("affine_intercept", d, "table") == 12


def test_a_new_class_is_counted_by_its_basis():
    assert coefficient_count(CountAdaptive(), 4) == np.linalg.matrix_rank(design(CountAdaptive(), 4)) == 10
    assert coefficient_count(CountAffine(), 4) == coefficient_count("affine", 4)
    assert coefficient_count(SquaredFeatures(), 4) == 5
    # Above 8 features the pairs of the mask, at least the rank.
    assert coefficient_count(CountAdaptive(), 40) == 2 * 41
    assert coefficient_count(CountAffine(), 40) == 42 * 41 > coefficient_count("affine", 40)
    assert coefficient_count(CountAffine(), 40, "table") == 42 * 40


def test_a_class_that_learns_its_patterns_has_no_count_for_many_features():
    class Cells(FullyAdaptive):
        pass

    assert coefficient_count(Cells(), 4) == coefficient_count("fully_adaptive", 4)
    with pytest.raises(ValueError, match="depends on the patterns it has seen"):
        coefficient_count(Cells(), 20)


@pytest.mark.parametrize("partition", ["finite", Greedy()])
def test_a_partition_found_from_the_data_is_refused(partition):
    with pytest.raises(ValueError, match="found from the data has no p"):
        coefficient_count(partition, 5)
    with pytest.raises(ValueError, match="found from the data has no p"):
        generalization_bound(100, 5, partition, 1.0, 1.0)


def test_huge_numbers_do_not_overflow():
    d, t = 1000, 10
    expected = sum(d * math.comb(d - 1, s) + math.comb(d, s) for s in range(t + 1))
    assert coefficient_count(("polynomial", t), d) == expected
    assert coefficient_count("fully_adaptive", d) == d * 2 ** (d - 1) + 2**d
    for missing in (None, 1e-6, np.eye(3, d)):
        bound = generalization_bound(1e300, d, ("polynomial", t), 1.0, 2.0, missing=missing)
        assert bound.total == bound.noise + bound.bias + bound.estimation
        assert 0 < bound.estimation < 1e-260
    fully = generalization_bound(10**310, d, "fully_adaptive", 1.0, 2.0)
    assert fully.estimation == pytest.approx(4 * (1 + 310 * math.log(10)) * (d / 2 + 1) * 2.0**1000 / 1e300 / 1e10)
    assert generalization_bound(10, 3000, "fully_adaptive", 1.0, 2.0).total == math.inf
    assert generalization_bound(10, 10**6, ("polynomial", 500), 1.0, 2.0, bias="paper").total == math.inf
    assert "e+906" in str(generalization_bound(10**400, 3000, "fully_adaptive", 1.0, 2.0))
    assert crossover("static", "fully_adaptive", 3000, 1.0, 1.0) == math.inf


# bias


def test_elementary_symmetric_polynomials():
    rows = np.random.RandomState(0).uniform(size=(4, 6))
    rows[0] = 0.0
    for k in range(7):
        expected = [sum(math.prod(S) for S in itertools.combinations(row, k)) for row in rows]
        np.testing.assert_allclose(np.exp(log_elementary_symmetric(rows, k)), expected, rtol=1e-12)
    choose = gammaln(1001) - 2 * gammaln(501)
    np.testing.assert_allclose(log_elementary_symmetric(np.full((1, 1000), 3.0), 500), choose + 500 * math.log(3.0))


def test_the_ways_to_give_a_law():
    assert read_missing(CompletelyAtRandom(0.3), 3).rates.tolist() == read_missing(0.3, 3).rates.tolist() == [0.3] * 3
    law = read_missing(np.array([[0, 1], [0, 1], [1, 1]]), 2)
    assert law.patterns.tolist() == [[0, 1], [1, 1]]
    assert law.probabilities == pytest.approx([2 / 3, 1 / 3])
    assert "an estimate" in law.text


def test_bias_of_a_mechanism_and_of_data():
    X = np.random.RandomState(0).standard_normal((400, 4))
    M = Censoring(0.05)(X, 0)
    by_hand = 4 * np.mean(np.abs(M - M.mean(axis=0)).sum(axis=1) ** 2)
    assert bias_bound("static", 4, 1.0, missing=M) == pytest.approx(min(1.0, by_hand))
    assert bias_bound("static", 4, 1.0, missing=(Censoring(0.05), X)) == pytest.approx(min(1.0, by_hand))
    assert bias_bound("affine", 4, 1.0, missing=M) < bias_bound("static", 4, 1.0, missing=M)


def test_bias_of_zero():
    for missing in (None, 0.5, 0.0, np.zeros((3, 4))):
        for full in (("polynomial", 4), "fully_adaptive"):
            assert bias_bound(full, 4, 2.0, missing=missing) == 0.0
        assert bias_bound(("polynomial", 3), 4, 2.0, missing=missing, adaptive_intercept=False) == 0.0
    assert bias_bound(("polynomial", 3), 4, 2.0, missing=0.5) == 4.0
    for never in (0.0, np.zeros((3, 4))):
        assert bias_bound("static", 4, 2.0, missing=never) == 0.0
    assert bias_bound("static", 1, 2.0, adaptive_intercept=False) == 0.0
    # y = 1 - 2 m is an intercept that depends on the pattern
    assert bias_bound("static", 1, 2.0) == 4.0
    assert bias_bound("affine", 1, 2.0) == 0.0
    assert bias_bound("fully_adaptive", 4, 2.0, bias="paper") == 0.0


def test_bias_of_classes():
    assert bias_bound("static", 5, 2.0) == 4.0
    assert bias_bound("affine_intercept", 5, 1.0, missing=0.01) == bias_bound("static", 5, 1.0, missing=0.01) < 1.0
    assert bias_bound("affine", 5, 1.0, missing=0.01) == bias_bound(("polynomial", 1), 5, 1.0, missing=0.01)
    assert bias_bound(CountAffine(), 5, 1.0, missing=0.01) == bias_bound("affine", 5, 1.0, missing=0.01)
    assert bias_bound("affine", 7, 2.0, bias="paper") == pytest.approx(7**2 * 4 / 2**2)
    assert bias_bound(CountAdaptive(), 5, 1.0, bias=0.25) == 0.25
    with pytest.raises(ValueError, match="No bias is known for CountAdaptive.*attribute 'degree'"):
        bias_bound(CountAdaptive(), 5, 1.0)
    with pytest.raises(ValueError, match="imposes a structure on its weights"):
        bias_bound(SumsToOne(), 5, 1.0)


# Theorem 1


def test_parts_and_constants():
    bound = generalization_bound(200, 4, "affine", 0.5, 3.0, c=2.0, missing=0.01)
    assert bound.noise == 0.5
    assert bound.bias == 8 * bound.b == 8 * bias_bound("affine", 4, 3.0, missing=0.01)
    assert bound.estimation == pytest.approx(2.0 * 9.0 * (1 + math.log(200)) / 200 * 21)
    assert bound.total == bound.noise + bound.bias + bound.estimation
    printed = generalization_bound(200, 4, "affine", 0.5, 3.0, c=2.0, constant="paper", count="table")
    assert printed.estimation == pytest.approx(2.0 * 3.0 * (1 + math.log(200)) / 200 * 20)
    number = generalization_bound(200, 4, "affine", 0.5, 3.0, bias=0.1, constant=7.0)
    assert (number.bias, number.estimation) == (0.8, pytest.approx(7.0 * (1 + math.log(200)) / 200 * 21))


def test_vacuous_is_above_the_bound_by_truncation():
    assert generalization_bound(1e9, 4, "affine", 0.5, 3.0).vacuous
    assert not generalization_bound(1e9, 4, "fully_adaptive", 0.5, 3.0).vacuous
    edge = 4 * 3.0**2 / 8
    assert not generalization_bound(1e300, 4, "affine", 0.0, 3.0, bias=edge * 0.999).vacuous
    assert generalization_bound(1e300, 4, "affine", 0.0, 3.0, bias=edge * 1.001).vacuous


def test_both_sides_are_printed():
    bound = generalization_bound(100, 10, "affine", 1.0, 2.0, missing=0.01)
    assert 0 < bound.lower_bias < bound.bias
    assert f"between {bound.lower_bias:.6g} and {bound.bias:.6g}" in str(bound)
    assert not bound.unknowable
    for options in ({"missing": 0.3}, {}):
        bound = generalization_bound(100, 10, ("polynomial", 3), 1.0, 2.0, **options)
        assert bound.unknowable
        assert "cannot be known from L and p" in str(bound)
        assert "cannot be known from L and p" in str(recommend(100, 10, 1.0, 2.0, [("polynomial", 3)], **options))
    # no lower side is known for a law of rows, for a new class, or for a bias that is not the proved one
    M = np.random.RandomState(0).uniform(size=(50, 5)) < 0.1
    for F, options in (("affine", {"missing": M}), (CountAffine(), {"missing": 0.1}), ("affine", {"bias": "paper"})):
        bound = generalization_bound(100, 5, F, 1.0, 2.0, **options)
        assert bound.lower_bias is None
        assert "two-sided" not in str(bound)


def test_zero_of_the_fully_adaptive_class_is_exact():
    for rule in ("paper", "proved"):
        bound = generalization_bound(100, 4, "fully_adaptive", 1.0, 1.0, bias=rule)
        assert bound.is_bound
        assert "bias        0 (exact)" in str(bound)
    assert not generalization_bound(100, 4, ("polynomial", 4), 1.0, 1.0, bias="paper").is_bound


def test_an_intercept_without_adaptivity_has_a_bias():
    class ConstantIntercept(Polynomial):
        degree = 1

        def __init__(self):
            super().__init__(1)

        def mask(self, d):
            mask = super().mask(d)
            mask[0, 1:] = False
            return mask

    with pytest.raises(ValueError, match="weights and the intercept of ConstantIntercept"):
        bias_bound(ConstantIntercept(), 4, 1.0, missing=0.02)
    without = bias_bound(ConstantIntercept(), 4, 1.0, missing=0.02, adaptive_intercept=False)
    assert without == bias_bound("affine", 4, 1.0, missing=0.02, adaptive_intercept=False) < 1


def test_text_states_the_caveats():
    proved = str(generalization_bound(100, 4, "affine", 1.0, 1.0))
    assert "not a bound" not in proved
    for text in ("does not certify", "without a penalty", "truncated", "the worst of all laws"):
        assert text in proved
    for printed in ({"bias": "paper"}, {"constant": "paper"}):
        bound = generalization_bound(100, 4, "affine", 1.0, 1.0, **printed)
        assert not bound.is_bound
        total = next(line for line in str(bound).splitlines() if line.startswith("total"))
        assert "as printed, not a bound" in total


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"n": 0}, "n must be a finite number of rows, at least 1"),
        ({"n": math.nan}, "n must be"),
        ({"n": math.inf}, "n must be"),
        ({"n": "100"}, "n must be"),
        ({"d": 0}, "d must be a positive whole number"),
        ({"d": 2.5}, "d must be a positive whole number"),
        ({"adaptivity": ("polynomial", 6)}, "from 0 to the number of features 5, not 6"),
        ({"adaptivity": Polynomial(degree=-1)}, "from 0 to the number of features 5, not -1"),
        ({"adaptivity": ("spline", 2)}, "written"),
        ({"adaptivity": "cubic"}, "Unknown adaptivity 'cubic'"),
        ({"sigma2": -1.0}, "sigma2 must be a finite non-negative number"),
        ({"sigma2": math.nan}, "sigma2 must be"),
        ({"L": 0.0}, "L must be a positive number"),
        ({"L": -2.0}, "L must be"),
        ({"L": math.inf}, "L must be"),
        ({"L": 10**400}, "L must be"),
        ({"c": 0.0}, "c must be"),
        ({"bias": "none"}, "bias must be 'proved', 'paper', 'moments' or a non-negative number"),
        ({"bias": -0.1}, "bias must be"),
        ({"constant": "L"}, "constant must be 'proved', 'paper' or a positive number"),
        ({"constant": 0.0}, "constant must be"),
        ({"count": "all"}, "count must be one of 'effective', 'table'"),
        ({"missing": np.zeros((3, 4))}, r"missing has shape \(3, 4\): give rows of 5 features"),
        ({"missing": np.full((3, 5), np.nan)}, "matrix of 0 and 1, such as isnan"),
        ({"missing": [0.1, 0.1, 0.1, 0.1, 1.1]}, "between 0 and 1"),
        ({"missing": -0.1}, "between 0 and 1"),
        ({"missing": Censoring(0.1)}, r"use missing=\(mechanism, X\)"),
    ],
)
def test_invalid_arguments_get_one_sentence(change, sentence):
    arguments = {"n": 100, "d": 5, "adaptivity": "affine", "sigma2": 1.0, "L": 1.0, **change}
    with pytest.raises(ValueError, match=sentence) as error:
        generalization_bound(**arguments)
    assert "\n" not in str(error.value)


# crossovers


def first_win(rich, poor, largest, **rules):
    """The smallest integer n at which the richer class has the smaller bound, by trying all of them."""
    wins = [
        generalization_bound(n, adaptivity=rich, **rules).total
        <= generalization_bound(n, adaptivity=poor, **rules).total
        for n in range(1, largest)
    ]
    first = wins.index(True)
    assert all(wins[first:])
    return first + 1


@pytest.mark.parametrize(
    ("poor", "rich", "rules"),
    [
        ("static", "affine", {"d": 5, "sigma2": 1.0, "L": 1.0, "missing": 0.01}),
        ("affine", ("polynomial", 2), {"d": 4, "sigma2": 1.0, "L": 2.0, "missing": 0.03, "count": "table"}),
        ("affine", "fully_adaptive", {"d": 6, "sigma2": 9.0, "L": 2.0}),
        ("static", "fully_adaptive", {"d": 5, "sigma2": 0.1, "L": 0.5, "constant": "paper", "bias": "paper"}),
    ],
)
def test_crossover_is_where_the_bounds_cross(poor, rich, rules):
    n = crossover(poor, rich, **rules)
    assert n == crossover(rich, poor, **rules)
    assert n > 1
    assert math.ceil(n) == first_win(rich, poor, math.ceil(1.5 * n) + 20, **rules)
    a, b = (generalization_bound(n, adaptivity=adaptivity, **rules).total for adaptivity in (poor, rich))
    assert a == pytest.approx(b, rel=1e-12)


def test_crossover_never_and_always():
    assert crossover("static", "affine", 5, 1.0, 1.0) is None
    assert crossover("static", "affine_intercept", 5, 1.0, 1.0, missing=0.01) is None
    assert crossover("affine", ("polynomial", 1), 5, 1.0, 1.0) is None
    assert crossover("static", "affine", 5, 1.0, 1.0, c=1e-9, missing=0.01) == 1.0
    assert crossover("static", "static", 5, 1.0, 1.0, bias=(0.2, 0.1)) == 1.0
    far = crossover("static", "fully_adaptive", 900, 1.0, 1.0)
    assert 1e270 < far < math.inf
    a, b = (generalization_bound(far, 900, name, 1.0, 1.0).total for name in ("static", "fully_adaptive"))
    assert a == pytest.approx(b)


def test_crossover_takes_estimated_biases():
    n = crossover("static", "affine", 5, 1.0, 1.0, bias=(0.3, 0.1))
    a, b = (
        generalization_bound(n, 5, *pair, 1.0, 1.0, bias=e).total
        for pair, e in ((("static",), 0.3), (("affine",), 0.1))
    )
    assert a == pytest.approx(b)
    with pytest.raises(ValueError, match="3 entries for 2 classes"):
        crossover("static", "affine", 5, 1.0, 1.0, bias=(0.3, 0.2, 0.1))


def test_recommend():
    rules = {"sigma2": 1.0, "L": 1.0, "missing": 0.02}
    found = set()
    for n in (1, 10, 100, 1000, 10_000, 10**6):
        ranking = recommend(n, 4, **rules)
        totals = [bound.total for bound in ranking.ranking]
        assert totals == sorted(totals)
        assert isinstance(ranking.best, Bound)
        assert ranking.best.total == min(
            generalization_bound(n, 4, name, **rules).total
            for name in ("static", "affine", *(("polynomial", t) for t in (2, 3, 4)))
        )
        assert ranking.table["class"][0] == ranking.best.name
        found.add(ranking.best.name)
    assert {"static", "order 4"} < found
    # Between two crossovers the middle class is best.
    low, high = crossover("static", "affine", 4, **rules), crossover("affine", ("polynomial", 2), 4, **rules)
    between = recommend(math.sqrt(low * high), 4, classes=["static", "affine", ("polynomial", 2)], **rules)
    assert between.best.name == "affine"
    estimated = recommend(1e9, 4, 1.0, 1.0, classes=["static", CountAdaptive()], bias=[0.3, 0.1])
    assert estimated.best.name == "CountAdaptive()"
    assert "say nothing" in str(recommend(10, 30, 1.0, 1.0))
    assert "say nothing" not in str(recommend(1e9, 4, **rules))
    with pytest.raises(ValueError, match="no class"):
        recommend(10, 4, 1.0, 1.0, classes=[])


def test_caveats_of_what_is_not_a_bound():
    M = np.random.RandomState(0).uniform(size=(50, 4)) < 0.1
    assert generalization_bound(100, 4, "affine", 1.0, 1.0).is_bound
    assert generalization_bound(100, 4, "affine", 1.0, 1.0, missing=0.1).is_bound
    for options, words in (
        ({"missing": M}, "an estimate"),
        ({"bias": 0.1}, "given numbers"),
        ({"constant": 2.0}, "given numbers"),
        ({"count": "table"}, "without the intercept"),
        ({"bias": "paper"}, "as printed, not a bound"),
        ({"constant": "paper"}, "as printed, not a bound"),
    ):
        bound = generalization_bound(100, 4, "affine", 1.0, 1.0, **options)
        assert not bound.is_bound
        assert words in bound.caveat
        assert bound.caveat in str(bound)
        assert bound.caveat in str(recommend(100, 4, 1.0, 1.0, **options))


def test_a_bound_on_the_data_is_not_enough():
    """Correlated features whose large weights cancel: |f*| <= 1 on the data, and the static bias is above the bound."""
    p, z = 0.01, np.array([1.0, 1.0, -1.0, -1.0])
    x = np.column_stack([30 * z, -30 * z + np.array([1.0, -1.0, 1.0, -1.0])])
    rows, y, weight = [], [], []
    for m in all_patterns(2):
        for one in x:
            rows.append([1.0, *((1 - m) * one)])
            y.append(one.sum() if not m.any() else 0.0)
            weight.append(np.prod(np.where(m, p, 1 - p)) / len(x))
    assert np.abs(y).max() <= 1
    root = np.sqrt(weight)
    A, b = np.array(rows) * root[:, None], np.array(y) * root
    bias = ((A @ np.linalg.lstsq(A, b, rcond=None)[0] - b) ** 2).sum()
    assert bias > 0.9
    # With L for the box that contains 0, which is 30 here, it is a bound.
    assert bias_bound("static", 2, 1.0, missing=p) < 0.1 < bias < bias_bound("static", 2, 30.0, missing=p)


def test_estimates_can_be_given():
    estimate = Estimate(0.25, 0.1, "some")
    bound = generalization_bound(100, 4, "affine", 1.0, 1.0, bias=estimate)
    assert bound.b == 0.25
    assert "standard error 0.8" in str(bound)
    assert bias_bound("affine", 4, 1.0, bias=Estimate(-0.1, 0.1, "below 0")) == 0.0
    assert crossover("static", "affine", 4, 1.0, 1.0, bias=[estimate, Estimate(0.0, 0.1, "none")]) > 1


def test_a_declared_degree_is_checked():
    class Constant(Adaptivity):
        degree = 3

        def basis(self, M):
            return np.ones((len(M), 1))

    class OnlyConstantWeights(Polynomial):
        def mask(self, d):
            mask = super().mask(d)
            mask[1:, 1:] = False
            return mask

    with pytest.raises(ValueError, match="do not contain all polynomials"):
        bias_bound(Constant(), 4, 1.0, missing=0.02)
    with pytest.raises(ValueError, match="No bias is known"):
        bias_bound(OnlyConstantWeights(2), 4, 1.0, missing=0.02)
    with pytest.raises(ValueError, match="has no p"):
        coefficient_count(FiniteRegressor(), 5)
    with pytest.raises(ValueError, match="a 0/1 matrix, probabilities or a mechanism"):
        bias_bound("static", 4, 1.0, missing="often")


def test_crossovers_of_extreme_constants():
    assert crossover("static", "affine", 4, 0.0, 1e-150, c=1e-150, missing=0.01) == 1.0
    assert 1e140 < crossover("static", "affine", 4, 0.0, 1.0, c=1e140, missing=0.01) < 1e145
