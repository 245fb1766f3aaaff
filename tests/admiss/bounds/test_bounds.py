"""The parts of Theorem 1: counts against ranks, expectations against enumeration, crossovers against a search."""

import inspect
import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln

from admiss import FiniteRegressor, bounds
from admiss.adaptivity import (
    Adaptivity,
    Affine,
    AffineIntercept,
    FullyAdaptive,
    MissingnessAvoiding,
    Polynomial,
    Static,
)
from admiss.bounds import (
    BoundSetting,
    Estimate,
    bias_bound,
    coefficient_count,
    crossover,
    generalization_bound,
    recommend,
)
from admiss.bounds.bias import log_elementary_symmetric
from admiss.bounds.counts import all_patterns, dense, rank_over_patterns
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
    return dense(adaptivity.fit(X, M).columns(X, M))


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
    with pytest.raises(ValueError, match="Cells.* 8 features"):
        coefficient_count(Cells(), 20)


@pytest.mark.parametrize("partition", ["finite", Greedy(), FiniteRegressor()])
def test_a_partition_found_from_the_data_is_refused(partition):
    with pytest.raises(ValueError, match="partition"):
        coefficient_count(partition, 5)


def test_huge_numbers_do_not_overflow():
    d, t = 1000, 10
    expected = sum(d * math.comb(d - 1, s) + math.comb(d, s) for s in range(t + 1))
    assert coefficient_count(("polynomial", t), d) == expected
    assert coefficient_count("fully_adaptive", d) == d * 2 ** (d - 1) + 2**d
    for missing in (None, 1e-6, np.eye(3, d)):
        bound = generalization_bound(BoundSetting(d, 1.0, 2.0, missing=missing), 1e300, ("polynomial", t))
        assert bound.total == bound.noise + bound.bias + bound.estimation
        assert 0 < bound.estimation < 1e-260
    fully = generalization_bound(BoundSetting(d, 1.0, 2.0), 10**310, "fully_adaptive")
    assert fully.estimation == pytest.approx(4 * (1 + 310 * math.log(10)) * (d / 2 + 1) * 2.0**1000 / 1e300 / 1e10)
    many = BoundSetting(3000, 1.0, 2.0)
    assert generalization_bound(many, 10, "fully_adaptive").total == math.inf
    assert "e+906" in str(generalization_bound(many, 10**400, "fully_adaptive"))
    assert crossover(many, "static", "fully_adaptive") == math.inf
    printed = BoundSetting(10**6, 1.0, 2.0, bias="paper")
    assert generalization_bound(printed, 10, ("polynomial", 500)).total == math.inf


# bias


def test_elementary_symmetric_polynomials():
    rows = np.random.RandomState(0).uniform(size=(4, 6))
    rows[0] = 0.0
    for k in range(7):
        expected = [sum(math.prod(S) for S in itertools.combinations(row, k)) for row in rows]
        np.testing.assert_allclose(np.exp(log_elementary_symmetric(rows, k)), expected, rtol=1e-12)
    choose = gammaln(1001) - 2 * gammaln(501)
    np.testing.assert_allclose(log_elementary_symmetric(np.full((1, 1000), 3.0), 500), choose + 500 * math.log(3.0))


def test_bias_of_a_mechanism_and_of_data():
    X = np.random.RandomState(0).standard_normal((400, 4))
    M = Censoring(0.05)(X, 0)
    by_hand = 4 * np.mean(np.abs(M - M.mean(axis=0)).sum(axis=1) ** 2)
    assert bias_bound("static", 4, 1.0, missing=M) == pytest.approx(min(1.0, by_hand))
    assert bias_bound("static", 4, 1.0, missing=(Censoring(0.05), X)) == pytest.approx(min(1.0, by_hand))
    assert bias_bound("affine", 4, 1.0, missing=M) < bias_bound("static", 4, 1.0, missing=M)
    rare = bias_bound("affine", 4, 1.0, missing=CompletelyAtRandom(0.01))
    assert rare == bias_bound("affine", 4, 1.0, missing=0.01) == bias_bound("affine", 4, 1.0, missing=[0.01] * 4)


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
    for printed in ("paper", "table"):
        assert bias_bound("fully_adaptive", 4, 2.0, bias=printed) == 0.0


