"""Adjusted verdicts of stored, rounded claims: those of the exact numbers, whatever digits were lost."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

import experiments
from admiss.study.sections import digits, signed
from experiments.paper.adjustment import NO_TEST, adjusted
from experiments.paper.claims import NOT_MEASURED, UNDECIDED, Claim, Judged, Measured, combined, true_values, verdict
from experiments.paper.stored_claims import main, with_adjusted_verdicts

RESULTS = Path(experiments.__file__).parent / "results"
RULES = {"greater": 0.0, "at least": 0.02, "comparable": 0.02, "2 to 10 %": 0.0}
STUDIES = ["synthetic", "real-design", "indicators"]


def stored(name):
    with (RESULTS / name / "claims.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def row_of(judged, quantity=""):
    claim, measured, found = judged
    low, high = measured.interval() or (None, None)
    rule = f"{claim.rule}, margin {claim.margin:g}" if claim.margin else claim.rule
    numbers = {"value": signed(measured.value), "s.e.": digits(measured.error), "units": str(measured.units)}
    ends = {"low": "" if low is None else signed(low), "high": "" if high is None else signed(high)}
    return {"claim": "", "verdict": found, "quantity": quantity, "rule": rule, **numbers, **ends}


def drawn(rng, stratified):
    rule = str(rng.choice(list(RULES)))
    value, error = rng.uniform(-0.1, 0.15), 10 ** rng.uniform(-2.5, -1.3)
    measured = Measured(value, error, int(rng.integers(5, 50)))
    if stratified:
        parts = [Measured(value, error * rng.uniform(0.2, 2), 5) for _ in range(2)]
        measured = combined(parts, [0.5, 0.5])
    claim = Claim("", "", "", rule, lambda table: measured, RULES[rule])
    return Judged(claim, measured, verdict(rule, claim.margin, measured))


@pytest.mark.parametrize("seed", range(10))
def test_the_bounds_contain_the_exact_adjustment(seed):
    rng = np.random.default_rng(seed)
    strata = rng.random(25) < 0.3
    judged = [drawn(rng, stratified) for stratified in strata]
    rows = [row_of(each, "both signals" * bool(two)) for each, two in zip(judged, strata, strict=True)]
    found = with_adjusted_verdicts(rows)
    exact = adjusted(judged)
    for row, other in zip(found, exact, strict=True):
        low, _, high = row["adjusted p"].partition(" to ")
        assert float(low) - 1e-4 <= other.p <= float(high or low) + 1e-4
        assert other.verdict in row["adjusted"].split(" or ")
    single = [row["adjusted"] for row in found if " or " not in row["adjusted"]]
    assert len(single) > 20  # few are left open
    assert set(single) > {UNDECIDED}


@pytest.mark.parametrize("name", STUDIES)
def test_stored_verdicts_are_those_of_the_stored_numbers(name):
    rows = stored(name)
    assert with_adjusted_verdicts(rows) == rows


@pytest.mark.parametrize("name", STUDIES)
def test_stored_verdicts_hold_for_any_numbers_that_round_to_the_stored_ones(name):
    rng = np.random.default_rng(0)
    rows = stored(name)
    for _ in range(20):
        p_values = np.array([p_of_unrounded(row, rng) for row in rows])
        order = np.argsort(p_values)
        limits = 0.05 / (len(rows) - np.arange(len(rows)))
        passed = np.cumprod(p_values[order] <= limits).astype(bool)
        rejected = set(order[passed].tolist())
        for index, row in enumerate(rows):
            found = row["verdict"] if index in rejected else UNDECIDED
            assert found in row["adjusted"].split(" or "), row["claim"]


def p_of_unrounded(row, rng):
    """The p value of some value and interval that round to the stored ones and have the stored verdict."""
    half = 0.5 * 10.0 ** -len(row["low"].split(".")[1])
    rule, _, margin = row["rule"].partition(", margin ")
    ends = true_values(rule, float(margin or 0))
    freedoms = {"both signals": (4, 8), "in classification": (11, 34)}
    freedom = next((bounds for words, bounds in freedoms.items() if row["quantity"].endswith(words)), None)
    while True:
        f = float(row["units"]) - 1 if freedom is None else rng.uniform(*freedom)
        low, high = (float(row[name]) + rng.uniform(-half, half) for name in ("low", "high"))
        value, width = (low + high) / 2, (high - low) / 2
        quantile = student.ppf(0.975, f)
        if abs(value - float(row["value"])) > half or abs(width / quantile - float(row["s.e."])) > half:
            continue
        p = 2 * student.sf(min(abs(value - end) for end in ends) / width * quantile, f)
        if (p > 0.05) == (row["verdict"] == UNDECIDED):
            return p


def test_claims_of_two_strata_are_known():
    for row in stored("synthetic"):
        assert (row["units"] == "10") == row["quantity"].endswith("both signals")
    sizes = {row["quantity"].rpartition(", ")[2]: int(row["units"]) for row in stored("real-design")}
    assert (sizes["regression"], sizes["classification"]) == (12, 24)


def test_stored_claims_are_not_stronger_than_their_intervals():
    for name in [*STUDIES, "shift"]:
        for row in stored(name):
            assert set(row["adjusted"].split(" or ")) <= {row["verdict"], UNDECIDED}


def test_claims_without_an_interval(tmp_path):
    rng = np.random.default_rng(0)
    claim = Claim("", "", "", "greater", lambda table: Measured(0.1, None, 1))
    rows = [
        row_of(Judged(claim, Measured(0.1, None, 1), UNDECIDED)),
        {**row_of(Judged(claim, Measured(0.1, None, 1), NOT_MEASURED)), "value": ""},
        row_of(drawn(rng, stratified=False)),
    ]
    path = tmp_path / "claims.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    main([str(path)])
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["adjusted"] for row in found[:2]] == [NO_TEST, NOT_MEASURED]
    assert [row["adjusted p"] for row in found[:2]] == ["", ""]
    assert found[2] == with_adjusted_verdicts(rows[2:])[0]


def test_contradictory_numbers_are_refused():
    row = row_of(drawn(np.random.default_rng(0), stratified=False))
    with pytest.raises(ValueError, match="contradict"):
        with_adjusted_verdicts([{**row, "value": "5.000"}])
