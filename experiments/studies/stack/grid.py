"""Beyond the paper: conditional laws and a stack of models, beside the methods of the paper.

    smoke     a generated instance of the authors and two small real sets
    laptop    generated: n = 200 and 800, 30 % and 60 % missing, five signals, four settings (80 instances of the
              authors, their protocol, reduced grids); real targets: all sets, three splits, at most 5,000 rows. The
              defaults were chosen on splits 0 to 2 and on the first two signals; the splits here are others of the same
              sets
    paper     the same generated instances with both shuffles, and ten splits of all rows

The generated features are Gaussian of rank 5, which favours models of the conditional law of the missing values.
"""

from itertools import product

from admiss.study import Method, Product, Study
from experiments.scales import SCALES
from experiments.studies.columns import METRICS, with_selected_depth
from experiments.studies.methods.families import (
    BEST_ON_GENERATED,
    PENALTIES,
    REDUCED,
    adaptive_methods,
    joint_methods,
    native_methods,
    tuned_methods,
)
from experiments.studies.real_design.grid import FEW_FEATURES
from experiments.studies.real_design.grid import PENALTIES as FEW_PENALTIES
from experiments.studies.real_design.instances import LAPTOP_ROWS, SMOKE_SETS, RealTarget, target_sets
from experiments.studies.stack.methods import single, stack
from experiments.studies.synthetic.grid import SETTINGS
from experiments.studies.synthetic.instances import AuthorsInstance

STACK = "AdaptiveStack"
SIZES = (200, 800)
FRACTIONS = (0.3, 0.6)
SHRINKAGE = 30.0


def _new_methods() -> list[Method]:
    names = {
        "Conditional mean": "conditional_mean",
        "Conditional mean, censored": "conditional_mean_censored",
        "Expected features": "expected_features",
        "Expected features, censored": "expected_features_censored",
    }
    return [
        Method(STACK, stack, {"candidates": "auto", "shrinkage": SHRINKAGE}),
        *(Method(name, single, {"name": candidate}) for name, candidate in names.items()),
    ]


def _on_generated() -> list[Method]:
    return [
        *_new_methods(),
        *adaptive_methods("authors", PENALTIES),
        *tuned_methods("Mean", "mean", REDUCED),
        *tuned_methods("mice", "together", REDUCED),
        *native_methods(REDUCED),
        *joint_methods("authors", REDUCED),
    ]


def _on_real() -> list[Method]:
    return [
        *_new_methods(),
        *adaptive_methods("text", FEW_PENALTIES, centre=True)[:1],
        *tuned_methods("Mean", "mean", FEW_FEATURES),
        *tuned_methods("mice", "together", FEW_FEATURES),
        *native_methods(FEW_FEATURES)[1:],
    ]


def products(scale: str) -> list[Product]:
    """The grid of a scale."""
    if scale == "smoke":
        one = [AuthorsInstance(100, "censoring", "linear", 0.3, 1)]
        sets = [RealTarget(name, 0, LAPTOP_ROWS) for name in SMOKE_SETS]
        return [Product(one, _on_generated()), Product(sets, _on_real())]
    replicates = range(1, 11) if scale == "paper" else range(1, 6)
    generated = [
        AuthorsInstance(n, mechanism, signal, p, replicate)
        for n, p, replicate, (mechanism, signal) in product(SIZES, FRACTIONS, replicates, SETTINGS)
    ]
    splits, rows = (range(3, 13), None) if scale == "paper" else (range(3, 6), LAPTOP_ROWS)
    real = [RealTarget(name, split, rows) for name in target_sets() for split in splits]
    return [Product(generated, _on_generated()), Product(real, _on_real())]


STUDY = Study(
    name="stack",
    scales=SCALES,
    title="Past the paper",
    description="Conditional laws and a stack of models beside the methods of the paper, on generated and real data.",
    products=products,
    best=BEST_ON_GENERATED,
    metrics=METRICS,
    derived=with_selected_depth,
    settings=("kind", "mechanism", "signal", "missing_fraction", "n", "task", "dataset"),
    seconds=1800.0,
)