def test_bias_of_classes():
    assert bias_bound("static", 5, 2.0) == 4.0
    assert bias_bound("affine_intercept", 5, 1.0, missing=0.01) == bias_bound("static", 5, 1.0, missing=0.01) < 1.0
    assert bias_bound("affine", 5, 1.0, missing=0.01) == bias_bound(("polynomial", 1), 5, 1.0, missing=0.01)
    assert bias_bound(CountAffine(), 5, 1.0, missing=0.01) == bias_bound("affine", 5, 1.0, missing=0.01)
    assert bias_bound("affine", 7, 2.0, bias="paper") == pytest.approx(7**2 * 4 / 2**2)
    assert bias_bound(("polynomial", 2), 7, 2.0, bias="table") == pytest.approx(7**3 * 4 / 3**9)
    assert bias_bound(CountAdaptive(), 5, 1.0, bias=0.25) == 0.25
    with pytest.raises(ValueError, match="CountAdaptive.*'degree'"):
        bias_bound(CountAdaptive(), 5, 1.0)
    with pytest.raises(ValueError, match="SumsToOne.*structure"):
        bias_bound(SumsToOne(), 5, 1.0)


# Theorem 1


def test_parts_and_constants():
    setting = {"d": 4, "sigma2": 0.5, "L": 3.0}
    bound = generalization_bound(BoundSetting(**setting, c=2.0, missing=0.01), 200, "affine")
    assert bound.bias == 8 * bound.b == 8 * bias_bound("affine", 4, 3.0, missing=0.01)
    assert bound.estimation == pytest.approx(2.0 * 9.0 * (1 + math.log(200)) / 200 * 21)
    assert bound.total == 0.5 + bound.bias + bound.estimation
    printed = generalization_bound(BoundSetting(**setting, c=2.0, constant="paper", count="table"), 200, "affine")
    assert printed.estimation == pytest.approx(2.0 * 3.0 * (1 + math.log(200)) / 200 * 20)
    number = generalization_bound(BoundSetting(**setting, bias=0.1, constant=7.0), 200, "affine")
    assert (number.bias, number.estimation) == (0.8, pytest.approx(7.0 * (1 + math.log(200)) / 200 * 21))


def test_vacuous_is_above_the_bound_by_truncation():
    assert generalization_bound(BoundSetting(4, 0.5, 3.0), 1e9, "affine").vacuous
    assert not generalization_bound(BoundSetting(4, 0.5, 3.0), 1e9, "fully_adaptive").vacuous
    edge = 4 * 3.0**2 / 8
    assert not generalization_bound(BoundSetting(4, 0.0, 3.0, bias=edge * 0.999), 1e300, "affine").vacuous
    assert generalization_bound(BoundSetting(4, 0.0, 3.0, bias=edge * 1.001), 1e300, "affine").vacuous


def test_both_sides_are_printed():
    bound = generalization_bound(BoundSetting(10, 1.0, 2.0, missing=0.01), 100, "affine")
    assert 0 < bound.lower_bias < bound.bias
    assert f"between {bound.lower_bias:.6g} and {bound.bias:.6g}" in str(bound)
    assert not bound.unknowable
    for missing in (0.3, None):
        setting = BoundSetting(10, 1.0, 2.0, missing=missing)
        bound = generalization_bound(setting, 100, ("polynomial", 3))
        assert bound.unknowable
        assert "cannot be known" in str(bound)
        assert "cannot be known" in str(recommend(setting, 100, [("polynomial", 3)]))
    # no lower side is known for a law of rows, for a new class, or for a bias that is not the proved one
    M = np.random.RandomState(0).uniform(size=(50, 5)) < 0.1
    for F, options in (("affine", {"missing": M}), (CountAffine(), {"missing": 0.1}), ("affine", {"bias": "paper"})):
        bound = generalization_bound(BoundSetting(5, 1.0, 2.0, **options), 100, F)
        assert bound.lower_bias is None
        assert "two-sided" not in str(bound)


