"""Tables of the study of indicators: gains, accuracy of the imputed values, and claims.

Tests are adjusted (Holm) within a target and a mechanism: under MCAR on real targets these are 3 imputers x 3 learners
x 2 shares = 18 comparisons. The verdict on "indicators help" is confirmed if the adjusted p value is at most 5 % and
the gain is positive, not confirmed if it is at most 5 % and the gain is negative, and otherwise undecided.
"""

from collections import Counter
from itertools import product

import numpy as np
import polars as pl

from admiss.study.report.sections import Section
from admiss.terminal.table import number
from experiments.paper.claims import CONFIRMED, NOT_CONFIRMED
from experiments.paper.sections import claims_section
from experiments.studies.gains import adjusted, estimated, verdict, with_interval
from experiments.studies.indicators.claims import CLAIMS
from experiments.studies.indicators.gains import (
    BETTER,
    BY_TASK,
    CENSORING,
    MCAR,
    REAL,
    TARGETS,
    Mechanism,
    by_unit,
    imputation_gain,
    indicator_gain,
    mechanism_words,
)
from experiments.studies.indicators.grid import MECHANISMS, method_name
from experiments.studies.indicators.methods import IMPUTERS, LEARNERS

SCORES = "R2, or 2 AUC - 1 for classes."
# Gains under MCAR are of the order of .005.
PLACES = 4
WITH = {True: "with", False: "without"}
UNITS = "From low to high: 95 % intervals over units (sets, or generated draws) by Student's t."


def indicator_sections(table: pl.DataFrame) -> list[Section]:
    """All tables of the study."""
    claims = claims_section(CLAIMS, table, places=PLACES)
    return [_gains(table), _by_learner(table), _imputation(table), claims]


def _gains(table: pl.DataFrame) -> Section:
    """The gain of indicators in every combination, with adjusted tests."""
    rows: list[list[str]] = []
    conclusion = ""
    for target, family in product(TARGETS, (MCAR, (CENSORING,))):
        cases = list(product(family, IMPUTERS, LEARNERS))
        gains = [indicator_gain(table, target, [case], [imputer], [learner]) for case, imputer, learner in cases]
        found = [estimated(each) for each in gains]
        verdicts = []
        for (case, imputer, learner), by_set, each, p in zip(cases, gains, found, adjusted(found), strict=True):
            if each is None:
                continue
            without = _mean(table, target, case, method_name(imputer, learner, False))
            verdicts.append(verdict(each, p, (CONFIRMED, NOT_CONFIRMED)))
            wins = float(np.mean([(gain > 0) + 0.5 * (gain == 0) for gain in by_set.values()]))
            numbers = [number(without), *with_interval(each, PLACES), number(wins, 2)]
            tests = [number(each.p, 4), number(p, 4), verdicts[-1]]
            rows.append([target, mechanism_words(case), imputer, learner, str(each.units), *numbers, *tests])
        if target == REAL and family == MCAR and verdicts:
            counts = ", ".join(f"{count} {words}" for words, count in sorted(Counter(verdicts).items()))
            conclusion = f"Indicators under MCAR on real targets, {len(verdicts)} comparisons, adjusted: {counts}."
    text = (
        f"{SCORES} Score without indicators, and the gain with them. {UNITS} Wins: the share of units with a positive "
        "gain. p values are those of paired t tests, adjusted (Holm) within a target and a mechanism (MCAR: 18 "
        "comparisons, censoring: 9); verdicts on 'indicators help' use the adjusted ones at 5 %."
    )
    header = ["target", "mechanism", "imputer", "learner", "units", "without", "gain", "low", "high", "wins"]
    return Section("Gains of indicators", text, [*header, "p", "adjusted p", "verdict"], rows, conclusion)


def _by_learner(table: pl.DataFrame) -> Section:
    """The gain of indicators by learner, averaged over imputers."""
    rows = []
    for target, case, learner in product([*TARGETS, *BY_TASK], MECHANISMS, LEARNERS):
        each = estimated(indicator_gain(table, target, [case], learners=[learner]))
        if each is not None:
            rows.append([target, mechanism_words(case), learner, str(each.units), *with_interval(each, PLACES)])
    text = f"Score with minus without indicators, mean over imputers. {SCORES} {UNITS} Tests are not adjusted."
    header = ["target", "mechanism", "learner", "units", "gain", "low", "high"]
    return Section("Gains of indicators by learner", text, header, rows)


def _imputation(table: pl.DataFrame) -> Section:
    """Accuracy of imputed values, and the gain of better imputation."""
    rows = []
    for target, case, imputer in product(TARGETS, MECHANISMS, BETTER):
        accuracy = number(_mean(table, target, case, method_name(imputer, LEARNERS[0], False), "imputation_r2"))
        for learner, indicators in product(LEARNERS, (False, True)):
            each = estimated(imputation_gain(table, target, [case], [learner], [indicators], [imputer]))
            if each is not None:
                choice = [target, mechanism_words(case), imputer, accuracy, learner, WITH[indicators]]
                rows.append([*choice, str(each.units), *with_interval(each, PLACES)])
    text = (
        "R2 of the imputed values of the test rows in standard units (0 for the mean), and the score minus that with "
        f"the mean imputed. {UNITS}"
    )
    header = ["target", "mechanism", "imputer", "imputation R2", "learner", "indicators", "units"]
    return Section("Imputation", text, [*header, "gain", "low", "high"], rows)


def _mean(table: pl.DataFrame, target: str, case: Mechanism, method: str, value: str = "score") -> float | None:
    units = by_unit(table, target, case, value)
    return float(np.mean([row[method] for row in units.values()])) if units else None
