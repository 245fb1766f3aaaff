"""Claims of Le Morvan and Varoquaux on indicators and imputers, and what is expected under censoring.

Their study has 19 regression sets, values missing completely at random, and neural networks and XGBoost as learners.
"Expressive models" are forest and boosting here, "improved imputation" is iterative and forest imputation instead of
the mean. Claims are about real targets unless others are named.
"""

from collections.abc import Sequence
from functools import partial

from experiments.paper.claims import Claim, Measure
from experiments.studies.gains import Quantity, difference, measure
from experiments.studies.indicators.gains import (
    CENSORING,
    LINEAR,
    MCAR,
    REAL,
    TARGETS,
    Mechanism,
    imputation_gain,
    indicator_gain,
    mechanism_words,
)
from experiments.studies.indicators.methods import LEARNERS

ABSTRACT, EXPECTED = "Abstract", "expected"
TREES = ("forest", "boosting")
WITH_INDICATORS = "with minus without indicators"
IMPUTERS_OVER_MEAN = "iterative and forest imputation minus the mean"
BENEFICIAL = "indicators are beneficial, even under MCAR"


def _mean(quantity: Quantity, other: Quantity | None = None) -> Measure:
    """The mean over units of a quantity, or of its difference to another one."""
    return measure(quantity if other is None else lambda table: difference(quantity(table), other(table)))


def _with_indicators(target: str, *mechanisms: Mechanism, learners: Sequence[str] = LEARNERS) -> Quantity:
    return partial(indicator_gain, target=target, mechanisms=mechanisms, learners=learners)


def _imputed(target: str, learners: Sequence[str] = LEARNERS, indicators: Sequence[bool] = (False,)) -> Quantity:
    return partial(imputation_gain, target=target, mechanisms=MCAR, learners=learners, indicators=indicators)


CLAIMS: list[Claim] = [
    *(
        Claim(ABSTRACT, f"{BENEFICIAL} ({mechanism_words(each)})",
              f"{WITH_INDICATORS}, mean over imputers and learners",
              "greater", _mean(_with_indicators(REAL, each)))
        for each in MCAR),
    *(
        Claim(ABSTRACT, f"{BENEFICIAL} ({learner})",
              f"{WITH_INDICATORS}, {learner}, mean over imputers, MCAR 20 % and 50 %",
              "greater", _mean(_with_indicators(REAL, *MCAR, learners=[learner])),
              note="" if learner in TREES else "They have no linear learner.")
        for learner in LEARNERS),
    *(
        Claim(ABSTRACT, f"{BENEFICIAL} (targets: {target})",
              f"{WITH_INDICATORS}, mean over imputers and learners, MCAR 20 % and 50 %",
              "greater", _mean(_with_indicators(target, *MCAR)))
        for target in TARGETS if target != REAL),
    Claim(ABSTRACT, "imputation matters less with expressive models",
          f"{IMPUTERS_OVER_MEAN}: with ridge minus with forest and boosting, MCAR, no indicators",
          "greater", _mean(_imputed(REAL, ["ridge"]), _imputed(REAL, TREES))),
    Claim(ABSTRACT, "imputation matters less with indicators",
          f"{IMPUTERS_OVER_MEAN}: without minus with indicators, MCAR, mean over learners",
          "greater", _mean(_imputed(REAL), _imputed(REAL, indicators=[True]))),
    Claim(ABSTRACT, "imputation matters much more for generated linear targets than for real ones",
          f"{IMPUTERS_OVER_MEAN}: linear minus real targets, MCAR, no indicators, mean over learners",
          "greater", _mean(_imputed(LINEAR), _imputed(REAL)),
          note="Same features, other targets; the score of classes is 2 AUC - 1."),
    Claim(ABSTRACT, "with powerful models, improved imputation has only a minor effect",
          f"{IMPUTERS_OVER_MEAN}, forest and boosting, MCAR, with and without indicators",
          "comparable", _mean(_imputed(REAL, TREES, [False, True])), 0.02),
    Claim(EXPECTED, "indicators are beneficial under censoring",
          f"{WITH_INDICATORS}, mean over imputers and learners, censoring",
          "greater", _mean(_with_indicators(REAL, CENSORING))),
    *(
        Claim(EXPECTED, f"indicators help more under censoring than under MCAR (targets: {target})",
              f"{WITH_INDICATORS}, mean over imputers and learners: censoring minus MCAR, both 20 %",
              "greater", _mean(_with_indicators(target, CENSORING), _with_indicators(target, MCAR[0])))
        for target in (REAL, LINEAR)),
    Claim(EXPECTED, "under censoring, indicators help ridge more than forest and boosting",
          f"{WITH_INDICATORS}, mean over imputers, censoring: ridge minus forest and boosting",
          "greater",
          _mean(_with_indicators(REAL, CENSORING, learners=["ridge"]),
                _with_indicators(REAL, CENSORING, learners=TREES))),
]  # fmt: skip