def test_zero_of_the_fully_adaptive_class_is_exact():
    for rule in ("paper", "proved"):
        setting = BoundSetting(4, 1.0, 1.0, bias=rule)
        assert generalization_bound(setting, 100, "fully_adaptive").is_bound
        assert "bias        0 (exact)" in str(generalization_bound(setting, 100, "fully_adaptive"))
    assert not generalization_bound(BoundSetting(4, 1.0, 1.0, bias="paper"), 100, ("polynomial", 4)).is_bound


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ""),
        ({"missing": 0.1}, ""),
        ({"missing": np.eye(4)}, "an estimate"),
        ({"bias": 0.1}, "given numbers"),
        ({"constant": 2.0}, "given numbers"),
        ({"count": "table"}, "without the intercept"),
        ({"bias": "paper"}, "as printed, not a bound"),
        ({"bias": "table"}, "as printed, not a bound"),
        ({"constant": "paper"}, "as printed, not a bound"),
    ],
)
def test_caveats_of_what_is_not_a_bound(options, words):
    setting = BoundSetting(4, 1.0, 1.0, **options)
    bound = generalization_bound(setting, 100, "affine")
    text = str(bound)
    for always in ("does not certify", "without a penalty", "truncated"):
        assert always in text
    assert bound.is_bound == (not words)
    assert words in bound.caveat
    total = next(line for line in text.splitlines() if line.startswith("total"))
    assert bound.caveat in total
    assert ("not a bound" in text) == bool(words)
    assert bound.caveat in str(recommend(setting, 100))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("d", value) for value in (0, 2.5, "5")),
        *(("sigma2", value) for value in (-1.0, math.nan, True)),
        *(("L", value) for value in (0.0, -2.0, math.inf, 10**400)),
        ("c", 0.0),
        *(("bias", value) for value in ("none", -0.1, [0.1, "none"])),
        *(("constant", value) for value in ("L", 0.0)),
        *(("count", value) for value in ("all", 3)),
    ],
)
def test_invalid_settings_get_one_sentence(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be [^\n]*$"):
        BoundSetting(**{"d": 5, "sigma2": 1.0, "L": 1.0, name: value})


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        (np.zeros((3, 4)), "5 features"),
        (np.full((3, 5), np.nan), "0 and 1"),
        ([0.1, 0.1, 0.1, 0.1, 1.1], "between 0 and 1"),
        (-0.1, "between 0 and 1"),
        (Censoring(0.1), r"missing=\(mechanism, X\)"),
        ("often", "mechanism"),
    ],
)
def test_invalid_laws_get_one_sentence(missing, words):
    with pytest.raises(ValueError, match=f"^[^\n]*{words}[^\n]*$"):
        generalization_bound(BoundSetting(5, 1.0, 1.0, missing=missing), 100, "affine")


def test_invalid_rows_and_classes_get_one_sentence():
    setting = BoundSetting(5, 1.0, 1.0)
    for n in (0, math.nan, math.inf, "100"):
        with pytest.raises(ValueError, match="^n must be"):
            generalization_bound(setting, n, "affine")
    for adaptivity, words in (
        (("polynomial", 6), "from 0 to .* 5, not 6"),
        (Polynomial(degree=-1), "from 0 to .* 5, not -1"),
        (("spline", 2), "'polynomial', t"),
        ("cubic", "'cubic'"),
    ):
        with pytest.raises(ValueError, match=words):
            generalization_bound(setting, 100, adaptivity)
    with pytest.raises(ValueError, match="^bias must be"):
        generalization_bound(BoundSetting(5, 1.0, 1.0, bias=(0.1, 0.2)), 100, "affine")


