"""Are classes recommended from second moments as good as those chosen by cross-validation?

smoke     one instance of the paper and one law of each half, 100 rows
laptop    MCAR instances of the paper (3 sizes x 3 missing fractions x 2 signals x 2 replicates), 20 further laws
          and 24 laws for the calibration of the constant, at 3 sizes
paper     five replicates, 100 further laws and 100 for the calibration
"""

from itertools import product

from admiss.study import Product, Study
from experiments.scales import SCALES
from experiments.studies.recommendation.instances import HALVES, DrawnLaw
from experiments.studies.recommendation.methods import RECOMMENDATION
from experiments.studies.synthetic.instances import AuthorsInstance

SIZES = (100, 300, 1000)
FRACTIONS = (0.1, 0.3, 0.5)


def products(scale: str) -> list[Product]:
    """The grid of a scale."""
    sizes, fractions, signals, replicates, laws = {
        "smoke": (SIZES[:1], FRACTIONS[1:2], ("linear",), 1, (1, 1)),
        "laptop": (SIZES, FRACTIONS, ("linear", "nn"), 2, (24, 20)),
        "paper": (SIZES, FRACTIONS, ("linear", "nn"), 5, (100, 100)),
    }[scale]
    of_paper = [
        AuthorsInstance(n, "mcar", signal, p, replicate)
        for replicate, n, p, signal in product(range(1, replicates + 1), sizes, fractions, signals)
    ]
    drawn = [
        DrawnLaw(half, law, n) for half, count in zip(HALVES, laws, strict=True) for law in range(count) for n in sizes
    ]
    return [Product(drawn, [RECOMMENDATION]), Product(of_paper, [RECOMMENDATION])]


STUDY = Study(
    name="recommendation",
    scales=SCALES,
    title="Classes recommended from second moments",
    description=(
        "Adaptivity classes recommended from means, covariances and missing rates, without a fit, against classes "
        "chosen by cross-validation and against one class for all data, where values are missing completely at random. "
        "The score is the test R2 of a ridge regression of the recommended class."
    ),
    products=products,
    settings=("kind", "half", "signal", "missing_fraction", "n"),
)
