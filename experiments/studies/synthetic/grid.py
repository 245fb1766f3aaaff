"""The study on generated data (Section 4.2 and Appendix C of the paper).

Instances are those of the authors, with their protocol for the methods (``r2_authors`` is R2 in their form), and fresh
draws of the text with the methods of the text.

    smoke     n = 40, 10 % and 50 % missing, one signal
    laptop    9 sizes x 5 missing fractions x 5 signals x 4 settings of the authors (900 instances; the shuffle of the
              rows alternates along the grid), and 4 x 3 x 5 x 4 fresh draws, all with reduced grids
    paper     49 sizes x 8 missing fractions x 10 replicates x 4 settings (15,680 instances) with the authors' grids,
              and as many fresh draws with reduced grids
"""

from itertools import product
from typing import Any

from admiss.baselines import GRIDS
from admiss.study import Method, Product, Study
from experiments.scales import SCALES
from experiments.studies.columns import METRICS, with_selected_depth
from experiments.studies.methods.families import (
    AUTHORS_PENALTIES,
    BEST_ON_GENERATED,
    PENALTIES,
    REDUCED,
    TEXT_PENALTIES,
    adaptive_methods,
    joint_methods,
    native_methods,
    tuned_methods,
)
from experiments.studies.synthetic.instances import AuthorsInstance, TextInstance


def _methods(protocol: str, grids: dict[str, Any], penalties: dict[str, Any]) -> list[Method]:
    mice = "together" if protocol == "authors" else "mice"
    return [
        *adaptive_methods(protocol, penalties),
        *tuned_methods("Mean", "mean", grids),
        *tuned_methods("mice", mice, grids),
        *native_methods(grids),
        *joint_methods(protocol, grids),
    ]


SETTINGS = list(product(("mcar", "censoring"), ("linear", "nn")))
SIZES = (40, 60, 100, 160, 240, 360, 520, 720, 1000)
FRACTIONS = (0.1, 0.2, 0.4, 0.6, 0.8)


def spread_instances() -> list[AuthorsInstance]:
    """All signals at a spread of sizes and missing fractions; neighbours differ in the shuffle of the rows."""
    return [
        AuthorsInstance(n, mechanism, signal, p, first + 5 * ((SIZES.index(n) + FRACTIONS.index(p)) % 2))
        for n, p, first, (mechanism, signal) in product(SIZES, FRACTIONS, range(1, 6), SETTINGS)
    ]


def products(scale: str) -> list[Product]:
    """The grid of a scale."""
    authors = _methods("authors", REDUCED, PENALTIES)
    text = _methods("text", REDUCED, TEXT_PENALTIES)
    if scale == "smoke":
        few = [
            AuthorsInstance(40, mechanism, "linear", p, 1) for mechanism in ("mcar", "censoring") for p in (0.1, 0.5)
        ]
        return [Product(few, authors), Product([TextInstance(40, "censoring", "nn", 0.3, 1)], text)]
    if scale == "laptop":
        fresh = [
            TextInstance(n, mechanism, signal, p, replicate)
            for n, p, replicate, (mechanism, signal) in product(
                (40, 100, 300, 1000), (0.1, 0.4, 0.8), range(5), SETTINGS
            )
        ]
        return [Product(spread_instances(), authors), Product(fresh, text)]
    everything = list(product(range(40, 1001, 20), SETTINGS, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8), range(1, 11)))
    own_grids = _methods("authors", GRIDS["authors"], AUTHORS_PENALTIES)
    return [
        Product([AuthorsInstance(n, m, s, p, r) for n, (m, s), p, r in everything], own_grids),
        Product([TextInstance(n, m, s, p, r) for n, (m, s), p, r in everything], text),
    ]


STUDY = Study(
    name="synthetic",
    scales=SCALES,
    title="Generated data",
    description="The main table of the paper and the one by adaptivity level, on the authors' data and on fresh draws.",
    products=products,
    best=BEST_ON_GENERATED,
    metrics=METRICS,
    derived=with_selected_depth,
    settings=("kind", "mechanism", "signal", "missing_fraction", "n"),
)