FORMER_CALLS = {
    "generalization_bound": ((100, 4, "affine", 1.0, 2.0, 1.0, "paper"), (100, "affine")),
    "crossover": (("static", "affine", 4, 1.0, 2.0), ("static", "affine")),
    "recommend": ((100, 4, 1.0, 2.0, ["static", "affine"]), (100, ["static", "affine"])),
    "plot_bounds": ((4, 1.0, 2.0, ["static", "affine"], (10, 100)), (["static", "affine"], (10, 100))),
    "plot_bias_estimation": ((100, 4, 1.0, 2.0), (100,)),
}


@pytest.mark.parametrize("name", FORMER_CALLS)
def test_former_calls_are_as_before_and_warn(name):
    function = getattr(bounds, name)
    former, rest = FORMER_CALLS[name]
    setting = BoundSetting(4, 1.0, 2.0, bias="paper", missing=0.01)
    with pytest.warns(FutureWarning, match=f"{name} .*BoundSetting") as seen:
        found = function(*former, missing=0.01, **({} if "paper" in former else {"bias": "paper"}))
    assert [warning.filename for warning in seen] == [__file__]
    expected = function(setting, *rest)
    if name.startswith("plot"):
        found, expected = ([list(line.get_ydata()) for line in ax.lines] for ax in (found, expected))
    assert str(found) == str(expected)
    with pytest.warns(FutureWarning), pytest.raises(TypeError, match="sigma2"):
        function(*former, sigma2=1.0)


def test_at_most_eight_parameters():
    functions = [item for item in (getattr(bounds, name) for name in bounds.__all__) if inspect.isfunction(item)]
    assert max(len(inspect.signature(function).parameters) for function in functions) <= 8


# crossovers


def first_win(setting, rich, poor, largest):
    """The smallest integer n at which the richer class has the smaller bound, by trying all of them."""
    wins = [
        generalization_bound(setting, n, rich).total <= generalization_bound(setting, n, poor).total
        for n in range(1, largest)
    ]
    first = wins.index(True)
    assert all(wins[first:])
    return first + 1


@pytest.mark.parametrize(
    ("poor", "rich", "setting"),
    [
        ("static", "affine", BoundSetting(5, 1.0, 1.0, missing=0.01)),
        ("affine", ("polynomial", 2), BoundSetting(4, 1.0, 2.0, missing=0.03, count="table")),
        ("affine", "fully_adaptive", BoundSetting(6, 9.0, 2.0)),
        ("static", "fully_adaptive", BoundSetting(5, 0.1, 0.5, constant="paper", bias="paper")),
    ],
)
def test_crossover_is_where_the_bounds_cross(poor, rich, setting):
    n = crossover(setting, poor, rich)
    assert n == crossover(setting, rich, poor)
    assert n > 1
    assert math.ceil(n) == first_win(setting, rich, poor, math.ceil(1.5 * n) + 20)
    a, b = (generalization_bound(setting, n, F).total for F in (poor, rich))
    assert a == pytest.approx(b, rel=1e-12)


def test_crossover_never_and_always():
    worst = BoundSetting(5, 1.0, 1.0)
    rare = BoundSetting(5, 1.0, 1.0, missing=0.01)
    assert crossover(worst, "static", "affine") is None
    assert crossover(rare, "static", "affine_intercept") is None
    assert crossover(worst, "affine", ("polynomial", 1)) is None
    assert crossover(BoundSetting(5, 1.0, 1.0, c=1e-9, missing=0.01), "static", "affine") == 1.0
    assert crossover(BoundSetting(5, 1.0, 1.0, bias=(0.2, 0.1)), "static", "static") == 1.0
    many = BoundSetting(900, 1.0, 1.0)
    far = crossover(many, "static", "fully_adaptive")
    assert 1e270 < far < math.inf
    a, b = (generalization_bound(many, far, name).total for name in ("static", "fully_adaptive"))
    assert a == pytest.approx(b)
    assert crossover(BoundSetting(4, 0.0, 1e-150, c=1e-150, missing=0.01), "static", "affine") == 1.0
    assert 1e140 < crossover(BoundSetting(4, 0.0, 1.0, c=1e140, missing=0.01), "static", "affine") < 1e145


