"""Do indicators of missing values help prediction, even if values are missing completely at random?

Le Morvan and Varoquaux ("Imputation for prediction: beware of diminishing returns", ICLR 2025, arXiv 2407.19804) report
that they do. The study crosses {mean, iterative, forest} imputation, {without, with} indicators, and {ridge, forest,
boosting}, under MCAR at 20 % and 50 % and under censoring of the largest 20 % of every feature.

    smoke     two small real sets and a generated one, 100 rows
    laptop    22 real sets, real and linear targets, six splits, at most 5,000 rows and 30 features; 20 generated sets
              per signal and number of rows
    paper     ten splits of all rows and features; 50 generated sets; larger forests impute
"""

from itertools import product

from admiss.study import Method, Product, Study
from experiments.scales import SCALES
from experiments.studies.indicators.instances import COMPLETE_SETS, CompleteDraw, CompleteSet
from experiments.studies.indicators.methods import IMPUTERS, LEARNERS, impute_and_predict

MECHANISMS = (("mcar", 0.2), ("mcar", 0.5), ("censoring", 0.2))
SIGNALS = ("linear", "nn")
TARGETS = ("real", "linear")
SIZES = (200, 1000)
# A regression and a classification; both sets come with a package, without a download.
SMOKE_SETS = ("Ecdat-MCAS", "MASS-Pima.tr2")


def method_name(imputer: str, learner: str, indicators: bool) -> str:
    """The name of a method.

    Examples
    --------
    >>> method_name("mean", "ridge", True)
    'mean + indicators, ridge'
    """
    return f"{imputer}{' + indicators' if indicators else ''}, {learner}"


def _methods(trees: int, sweeps: int) -> list[Method]:
    size = {"trees": trees, "sweeps": sweeps}
    return [
        Method(
            method_name(imputer, learner, indicators),
            impute_and_predict,
            {"imputer": imputer, "indicators": indicators, "learner": learner, **size},
        )
        for imputer, learner, indicators in product(IMPUTERS, LEARNERS, (False, True))
    ]


def products(scale: str) -> list[Product]:
    """The grid of a scale."""
    names, splits, replicates, sizes, max_rows, max_features, methods = {
        "smoke": (SMOKE_SETS, 1, 1, SIZES[:1], 100, 5, _methods(5, 2)),
        "laptop": (COMPLETE_SETS, 6, 20, SIZES, 5000, 30, _methods(20, 3)),
        "paper": (COMPLETE_SETS, 10, 50, SIZES, None, None, _methods(100, 10)),
    }[scale]
    real = [
        CompleteSet(name, signal, *mechanism, split, max_rows, max_features)
        for split, signal, name, mechanism in product(range(splits), TARGETS, names, MECHANISMS)
    ]
    generated = [
        CompleteDraw(signal, *mechanism, n, replicate)
        for replicate, n, signal, mechanism in product(range(replicates), sizes, SIGNALS, MECHANISMS)
    ]
    if scale == "smoke":
        real, generated = [instance for instance in real if instance.signal == "real"], generated[:1]
    return [Product(generated, methods), Product(real, methods)]


STUDY = Study(
    name="indicators",
    scales=SCALES,
    title="Indicators of missing values",
    description="Imputation with and without indicators, before ridge, forest and boosting.",
    products=products,
    reference=method_name("mean", "boosting", indicators=False),
    settings=("kind", "signal", "mechanism", "missing_fraction", "n", "task", "dataset"),
)
