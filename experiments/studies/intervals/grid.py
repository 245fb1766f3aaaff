"""For whom do prediction sets of level 90 % hold if features are missing?

Split conformal prediction, thresholds for a class of functions of the pattern, MDA-exact and MDA-nested, and split
conformal prediction on mean-imputed features, on generated data (missing completely at random, censored, missing
depending on y; with and without shifts of the law of patterns) and on real sets with their own missing values.

    smoke     one draw of two mechanisms, 100 calibration rows; one real set
    laptop    20 draws of every mechanism and shift, 200 and 1,000 calibration rows; ten real sets, five splits
    paper     200 draws; 40 splits
"""

from itertools import product

from admiss.study import Method, Product, Study
from experiments.scales import SCALES
from experiments.studies.intervals.instances import ConformalDraw, ConformalSet
from experiments.studies.intervals.methods import METHODS, cover

CASES = (
    ("mcar", "none"), ("censoring", "none"), ("target", "none"),
    ("mcar", "one"), ("mcar", "gone"), ("mcar", "all"), ("censoring", "gone"),
)  # fmt: skip
SIZES = (200, 1000)
SETS = (
    "Ecdat-Schooling", "Ecdat-RetSchool", "Ecdat-MCAS", "survival-cancer", "automobile", "auto-mpg",
    "mammographic-mass", "congressional-voting-records", "hepatitis", "thyroid-disease-sick",
)  # fmt: skip


def products(scale: str) -> list[Product]:
    """The grid of a scale."""
    cases, sizes, replicates, sets, splits = {
        "smoke": (CASES[:2], (100,), 1, SETS[2:3], 1),
        "laptop": (CASES, SIZES, 20, SETS, 5),
        "paper": (CASES, SIZES, 200, SETS, 40),
    }[scale]
    generated = [
        ConformalDraw(mechanism, shift, n, replicate)
        for replicate, n, (mechanism, shift) in product(range(replicates), sizes, cases)
    ]
    real = [ConformalSet(name, split) for split, name in product(range(splits), sets)]
    methods = [Method(name, cover, options) for name, options in METHODS.items()]
    return [Product(generated, methods), Product(real, methods)]


STUDY = Study(
    name="intervals",
    scales=SCALES,
    title="Prediction sets whatever is missing",
    description=(
        "Coverage of sets of level 90 % around one boosting model, by missing feature and under shifts of the law of "
        "patterns. The score of a cell is the coverage of its test rows."
    ),
    products=products,
    reference="split",
    settings=("kind", "mechanism", "shift", "n", "dataset"),
)
