"""Which models survive another law of missingness, and does training on further deletions help?

smoke     one draw of two cases with 100 training rows, and one real set; cheap methods
laptop    generated data with 400 training rows: ten draws of all cases for the cheap methods, four for stack,
          boosting and robust programs, two for fused patterns (plain and augmented programs of hundreds of
          patterns); ten real sets, one split, all cases for the cheap methods and three for stack and boosting
paper     40 draws and ten splits, everything but fused patterns on all of them
"""

from collections.abc import Sequence
from itertools import product

from admiss.study import Method, Product, Study
from experiments.scales import SCALES
from experiments.studies.shift.instances import LAWS, ShiftDraw, ShiftSet
from experiments.studies.shift.methods import CHEAP, COSTLY, ESTIMATORS, FUSED, ROBUST, predict

CASES = tuple(LAWS)
SETS = (
    "auto-mpg", "Ecdat-MCAS", "Ecdat-Schooling", "Ecdat-RetSchool", "wiki4he", "automobile", "communities-and-crime",
    "breast-cancer-wisconsin-original", "survival-pbc", "MASS-Pima.tr2",
)  # fmt: skip
SMOKE_SETS = ("Ecdat-MCAS",)
ROWS = 400
# Cases of the costly methods on real sets.
FEW = ("mcar 10-50", "one gone", "censoring 20-20")
AUGMENTED = ", augmented"


def method_name(estimator: str, augmented: bool) -> str:
    """The name of a method.

    Examples
    --------
    >>> method_name("affine", True)
    'affine, augmented'
    """
    return estimator + AUGMENTED * augmented


def methods(estimators: Sequence[str]) -> list[Method]:
    """Plain and augmented estimators; robust programs as they are."""
    return [
        Method(method_name(name, augmented), predict, {"estimator": name, "augmented": augmented})
        for name in estimators
        for augmented in ((False,) if name in ROBUST else (False, True))
    ]


def products(scale: str) -> list[Product]:
    """The grid of a scale."""

    def draws(replicates: int, cases: Sequence[str] = CASES, n: int = ROWS) -> list[ShiftDraw]:
        return [ShiftDraw(case, n, replicate) for replicate, case in product(range(replicates), cases)]

    def real(sets: Sequence[str], splits: int, cases: Sequence[str] = CASES) -> list[ShiftSet]:
        return [ShiftSet(case, name, split) for split, name, case in product(range(splits), sets, cases)]

    if scale == "smoke":
        few = methods(["affine intercept", "affine", "worst deletion"])
        return [Product(draws(1, CASES[:2], 100), few), Product(real(SMOKE_SETS, 1, CASES[:1]), few)]
    cheap, costly, robust = methods(CHEAP), methods(COSTLY), methods(ROBUST)
    fused = Product(draws(2), methods(FUSED))
    if scale == "paper":
        every = [*cheap, *costly]
        return [Product(draws(40), [*every, *robust]), Product(real(SETS, 10), every), fused]
    return [
        Product(draws(10), [*cheap, *robust]),
        Product(real(SETS, 1), cheap),
        Product(draws(6), costly),
        Product(real(SETS, 1, FEW), costly),
        fused,
    ]


STUDY = Study(
    name="shift",
    scales=SCALES,
    title="Training under one law of missingness, use under another",
    description=(
        "R2 of adaptive models and others if the law of missingness changes after training, with and without training "
        f"on further deletions; {len(ESTIMATORS)} estimators, {len(CASES)} cases."
    ),
    products=products,
    reference="affine intercept",
    settings=("kind", "case", "n", "dataset"),
)
