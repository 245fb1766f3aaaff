"""The paper's claims: verdicts, standard errors, and directions on fabricated results."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import ttest_ind

from experiments.catalogue import CATALOGUE
from experiments.paper.claims import (
    CONFIRMED,
    NOT_CONFIRMED,
    NOT_MEASURED,
    TWO_TO_TEN,
    Measured,
    combined,
    jackknife,
    judge,
    picked_lead,
    relative_gain,
)
from experiments.paper.real_design.claims import REAL_DESIGN_CLAIMS
from experiments.paper.sections import claims_section
from experiments.paper.synthetic.claims import SYNTHETIC_CLAIMS
from tests.experiments.paper.fabricated import real_table, synthetic_table

CLAIMS = {"synthetic": SYNTHETIC_CLAIMS, "real-design": REAL_DESIGN_CLAIMS}


def test_the_jackknife_has_the_pick_inside():
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 6))
    mean = jackknife(6, lambda kept: float(a[kept].mean()))
    assert mean.error == pytest.approx(a.std(ddof=1) / 6**0.5)
    close = jackknife(6, lambda kept: picked_lead([a], [b, b + 0.001 * c], kept))
    without = [min(np.delete(a - rival, unit).mean() for rival in (b, b + 0.001 * c)) for unit in range(6)]
    assert close.error == pytest.approx((5 / 6 * np.sum((without - np.mean(without)) ** 2)) ** 0.5)


def test_strata_have_the_freedom_of_welch():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=5), 3 * rng.normal(size=8)
    parts = [Measured(x.mean(), x.std(ddof=1) / len(x) ** 0.5, len(x)) for x in (a, b)]
    both = combined(parts, [1.0, -1.0])
    interval = ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert both.interval() == pytest.approx((interval.low, interval.high))
    assert combined([parts[0], Measured(1.0, None, 1)], [0.5, 0.5]).interval() is None


def test_no_claim_is_counted_twice():
    for claims in CLAIMS.values():
        assert len({(claim.quantity, claim.rule) for claim in claims}) == len(claims)


def test_the_reading_of_two_to_ten_percent_is_reported():
    # .646, .531, .639, .525 against .569, .478: 7.7, 5.3, 7.0, 4.7 points, and 13.5, 11.1, 12.3, 9.8 percent
    assert (
        "inside in 4 of 4 as points and 1 of 4 as percent"
        in claims_section(CLAIMS["synthetic"], synthetic_table()).text
    )


def test_relative_gain_has_the_error_of_the_delta_method():
    rng = np.random.default_rng(0)
    base = 1 + 0.02 * rng.normal(size=400)
    ours = 1.1 * base + 0.02 * rng.normal(size=400)
    found = relative_gain(ours, base, 0.1)
    ratio = ours.mean() / base.mean()
    assert found.value == pytest.approx(ratio - 1.1)
    delta = np.std(ours - ratio * base, ddof=1) / base.mean() / np.sqrt(400)
    assert found.error == pytest.approx(delta, rel=0.01)


def test_claims_on_the_authors_own_averages():
    judged = judge(CLAIMS["synthetic"], synthetic_table())
    verdicts = {(each.claim.words, each.claim.quantity): each for each in judged}
    assert len(verdicts) == len(judged)

    def of(words, quantity=""):
        (each,) = [each for key, each in verdicts.items() if words in key[0] and quantity in key[1]]
        return each

    gain = of("(adaptive, linear; percent)")
    assert gain.measured.value == pytest.approx(0.646 / 0.569 - 1, abs=0.002)
    assert of("(adaptive, linear; points)").verdict == CONFIRMED
    strictly = of("RF with MIA is strictly worse")
    assert (strictly.verdict, strictly.measured.units) == (CONFIRMED, 5)
    assert strictly.measured.value == pytest.approx(0.544 - 0.494, abs=0.002)
    assert of("neural network", "MCAR, NN").verdict == NOT_CONFIRMED  # .363 against .430 of mice
    best = of("dominate all the benchmarks", "Adaptive LR - best minus the strongest benchmark, censoring, linear")
    assert best.verdict == CONFIRMED
    assert best.measured.value == pytest.approx(0.646 - 0.593, abs=0.002)
    both = of("deteriorates when data is not MAR (mice)")
    linear, nn = 0.646 - 0.464 - (0.562 - 0.561), 0.531 - 0.348 - (0.363 - 0.430)
    assert both.measured.value == pytest.approx((linear + nn) / 2, abs=0.002)
    assert both.measured.units == 10
    assert both.measured.error < 0.001  # kinds of signals differ by .03 here, signals of a kind by next to nothing


def synthetic_story(method, mechanism, signal):
    """Levels as the paper describes them, with wide margins."""
    if mechanism == "mcar":
        return (
            0.4
            if method in ("CART MIA", "RF MIA", "XGBoost")
            else 0.5
            if method in ("Finite", "Mean - linear")
            else 0.6
        )
    ours = ("Adaptive LR - best", "Joint - best", "Affine intercept", "Affine")
    return 0.8 if method in ours else {"RF MIA": 0.79 if signal == "nn" else 0.7, "Mean - best": 0.6}.get(method, 0.5)


def real_story(method, design, k):
    """Accuracies as the paper describes them, with wide margins."""
    real = design in ("regression", "binary")
    if method in ("Complete features - best", "Joint - tree"):
        return 0.2
    if method == "Finite" or (method.startswith("Joint - l") and real):
        return 0.4
    if method in ("Joint - forest", "Joint - XGBoost"):
        return 0.7 if real else 0.5
    if method == "Mean - best":
        return {"am": 0.6 - 0.01 * (k or 0), "nmar": 0.69}.get(design, 0.7)
    if method == "Affine intercept" and real:
        return 0.75 if design == "regression" else 0.72
    return 0.4 if method in ("RF MIA", "XGBoost") else 0.7


@pytest.mark.slow
def test_synthetic_claims_can_be_confirmed_and_refuted():
    seen = {}
    for seed in range(-4, 16):  # the paper's story, its opposite, smaller gains, and levels at random
        rng = np.random.default_rng(abs(seed))
        levels, slopes = {}, {}

        def level(*place, seed=seed, levels=levels, rng=rng):
            if seed < -2:
                gains = place[0] in ("Adaptive LR - best", "Joint - best") and place[1] == "censoring"
                return 0.6 + gains * {-3: 0.04, -4: 0.1}[seed]
            if seed < 0:
                return synthetic_story(*place) if seed == -1 else 1.1 - synthetic_story(*place)
            return levels.setdefault(place, rng.choice([0.4, 0.401, 0.55, 0.7]))

        def other(method, n, p, mechanism, slopes=slopes, rng=rng):
            return 5 + slopes.setdefault((method, mechanism), rng.choice([-1.0, 1.0])) * (1 + np.log(n) / 2)

        table = synthetic_table(level, (40, 1000), (0.1, 0.8), selected_depth=other, seconds=other)
        for each in judge(CLAIMS["synthetic"], table):
            seen.setdefault((each.claim.words, each.claim.quantity), set()).add(each.verdict)
    assert {key: verdicts for key, verdicts in seen.items() if not verdicts >= {CONFIRMED, NOT_CONFIRMED}} == {}


@pytest.mark.slow
def test_real_design_claims_can_be_confirmed_and_refuted():
    seen = {}
    for seed in range(-3, 20):
        rng = np.random.default_rng(abs(seed))
        levels = {}

        def level(*place, seed=seed, levels=levels, rng=rng):
            if seed == -3:  # small gains in AM
                return 0.66 if place[:2] == ("Mean - best", "am") else 0.7
            if seed < 0:
                return real_story(*place) if seed == -1 else 1 - real_story(*place)
            method, design, k = place
            base = levels.setdefault((method, design), rng.choice([0.4, 0.402, 0.7]))
            return base + levels.setdefault((method, "slope"), rng.choice([-0.02, 0.0, 0.02])) * ((k or 0) - 5)

        def seconds(method, levels=levels, rng=rng):
            return levels.setdefault((method, "seconds"), rng.choice([1.0, 5.0]) + 0.01 * rng.normal())

        table = real_table(level, 4, seconds, (0, 10), ("linear", "nn"))
        for each in judge(CLAIMS["real-design"], table):
            seen.setdefault((each.claim.words, each.claim.quantity), set()).add(each.verdict)
    assert {key: verdicts for key, verdicts in seen.items() if not verdicts >= {CONFIRMED, NOT_CONFIRMED}} == {}


def test_directions_of_claims_on_real_designs():
    times = {"Affine": 5.0, "Joint - forest": 5.0, "Joint - best": 1.5}
    judged = judge(CLAIMS["real-design"], real_table(real_story, 10, lambda method: times.get(method, 1.0)))
    # the story has mean imputation lose .15 in AM, and on real targets the affine intercept above all others
    assert {each.verdict for each in judged if each.claim.rule == TWO_TO_TEN} == {NOT_CONFIRMED}
    others = [each for each in judged if each.claim.rule != TWO_TO_TEN]
    assert {each.claim.words for each in others if each.verdict != CONFIRMED} == {
        "the deterioration is less acute than on synthetic data",
        "'best', the degree of adaptivity cross-validated, has the best performance overall (real targets)",
        "on real signals mean impute-then-regress is the best performing method",
        "on real targets the benefit is not as systematic as in AM (adaptive)",
    }
    values = {each.claim.quantity: each.measured.value for each in judged}
    expected = {
        "Joint - best minus Mean - best: in AM minus in MAR": 0.15,
        "Joint - best minus Mean - best: the authors' change from MCAR to censoring (linear) "
        "minus ours from MAR to AM": (0.639 - 0.569) - (0.544 - 0.555) - 0.15,
        "Affine intercept minus Mean - best, real targets: in regression minus in classification": 0.03,
        "the weakest of linear, forest and XGBoost minus Joint - tree, synthetic signals": 0.3,
        "the weaker of Joint - forest and Joint - XGBoost minus the strongest of Joint - linear and Joint - tree, "
        "real targets": 0.3,
        "the weakest other method minus Complete features - best, synthetic signals": 0.2,
        "the seconds of Affine intercept over those of Mean - best, minus 1, synthetic signals": 0.0,
        "2 minus the seconds of Joint - best over those of Mean - best, synthetic signals": 0.5,
        "Oracle - best minus Mean - best, AM: at the most missing features of a set minus at none": 0.1,
    }
    for quantity, value in expected.items():
        assert values[quantity] == pytest.approx(value, abs=0.003), quantity
    wins = values["win rate of Joint - best over Mean - best: in AM minus in MAR"]
    assert 0.2 < wins < 0.8  # from a half, by chance, to all


@pytest.mark.parametrize("name", ["synthetic", "real-design"])
def test_claims_without_their_methods_are_not_measured(name):
    table = synthetic_table() if name == "synthetic" else real_table(lambda method, design, k: 0.5, sets=2)
    nothing = table.clear().select("key", "kind", "method", "status", "chosen_method", "score", "r2_authors", "seconds")
    assert CATALOGUE[name].sections(nothing)  # of a run without any outcome yet
    for part in (nothing, table.clear(), table.filter(pl.col("method") == "CART MIA")):
        assert {each.verdict for each in judge(CLAIMS[name], part)} == {NOT_MEASURED}
