"""Adjusted verdicts of stored claims, which are rounded: those of any numbers that round to the stored ones.

The cells of three studies are not stored. Their adjusted verdicts come from the stored digits, which bound every p
value and, as Holm's adjustment increases with every p, every adjusted one; where both verdicts are possible both are
named.
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

import experiments
from admiss.estimates import holm
from experiments.paper.claims import UNDECIDED, true_values

RESULTS = Path(experiments.__file__).parent / "results"
STUDIES = ["synthetic", "real-design", "indicators"]


def stored(name):
    with (RESULTS / name / "claims.csv").open(newline="") as file:
        return list(csv.DictReader(file))


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
        for index, (row, adjusted) in enumerate(zip(rows, holm(p_values.tolist()), strict=True)):
            low, _, high = row["adjusted p"].partition(" to ")
            assert float(low) - 1e-4 <= adjusted <= float(high or low) + 1e-4
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
