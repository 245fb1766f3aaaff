"""Adaptivity classes of the paper, of this package and of the literature on the same rows.

    smoke     one generated set of each kind with 100 rows, and two small real sets
    laptop    generated: 300 rows, 30 % missing, linear under MCAR and censoring, neural network under MCAR, and
              interacting patterns, 10 draws each; 20 instances of the paper's authors (n = 200, 30 %); 36 real sets,
              three splits of at most 1,000 rows
    paper     the same with 1,000 rows, 30 draws, 80 instances of the authors, ten splits of at most 5,000 rows

On wide real sets a class is left out if it has too many columns or takes minutes: see ``LARGEST``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

from admiss.adaptivity import Polynomial
from admiss.datasets import make_interacting
from admiss.study import Method, Product, Study, instance_seed
from experiments.scales import SCALES
from experiments.studies.classes.methods import by_path, reference, structured
from experiments.studies.methods.rows import StudyRows, size_facts
from experiments.studies.real_design.instances import FEATURES_THAT_VARY, SMOKE_SETS, RealTarget, target_sets
from experiments.studies.synthetic.grid import SETTINGS
from experiments.studies.synthetic.instances import AuthorsInstance, TextInstance

REFERENCE = "affine intercept"
ANY, SPARSE = {"l1_ratios": [0.0, 1.0]}, {"l1_ratios": [1.0]}
# Name of each class in tables: its name in the package and its l1 ratios.
BY_PATH: dict[str, tuple[str, dict[str, Any]]] = {
    "static": ("static", ANY),
    REFERENCE: ("affine_intercept", ANY),
    "affine": ("affine", ANY),
    "polynomial 2": ("polynomial_2", ANY),
    "fully adaptive": ("fully_adaptive", ANY),
    "conditional mean": ("conditional_mean", ANY),
    "shared": ("shared_patterns", ANY),
    "frequent": ("frequent_patterns", ANY),
    "avoiding": ("missingness_avoiding", SPARSE),
    "binned": ("binned_affine", SPARSE),
}
STRENGTHS = {"low_rank": [0.02, 0.1, 0.5], "fused": [0.05, 0.3, 2.0]}
METHODS = [
    *(Method(name, by_path, {"adaptivity": own, **ratios}) for name, (own, ratios) in BY_PATH.items()),
    Method("low rank", structured, {"adaptivity": "low_rank", "strengths": STRENGTHS["low_rank"]}),
    Method("fused", structured, {"adaptivity": "fused", "strengths": STRENGTHS["fused"]}),
    Method("mean + indicators, ridge", reference, {"learner": "ridge"}),
    Method("HistGradientBoosting", reference, {"learner": "boosting"}),
]
# Whether a class is run on a real set with so many features, of which so many can be missing.
LARGEST: dict[str, Callable[[int, int], bool]] = {
    "affine": lambda d, missable: (d + 1) * (missable + 1) <= 1000,
    "polynomial 2": lambda d, missable: Polynomial(2).n_columns(d, missable) <= 1000,
    "fully adaptive": lambda d, missable: missable <= 12 and d <= 50,
    "low rank": lambda d, missable: d <= 20,
    "fused": lambda d, missable: d <= 20 and missable <= 8,
}


@dataclass(frozen=True)
class InteractingDraw:
    """Weights that depend on the parity of two indicators (``make_interacting``).

    Attributes
    ----------
    n : int
        Training rows.
    d : int
        Features.
    replicate : int
    """

    n: int
    d: int
    replicate: int

    def make(self) -> StudyRows:
        """Make the rows."""
        data = make_interacting(n=self.n, d=self.d, random_state=instance_seed(self))
        facts = {**size_facts(data.X_train), "ceiling": float(data.ceiling)}
        return StudyRows(data.X_train, data.y_train, data.X_test, data.y_test, None, None, "regression", facts)


def products(scale: str) -> list[Product]:
    """The grid of a scale."""
    n, draws, signals, splits, rows = {
        "smoke": (100, 1, 0, 1, 200),
        "laptop": (300, 10, 5, 3, 1000),
        "paper": (1000, 30, 10, 10, 5000),
    }[scale]
    kinds = (("mcar", "linear"), ("censoring", "linear"), ("mcar", "nn"))
    generated: list[Any] = [TextInstance(n, *kind, 0.3, r) for r, kind in product(range(1, draws + 1), kinds)]
    generated += [InteractingDraw(n, 6, r) for r in range(1, draws + 1)]
    sizes = (200, 800) if scale == "paper" else (200,)
    generated += [AuthorsInstance(n, *kind, 0.3, r) for n, r, kind in product(sizes, range(1, signals + 1), SETTINGS)]
    names = SMOKE_SETS if scale == "smoke" else target_sets()
    real = [
        Product([RealTarget(name, split, rows) for split in range(splits)], [m for m in METHODS if _runs(m.name, name)])
        for name in names
    ]
    return [Product(generated, METHODS), *real]


def _runs(method: str, dataset: str) -> bool:
    missable, complete = FEATURES_THAT_VARY[dataset]
    return method not in LARGEST or LARGEST[method](missable + complete, missable)


STUDY = Study(
    name="classes",
    scales=SCALES,
    title="Adaptivity classes of the literature",
    description="Classes of the paper, of this package and of the literature on generated and real data.",
    products=products,
    reference=REFERENCE,
    settings=("kind", "mechanism", "signal", "n", "task", "dataset"),
    seconds=600.0,
)