def test_one_bias_for_each_class():
    n = crossover(BoundSetting(5, 1.0, 1.0, bias=(0.3, 0.1)), "static", "affine")
    a, b = (
        generalization_bound(BoundSetting(5, 1.0, 1.0, bias=bias), n, F).total
        for F, bias in (("static", 0.3), ("affine", 0.1))
    )
    assert a == pytest.approx(b)
    with pytest.raises(ValueError, match="3 entries for 2 classes"):
        crossover(BoundSetting(5, 1.0, 1.0, bias=(0.3, 0.2, 0.1)), "static", "affine")


def test_recommend():
    setting = BoundSetting(4, 1.0, 1.0, missing=0.02)
    classes = ["static", "affine", *(("polynomial", t) for t in (2, 3, 4))]
    best_names = set()
    for n in (1, 10, 100, 1000, 10_000, 10**6):
        ranking = recommend(setting, n)
        assert ranking.best.total == min(generalization_bound(setting, n, F).total for F in classes)
        assert ranking.table["class"][0] == ranking.best.name
        best_names.add(ranking.best.name)
    assert {"static", "order 4"} < best_names
    # Between two crossovers the middle class is best.
    low, high = crossover(setting, "static", "affine"), crossover(setting, "affine", ("polynomial", 2))
    between = recommend(setting, math.sqrt(low * high), ["static", "affine", ("polynomial", 2)])
    assert between.best.name == "affine"
    estimated = recommend(BoundSetting(4, 1.0, 1.0, bias=[0.3, 0.1]), 1e9, ["static", CountAdaptive()])
    assert estimated.best.name == "CountAdaptive()"
    assert "say nothing" in str(recommend(BoundSetting(30, 1.0, 1.0), 10))
    assert "say nothing" not in str(recommend(setting, 1e9))
    with pytest.raises(ValueError, match="no class"):
        recommend(setting, 10, [])


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
    bound = generalization_bound(BoundSetting(4, 1.0, 1.0, bias=estimate), 100, "affine")
    assert bound.b == 0.25
    assert "standard error 0.8" in str(bound)
    assert bias_bound("affine", 4, 1.0, bias=Estimate(-0.1, 0.1, "below 0")) == 0.0
    two = BoundSetting(4, 1.0, 1.0, bias=[estimate, Estimate(0.0, 0.1, "none")])
    assert crossover(two, "static", "affine") > 1


class Masked(Polynomial):
    """Affine weights and intercept without some of the pairs."""

    degree = 1

    def __init__(self, rows=0):
        super().__init__(1)
        self.rows = rows

    def mask(self, d):
        mask = super().mask(d)
        mask[self.rows, 1:] = False
        return mask


class OneFunction(Affine):
    def basis(self, M):
        return np.ones((len(M), 1))


@pytest.mark.parametrize("adaptivity", [MissingnessAvoiding(), OneFunction()])
def test_the_degree_of_a_parent_is_not_inherited(adaptivity):
    """Beyond 8 features it could not be checked, and the bias would be too small."""
    with pytest.raises(ValueError, match="'degree'"):
        bias_bound(adaptivity, 20, 1.0, missing=0.01)


def test_a_declared_degree_is_checked():
    class Constant(Adaptivity):
        degree = 3

        def basis(self, M):
            return np.ones((len(M), 1))

    for adaptivity, words in (
        (Constant(), "Constant.*'degree'"),
        (Masked(slice(1, None)), "weights .* Masked.*'degree'"),
        (Masked(0), "intercept of Masked"),
    ):
        with pytest.raises(ValueError, match=words):
            bias_bound(adaptivity, 4, 1.0, missing=0.02)
    without = bias_bound(Masked(0), 4, 1.0, missing=0.02, adaptive_intercept=False)
    assert without == bias_bound("affine", 4, 1.0, missing=0.02, adaptive_intercept=False) < 1
