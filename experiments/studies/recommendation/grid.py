"""Are classes recommended from second moments as good as those chosen by cross-validation?

smoke     one instance of the paper and one law of each half, 100 rows
laptop    MCAR instances of the paper (3 sizes x 3 missing fractions x 2 signals x 2 replicates), 20 further laws
          and 24 laws for the calibration of the constant, at 3 sizes
paper     five replicates, 100 further laws and 100 for the calibration

In a law, values are missing completely at random. It is drawn from its number: 4 to 10 features with one of four
covariances (autoregressive, low rank with a little noise, equal correlations, random), normal or with heavier tails,
missing rates of .05 to .6 that differ between features, and a target that is linear, or linear with a product and a
square, with a signal-to-noise ratio of .5 to 8. Laws of the calibration half choose the constant of
``recommend_from_data``; those of the other half judge it.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from admiss.study import Product, Study, instance_seed
from experiments.scales import SCALES
from experiments.studies.methods.rows import StudyRows, size_facts
from experiments.studies.recommendation.methods import RECOMMENDATION
from experiments.studies.synthetic.instances import AuthorsInstance
from formulations.arrays import FloatArray

SIZES = (100, 300, 1000)
FRACTIONS = (0.1, 0.3, 0.5)
TEST_ROWS = 4000
HALVES = ("calibration", "further")


@dataclass(frozen=True)
class DrawnLaw:
    """A law of features, target and missing values, and a sample of it.

    Attributes
    ----------
    half : {"calibration", "further"}
    law : int
        Number of the law.
    n : int
        Training rows.
    """

    half: str
    law: int
    n: int

    def make(self) -> StudyRows:
        """Draw the law from its number, and rows from the seed of the instance."""
        rng = np.random.default_rng([HALVES.index(self.half), self.law])
        d = int(rng.integers(4, 11))
        root = _root(self.law % 4, d, rng)
        heavy, curved = bool(rng.integers(2)), bool(rng.integers(2))
        slopes = rng.normal(size=d) * (rng.uniform(size=d) < 0.7)
        rates = rng.uniform(0.05, 0.6, d)
        snr = float(np.exp(rng.uniform(np.log(0.5), np.log(8.0))))
        rows = np.random.default_rng(instance_seed(self))

        def draw(size: int) -> tuple[FloatArray, FloatArray]:
            u = rows.standard_t(5, size=(size, d)) * np.sqrt(0.6) if heavy else rows.normal(size=(size, d))
            X = u @ root.T
            return X, X @ slopes + (0.5 * X[:, 0] * X[:, 1] + 0.3 * X[:, 2] ** 2 if curved else 0.0)

        X, signal = draw(self.n + TEST_ROWS)
        y = signal + rows.normal(size=len(X)) * np.sqrt(np.var(signal) / snr)
        missing = np.where(rows.uniform(size=X.shape) < rates, np.nan, X)
        n = self.n
        return StudyRows(missing[:n], y[:n], missing[n:], y[n:], X[:n], X[n:], "regression", size_facts(missing[:n]))


def _root(kind: int, d: int, rng: np.random.Generator) -> FloatArray:
    """A root of a covariance with unit variances."""
    if kind == 0:
        C = rng.uniform(0.3, 0.9) ** np.abs(np.subtract.outer(range(d), range(d)))
    elif kind == 1:
        A = rng.normal(size=(d, max(2, d // 2)))
        C = A @ A.T + 0.02 * np.eye(d)
    elif kind == 2:
        r = rng.uniform(0.0, 0.8)
        C = (1 - r) * np.eye(d) + r
    else:
        A = rng.normal(size=(d, d))
        C = A @ A.T
    scale = np.sqrt(np.diag(C))
    return np.linalg.cholesky(C / np.outer(scale, scale))


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
