"""Adjusted verdicts: p values against intervals, Holm's method against its definition, and claims without a test."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from experiments.paper.adjustment import NO_TEST, Adjusted, adjust, adjusted, p_value
from experiments.paper.claims import (
    CONFIRMED,
    NOT_CONFIRMED,
    NOT_MEASURED,
    TWO_TO_TEN,
    UNDECIDED,
    Claim,
    Judged,
    Measured,
    over_units,
    verdict,
)
from experiments.paper.sections import claims_section
from experiments.paper.synthetic.claims import SYNTHETIC_CLAIMS
from tests.experiments.paper.fabricated import synthetic_table

RULES = {
    "greater": (0.0, math.inf),
    "at least": (-0.02, math.inf),
    "comparable": (-0.02, 0.02),
    TWO_TO_TEN: (0.02, 0.1),
}


def margin_of(rule):
    return 0.02 if rule in ("at least", "comparable") else 0.0


def verdict_at(level, rule, measured):
    """Whether the interval of a level is inside or outside of the values of a rule, or neither."""
    low, high = student.interval(level, measured.units - 1, measured.value, measured.error)
    smallest, largest = RULES[rule]
    if smallest <= low and high <= largest:
        return CONFIRMED
    return NOT_CONFIRMED if high < smallest or low > largest else UNDECIDED


@pytest.mark.parametrize("rule", RULES)
def test_the_verdict_is_that_of_the_interval_and_the_p_value_the_smallest_level_that_decides(rule):
    rng, seen = np.random.default_rng(0), set()
    for _ in range(200):
        measured = Measured(rng.uniform(-0.15, 0.15), 10 ** rng.uniform(-4, -1.3), int(rng.integers(3, 40)))
        found, p = verdict(rule, margin_of(rule), measured), p_value(rule, margin_of(rule), measured)
        assert found == verdict_at(0.95, rule, measured)
        assert (p <= 0.05) == (found != UNDECIDED)
        assert verdict(rule, margin_of(rule), Measured(measured.value, None, 1)) == UNDECIDED
        seen.add(found)
        if p < 1e-9:  # the level is 1 to almost all digits
            continue
        assert 1.001 * p >= 1 or verdict_at(1 - 1.001 * p, rule, measured) != UNDECIDED
        assert verdict_at(1 - 0.999 * p, rule, measured) == UNDECIDED
    assert seen == {CONFIRMED, NOT_CONFIRMED, UNDECIDED}


def test_p_values_are_those_of_t_tests():
    values = np.random.default_rng(0).normal(0.01, 0.02, 9)
    measured = over_units(values)
    assert p_value("greater", 0.0, measured) == pytest.approx(ttest_1samp(values, 0).pvalue)
    one_sided = [
        ttest_1samp(values, end, alternative=side).pvalue for end, side in ((-0.05, "greater"), (0.05, "less"))
    ]
    assert p_value("comparable", 0.05, measured) == pytest.approx(2 * max(one_sided))


def holm_rejections(p_values):
    """Holm's procedure as stated: reject the k-th smallest while it is at most .05 / (m - k + 1)."""
    rejected = set()
    for k, index in enumerate(np.argsort(p_values, kind="stable")):
        if p_values[index] > 0.05 / (len(p_values) - k):
            break
        rejected.add(int(index))
    return rejected


@pytest.mark.parametrize("seed", range(20))
def test_adjusted_verdicts_are_those_of_the_sequential_procedure(seed):
    rng = np.random.default_rng(seed)
    judged = []
    for _ in range(40):
        rule = str(rng.choice(list(RULES)))
        measured = Measured(rng.uniform(-0.15, 0.15), 10 ** rng.uniform(-4, -1), int(rng.integers(4, 40)))
        claim = Claim("", "", "", rule, over_units, margin_of(rule))
        judged.append(Judged(claim, measured, verdict(rule, claim.margin, measured)))
    p_values = [p_value(each.claim.rule, each.claim.margin, each.measured) for each in judged]
    found = adjusted(judged)
    rejected = holm_rejections(p_values)
    assert [each.verdict for each in found] == [
        each.verdict if index in rejected else UNDECIDED for index, each in enumerate(judged)
    ]
    for each, other, p in zip(judged, found, p_values, strict=True):
        assert other.verdict in (each.verdict, UNDECIDED)  # never stronger
        assert other.p >= p
    assert rejected


def test_more_claims_never_decide_more():
    p_values = [0.001, 0.01, 0.02, 0.04]
    verdicts = [CONFIRMED, NOT_CONFIRMED, CONFIRMED, CONFIRMED]
    few, many = adjust(verdicts, p_values), adjust([*verdicts, UNDECIDED], [*p_values, 0.8])
    assert all(a.p <= b.p for a, b in zip(few, many[:4], strict=True))
    assert [each.verdict for each in few] == verdicts  # .004, .03, .04, .04
    assert [each.verdict for each in many] == [CONFIRMED, NOT_CONFIRMED, UNDECIDED, UNDECIDED, UNDECIDED]


def test_claims_without_an_interval_have_no_test_and_do_not_count():
    single, constant = Measured(0.5, None, 1), Measured(0.5, 0.0, 5)
    claim = Claim("", "", "", "greater", lambda table: single)
    tested = Measured(2.7, 1.0, 5)
    assert p_value("greater", 0.0, single) is None
    assert p_value("greater", 0.0, constant) is None
    judged = [
        Judged(claim, single, UNDECIDED),
        Judged(claim, constant, CONFIRMED),
        Judged(claim, None, NOT_MEASURED),
        Judged(claim, tested, UNDECIDED),
    ]
    alone = p_value("greater", 0.0, tested)
    assert adjusted(judged) == [
        Adjusted(NO_TEST, None),
        Adjusted(NO_TEST, None),
        Adjusted(NOT_MEASURED, None),
        Adjusted(UNDECIDED, alone),
    ]
    assert adjust([], []) == []


def test_both_verdicts_stand_in_the_table():
    section = claims_section(SYNTHETIC_CLAIMS, synthetic_table())
    rows = [dict(zip(section.header, row, strict=True)) for row in section.rows]
    assert len(rows) == len(SYNTHETIC_CLAIMS)
    assert {row["adjusted"] for row in rows} <= {CONFIRMED, NOT_CONFIRMED, UNDECIDED, NO_TEST, NOT_MEASURED}
    weaker = [row for row in rows if row["adjusted"] != row["verdict"]]
    assert weaker
    assert all(row["adjusted"] in (UNDECIDED, NO_TEST) for row in weaker)
    raw, corrected = section.conclusion.split("; adjusted for their number: ")
    for words, column in ((raw, "verdict"), (corrected, "adjusted")):
        assert f"{sum(row[column] == CONFIRMED for row in rows)} confirmed" in words
    nothing = claims_section(SYNTHETIC_CLAIMS, synthetic_table().filter(pl.col("method") == "CART MIA"))
    assert nothing.rows == []
