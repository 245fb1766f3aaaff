"""Claims about shifts of the law of missingness: those of a prototype, with its figures, and others."""

from collections.abc import Sequence

from experiments.paper.claims import Claim
from experiments.studies.gains import Quantity, difference, mean_of, measure
from experiments.studies.shift.gains import GENERATED, REAL, SHIFTS, WORDS, gain, scores
from experiments.studies.shift.methods import ROBUST

PROTOTYPE, EXPECTED = "prototype", "expected"
CENSORED, AT_RANDOM = "censoring 20-20", "mcar 30-30"


def _gain(estimator: str, cases: Sequence[str], kind: str = GENERATED) -> Quantity:
    """Augmented minus plain, mean over cases."""
    return lambda table: mean_of([gain(table, kind, case, estimator) for case in cases])


def _between(first: str, second: str, cases: Sequence[str], kind: str = GENERATED) -> Quantity:
    """One method minus another, mean over cases."""
    return lambda table: mean_of(
        [difference(scores(table, kind, case, first), scores(table, kind, case, second)) for case in cases]
    )


def _gains(estimator: str, case: str, figure: str) -> Claim:
    words = f"training on further deletions helps: {estimator}, {WORDS[case]} ({figure})"
    return Claim(PROTOTYPE, words, "augmented minus plain, generated", "greater", measure(_gain(estimator, [case])))


def _costs(estimator: str) -> Claim:
    words = f"without shift, under censoring, it costs: {estimator} (.02 to .05)"
    quantity = f"plain minus augmented, {WORDS[CENSORED]}, generated"
    cost = _between(estimator, f"{estimator}, augmented", [CENSORED])
    return Claim(PROTOTYPE, words, quantity, "greater", measure(cost))


CLAIMS: list[Claim] = [
    _gains("affine", "mcar 10-50", "+.073"),
    _gains("affine", "mcar 30-60", "+.030"),
    _gains("affine", "one gone", "+.048"),
    _gains("affine intercept", "censoring 10-40", "+.093"),
    _costs("affine intercept"),
    _costs("affine"),
    *(
        Claim(PROTOTYPE, f"robust programs lose without shift: {name} (.01 to .06)",
              f"static minus {name}, {WORDS[AT_RANDOM]}, generated",
              "greater", measure(_between("static", name, [AT_RANDOM])))
        for name in ROBUST),
    *(
        Claim(PROTOTYPE, f"the affine intercept without robustness beats the robust static model: {name}",
              f"affine intercept minus {name}, mean over all shifts, generated",
              "greater", measure(_between("affine intercept", name, SHIFTS)))
        for name in ROBUST),
    *(
        Claim(EXPECTED, f"training on further deletions helps on average over all shifts: {name}, {kind}",
              f"augmented minus plain, mean over {len(SHIFTS)} shifts",
              "greater", measure(_gain(name, SHIFTS, kind)))
        for kind in (GENERATED, REAL)
        for name in ("static", "affine intercept", "affine", "shared", "finite exact", "finite greedy",
                     "conditional mean", "joint", "mean + forest")),
    Claim(EXPECTED, "indicators of missing values mislead if missingness no longer depends on values",
          f"static minus affine intercept, {WORDS['censoring-mcar']}, generated",
          "greater", measure(_between("static", "affine intercept", ["censoring-mcar"]))),
    Claim(EXPECTED, "affine weights, not augmented, are less robust than an affine intercept",
          "affine intercept minus affine, mean over all shifts, generated",
          "greater", measure(_between("affine intercept", "affine", SHIFTS))),
    Claim(EXPECTED, "augmented affine weights are more robust than an augmented affine intercept",
          "affine minus affine intercept, both augmented, mean over all shifts, generated",
          "greater", measure(_between("affine, augmented", "affine intercept, augmented", SHIFTS))),
    Claim(EXPECTED, "a model of the conditional law beats augmented affine weights",
          "conditional mean minus affine, augmented, MCAR 10 -> 50 %, generated",
          "greater", measure(_between("conditional mean", "affine, augmented", ["mcar 10-50"]))),
]  # fmt: skip
