"""Theorem 1 of the paper, measured: how large c must be, and when the printed bias is below the true one.

The smallest c for which

    excess risk <= 8 b(F) + c max{sigma^2, L^2} (1 + log n) / n p(F)

holds is found on half of the truths and sizes; failures of the inequality with that c are counted on the other half.
b(F) is the true bias, the proved bound on it, or the printed formula. The measurements are in
:mod:`experiments.studies.bounds.measures`; those of biases need no fits, which allows more features. On the generated
data of the paper, :mod:`experiments.studies.bounds.paper_data` has all bounds beside measured excess risks.
"""

from admiss.study import Method, Product, Study
from experiments.scales import SCALES
from experiments.studies.bounds.measures import (
    BIAS_LAWS,
    HALVES,
    PLACES,
    DrawnTruths,
    SampledPopulation,
    class_methods,
    exact_biases,
)
from experiments.studies.bounds.paper_data import PaperRows, bounds_on_paper_data
from experiments.studies.bounds.population import LAWS

BIASES = Method("all orders", exact_biases)
ON_PAPER_DATA = Method("bounds on the data of the paper", bounds_on_paper_data)


def products(scale: str) -> list[Product]:
    """The grids of a scale."""
    features, replicates, truths, bias_features, bias_truths = {
        "smoke": ((4,), 2, 1, (4, 6, 8), 2),
        "laptop": ((2, 4, 6), 30, 7, (4, 6, 8, 10), 20),
        "paper": ((2, 4, 6), 100, 20, (4, 6, 8, 10, 12), 50),
    }[scale]
    fractions, shuffles = {"smoke": ((0.3,), 1), "laptop": ((0.1, 0.3, 0.5), 2), "paper": ((0.1, 0.3, 0.5), 10)}[scale]
    sampled = [
        Product(
            [
                SampledPopulation(d, place, law, half, replicates, truths)
                for place in PLACES
                for law in LAWS
                for half in HALVES
            ],
            class_methods(d),
        )
        for d in features
    ]
    of_paper = [PaperRows(p, 5000, replicate) for p in fractions for replicate in range(1, shuffles + 1)]
    return [
        *sampled,
        Product([DrawnTruths(d, law, bias_truths) for d in bias_features for law in BIAS_LAWS], [BIASES]),
        Product(of_paper, [ON_PAPER_DATA]),
    ]


STUDY = Study(
    name="bounds",
    scales=SCALES,
    title="Generalization bounds against true risks",
    description=(
        "Theorem 1 of the paper on truths with known risk: the constant c that truncated least squares needs, and the "
        "bias of each order beside the proved and the printed bound. The score of a cell is the largest c that its "
        "class needs with the true bias, or the largest true bias as a share of the proved bound. On the data of the "
        "paper it is the largest measured excess risk, without estimation error, as a share of the bias by moments."
    ),
    products=products,
    settings=("d", "law", "place", "half", "missing_fraction"),
    seconds=1800.0,
)
