"""The command ``admiss demo``: the classes of the hierarchy on generated data, missing at random and censored."""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from admiss.adaptivity import Affine, AffineIntercept, FullyAdaptive, Polynomial, Static
from admiss.datasets import make_synthetic
from admiss.linear.estimators import AdaptiveRegressor
from admiss.terminal.table import Table, wrapped
from formulations.certificate import clock

HIERARCHY = {
    "static": Static(),
    "affine intercept": AffineIntercept(),
    "affine": Affine(),
    "polynomial, degree 2": Polynomial(2),
    "fully adaptive": FullyAdaptive(),
}
SNR = 2.0
MECHANISMS = {"mcar": "missing completely at random", "censoring": "largest values missing"}


def add_parser(commands: Any, summary: str) -> None:
    """Declare the options."""
    parser = commands.add_parser("demo", help=summary, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000, help="training rows")
    parser.add_argument("--missing", type=float, default=0.3, metavar="SHARE", help="share of missing values")
    parser.add_argument("--lam", type=float, default=5.0, help="strength of the penalty")
    parser.add_argument("--seed", type=int, default=0, help="seed of the data")
    parser.set_defaults(handler=lambda options: demo_pages(options.rows, options.missing, options.lam, options.seed))


def hierarchy_table(mechanism: str, n: int, missing_fraction: float, lam: float, random_state: int) -> Table:
    """R2 in training and on new rows of every class of the hierarchy."""
    data = make_synthetic(
        n=n, snr=SNR, mechanism=mechanism, missing_fraction=missing_fraction, random_state=random_state
    )
    rows = []
    for name, adaptivity in HIERARCHY.items():
        start = clock()
        model = AdaptiveRegressor(adaptivity, lam=lam).fit(data.X_train, data.y_train)
        rows.append(
            (
                name,
                len(model.coefficients_),
                round(model.score(data.X_train, data.y_train), 3),
                round(model.score(data.X_test, data.y_test), 3),
                f"{model.certificate_.relative_gap:.0e}",
                round(clock() - start, 2),
            )
        )
    names = ("adaptivity", "columns", "R2 train", "R2 test", "gap", "seconds")
    return Table(**dict(zip(names, zip(*rows, strict=True), strict=True)))


def demo_pages(n: int, missing_fraction: float, lam: float, random_state: int) -> Iterator[str]:
    """The text of the demonstration, one piece per mechanism as soon as it is computed."""
    yield wrapped(
        f"Adaptive linear regression on generated data: {n} training rows, 10 features of rank 5, "
        f"{missing_fraction:.0%} missing, lambda = {lam:g}.\n"
        f"Best possible R2 with nothing missing: {SNR / (1 + SNR):.3f}. The gap is proven by the dual program.\n"
        "(The first run on a machine compiles the engine, which takes some seconds.)\n"
    )
    # compile the engine first: the seconds below do not include it
    AdaptiveRegressor().fit(np.array([[1.0], [2.0], [np.nan]]), [1.0, 2.0, 3.0])
    for mechanism, words in MECHANISMS.items():
        yield f"{words}\n{hierarchy_table(mechanism, n, missing_fraction, lam, random_state)}\n"
