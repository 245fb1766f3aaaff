"""Measurements of the study of Theorem 1: excess risks of truncated least squares, and biases.

Truths of Assumption 2.1 with L = 1 (Gaussian weights, signs, parities) and populations on which all expectations are
finite sums (:mod:`experiments.studies.bounds.population`). Least squares of each class without a penalty (the solution
of smallest norm if there are several), truncated to [-1, 1], Gaussian noise. The theorem bounds the mean over samples,
here over ``replicates``, of

    excess = E (f* - T_L f_n)^2 <= 8 b(F) + c max{sigma^2, L^2} (1 + log n) / n p(F).

One half of truths and sizes chooses c, the other checks it; the halves have different truths, sizes and samples. Within
a population all truths have the same rows x and M with their own noise, and all classes have the same samples. An
instance is a population with one half; a method is a class, whose cell has one record per size, variance and truth.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from admiss.bounds import BoundSetting, bias_bound, coefficient_count, generalization_bound
from admiss.bounds.counts import class_name, read_class
from admiss.study import Method, Scores
from experiments.studies.bounds import population as populations
from experiments.studies.bounds.population import KINDS
from formulations.arrays import FloatArray

HALVES = ("choose", "check")
# Least squares is worst if n is about p(F): both halves have sizes near each count.
SIZES = {"choose": (4, 8, 24, 64, 192, 512, 2048), "check": (6, 16, 48, 128, 256, 1024, 4096)}
PLACES = ("box", "corners")
# Below sigma^2 = L^2 the noise does not reach max{sigma^2, L^2}; above, truncation keeps the excess from growing.
VARIANCES = (0.01, 0.25, 1.0, 4.0)
BIAS_LAWS = ("half", "fifth", "rare")


@dataclass(frozen=True)
class SampledPopulation:
    """Truths on a population, and samples of it.

    Attributes
    ----------
    d : int
        Features.
    place, law : str
        The population.
    half : {"choose", "check"}
    replicates : int
        Samples of each size.
    truths : int
        Truths of each kind.
    """

    d: int
    place: str
    law: str
    half: str
    replicates: int
    truths: int

    def make(self) -> "Samples":
        """Make the truths and the generator of samples."""
        return Samples(self)


class Samples:
    """Truths, as arrays of their weights, and the moments of samples, which are the same for each class."""

    def __init__(self, recipe: SampledPopulation) -> None:
        self.recipe = recipe
        self.source = populations.population(recipe.place, recipe.law, recipe.d)
        self.sizes = SIZES[recipe.half]
        self.kinds = [kind for kind in KINDS for _ in range(recipe.truths)]
        self.deviations = np.repeat(np.sqrt(VARIANCES), len(self.kinds))

    @cached_property
    def truths(self) -> FloatArray:
        """Weights of the truths, of shape (patterns, d + 1, truths)."""
        return self._truths(self._rng())

    @cached_property
    def every(self) -> FloatArray:
        """The truths, once for each variance."""
        return np.concatenate([self.truths] * len(VARIANCES), axis=2)

    def moments(self) -> Iterator[tuple[int, int, tuple[FloatArray, FloatArray]]]:
        """Index of the size, replicate, and moments of every sample."""
        rng = self._rng()
        self._truths(rng)  # samples come after the truths in the stream
        for i, n in enumerate(self.sizes):
            for replicate in range(self.recipe.replicates):
                z, patterns = populations.draw(n, self.source, rng)
                noise = self.deviations * rng.normal(size=(n, len(self.deviations)))
                y = np.einsum("ij,ijk->ik", z, self.every[patterns]) + noise
                yield i, replicate, populations.sample_moments(z, patterns, y, len(self.truths))

    def _rng(self) -> np.random.Generator:
        r = self.recipe
        indices = [PLACES.index(r.place), populations.LAWS.index(r.law), HALVES.index(r.half)]
        return np.random.default_rng([r.d, *indices])

    def _truths(self, rng: np.random.Generator) -> FloatArray:
        d = self.recipe.d
        W = np.zeros((2**d, d + 1, len(self.kinds)))
        for k, kind in enumerate(self.kinds):
            W[:, 1:, k] = populations.draw_truth(kind, d, 1.0, random_state=int(rng.integers(2**31))).T
        return W * self.source.observed[:, :, None]


def classes(d: int) -> list[Any]:
    """The classes to fit; order d - 1 is fully adaptive."""
    return ["static", "affine_intercept", "affine", *(("polynomial", t) for t in range(2, d - 1)), "fully_adaptive"]


def class_methods(d: int) -> list[Method]:
    """One method per class."""
    methods = []
    for F in classes(d):
        parameters = {"adaptivity": F} if isinstance(F, str) else {"adaptivity": F[0], "order": F[1]}
        methods.append(Method(class_name(read_class(F, d)), excess_risk, parameters))
    return methods


def excess_risk(samples: Samples, seed: int, *, adaptivity: str, order: int | None = None) -> Scores:
    """Biases, and mean excess risks with standard errors, of shape (sizes, variances x truths).

    The score is the largest c that the theorem needs with the true bias. Samples depend on the recipe and not on the
    seed.
    """
    start = time.process_time()
    d, replicates = samples.recipe.d, samples.recipe.replicates
    F: Any = adaptivity if order is None else (adaptivity, order)
    columns = populations.class_map(read_class(F, d), d)
    gram = populations.population_gram(samples.source)
    best = populations.least_squares(columns, gram, gram @ samples.truths)
    bias = populations.squared_distance(samples.source, best, samples.truths)
    excess = np.empty((replicates, len(samples.sizes), len(samples.deviations)))
    for i, replicate, moments in samples.moments():
        fitted = populations.least_squares(columns, *moments)
        excess[replicate, i] = populations.squared_distance(samples.source, fitted, samples.every, L=1.0)
    scores = {
        "kinds": samples.kinds,
        "bias": bias.tolist(),
        "mean": excess.mean(axis=0).tolist(),
        "error": (excess.std(axis=0, ddof=1) / replicates**0.5).tolist(),
    }
    r = samples.recipe
    cell = {"d": d, "place": r.place, "law": r.law, "half": r.half, "method": class_name(read_class(F, d)), **scores}
    needed = max(record.needed("true") for record in read(cell))
    return {"score": needed, "seconds": time.process_time() - start, **scores}


@dataclass(frozen=True)
class Record:
    """A class, truth, noise and size: the mean excess over samples, its standard error, and b(F) by every rule."""

    d: int
    name: str
    kind: str
    place: str
    law: str
    half: str
    n: int
    sigma2: float
    excess: float
    error: float
    biases: dict[str, float]
    p: int

    def needed(self, rule: str, L: float = 1.0, constant: str = "proved") -> float:
        """The smallest c >= 0 for this record, after f* and noise are multiplied by L."""
        return max(0.0, (self.excess - 8 * self.biases[rule]) * L**2 / self.room(L, constant))

    def room(self, L: float = 1.0, constant: str = "proved") -> float:
        """The estimation part of the bound at c = 1."""
        return self.p * unit(self.n, self.sigma2 * L**2, L, constant)


@cache
def unit(n: int, sigma2: float, L: float, constant: str) -> float:
    """The estimation part of the bound for one coefficient, at c = 1."""
    setting = BoundSetting(1, sigma2, L, bias=0.0, constant=constant, count="table")
    return generalization_bound(setting, n, "static").estimation


def read(cell: Mapping[str, Any]) -> Iterator[Record]:
    """The records of a cell, given by its scores with the fields of its instance, or by its row in the table."""
    d, law, half, name = cell["d"], cell["law"], cell["half"], cell["method"]
    F = next(F for F in classes(d) if class_name(read_class(F, d)) == name)
    kinds, bias, means, errors = (plain(cell[column]) for column in ("kinds", "bias", "mean", "error"))
    missing = populations.law_of_patterns(law, d)
    bounds = {rule: bias_bound(F, d, 1.0, bias=rule, missing=missing) for rule in ("proved", "paper")}
    count = coefficient_count(F, d)
    for i, n in enumerate(SIZES[half]):
        for k, (mean, error) in enumerate(zip(means[i], errors[i], strict=True)):
            truth = k % len(kinds)
            biases = {"true": bias[truth], **bounds}
            variance = VARIANCES[k // len(kinds)]
            yield Record(d, name, kinds[truth], cell["place"], law, half, n, variance, mean, error, biases, count)


def plain(value: Any) -> Any:
    """Decode a list or dict, which is JSON text in a table."""
    return json.loads(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class DrawnTruths:
    """Truths whose biases are known exactly; x_j = +-1 of mean 0, independent of each other and of M.

    Attributes
    ----------
    d : int
        Features.
    law : str
        Law of independent M_j.
    truths : int
        Truths of each kind.
    """

    d: int
    law: str
    truths: int

    def make(self) -> dict[str, Any]:
        """Make the rates of missing values and the weights of the truths of each kind."""
        rng = np.random.default_rng([self.d, BIAS_LAWS.index(self.law)])
        weights = {
            kind: [
                populations.draw_truth(kind, self.d, 1.0, random_state=int(rng.integers(2**31)))
                for _ in range(self.truths)
            ]
            for kind in KINDS
        }
        return {"rates": populations.RATES[self.law](self.d), "weights": weights}


def exact_biases(truths: dict[str, Any], seed: int) -> Scores:
    """Exact biases of all orders beside the two formulas.

    The score is the largest true bias as a share of the proved bound.
    """
    start = time.process_time()
    rates, d = truths["rates"], len(truths["rates"])
    true = {
        kind: [populations.order_biases(weights, rates, 1.0)[: d - 1].tolist() for weights in drawn]
        for kind, drawn in truths["weights"].items()
    }
    proved, paper = (
        [bias_bound(("polynomial", t), d, 1.0, bias=rule, missing=rates) for t in range(d - 1)]
        for rule in ("proved", "paper")
    )
    share = max(float(np.max(np.array(biases) / proved)) for biases in true.values())
    return {"score": share, "seconds": time.process_time() - start, "true": true, "proved": proved, "paper": paper}
