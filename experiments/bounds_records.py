"""What the study of Theorem 1 measures: excess risks of truncated least squares, and biases.

Truths of Assumption 2.1 with L = 1 (Gaussian weights, signs, parities) and populations on which all expectations are
finite sums (:mod:`experiments.bounds_population`). Least squares of each class without a penalty (the solution of
smallest norm where there are several), truncated to [-1, 1], Gaussian noise. The theorem is about the mean over
samples, here over ``REPLICATES``, of

    excess = E (f* - T_L f_n)^2 <= 8 b(F) + c max{sigma^2, L^2} (1 + log n) / n p(F).

One half of truths and sizes is there to choose c, the other to check it; truths, sizes and samples of the halves are
different. Within a population all truths have the same rows x and M, with noise of their own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from admiss.bounds.bias import bias_bound
from admiss.bounds.counts import class_name, coefficient_count, read_class
from admiss.bounds.generalization import generalization_bound
from admiss.bounds.taylor import draw_truth
from experiments import bounds_population as populations

KINDS = ("gaussian", "signs", "parity")
HALVES = ("choose", "check")
# Where n is about p(F), least squares is at its worst: both halves have sizes near each count.
SIZES = {"choose": (4, 8, 24, 64, 192, 512, 2048), "check": (6, 16, 48, 128, 256, 1024, 4096)}
FEATURES = (2, 4, 6)
PLACES = ("box", "corners")
# Below sigma^2 = L^2 the noise does not fill max{sigma^2, L^2}; above, truncation keeps the excess from growing along.
VARIANCES = (0.01, 0.25, 1.0, 4.0)
REPLICATES = 30
TRUTHS = 7
# For the biases: features, and truths of each kind.
BIAS_FEATURES = (4, 6, 8, 10)
BIAS_TRUTHS = 20
BIAS_LAWS = ("half", "fifth", "rare")


def classes(d: int) -> list[Any]:
    """The classes that are fitted; order d - 1 is fully adaptive."""
    return ["static", "affine_intercept", "affine", *(("polynomial", t) for t in range(2, d - 1)), "fully_adaptive"]


def cell(
    d: int, place: str, law: str, half: str, sizes: tuple[int, ...], replicates: int, truths: int
) -> dict[str, Any]:
    """Mean excess risks with standard errors, of shape (sizes, variances x truths), and biases, on one population."""
    source = populations.population(place, law, d)
    names = [d, PLACES.index(place), populations.LAWS.index(law), HALVES.index(half)]
    rng = np.random.default_rng(names)
    kinds = [kind for kind in KINDS for _ in range(truths)]
    W = np.zeros((2**d, d + 1, len(kinds)))
    for k, kind in enumerate(kinds):
        W[:, 1:, k] = draw_truth(kind, d, 1.0, random_state=int(rng.integers(2**31))).T
    W *= source.observed[:, :, None]
    maps = {class_name(read_class(F, d)): populations.class_map(read_class(F, d), d) for F in classes(d)}
    gram = populations.population_gram(source)
    best = {name: populations.least_squares(columns, gram, gram @ W) for name, columns in maps.items()}
    result: dict[str, Any] = {"d": d, "place": place, "law": law, "half": half, "sizes": sizes, "kinds": kinds}
    result["bias"] = {name: populations.squared_distance(source, best[name], W).tolist() for name in maps}

    every = np.concatenate([W] * len(VARIANCES), axis=2)
    deviations = np.repeat(np.sqrt(VARIANCES), len(kinds))
    excess = {name: np.empty((replicates, len(sizes), len(deviations))) for name in maps}
    for i, n in enumerate(sizes):
        for replicate in range(replicates):
            z, places = populations.draw(n, source, rng)
            y = np.einsum("ij,ijk->ik", z, every[places]) + deviations * rng.normal(size=(n, len(deviations)))
            moments = populations.sample_moments(z, places, y, len(W))
            for name, columns in maps.items():
                fitted = populations.least_squares(columns, *moments)
                excess[name][replicate, i] = populations.squared_distance(source, fitted, every, L=1.0)
    result["mean"] = {name: risks.mean(axis=0).tolist() for name, risks in excess.items()}
    result["error"] = {name: (risks.std(axis=0, ddof=1) / replicates**0.5).tolist() for name, risks in excess.items()}
    return result


@dataclass(frozen=True)
class Record:
    """One class, truth, noise and size: the mean excess over samples, its standard error, and b(F) by every rule."""

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
    return generalization_bound(n, 1, "static", sigma2, L, bias=0.0, constant=constant, count="table").estimation


def read(cell: dict[str, Any]) -> Iterator[Record]:
    """The records of a cell."""
    d, law, kinds = cell["d"], cell["law"], cell["kinds"]
    for F in classes(d):
        name = class_name(read_class(F, d))
        missing = populations.law_of_patterns(law, d)
        bounds = {rule: bias_bound(F, d, 1.0, bias=rule, missing=missing) for rule in ("proved", "paper")}
        means, errors = cell["mean"][name], cell["error"][name]
        for i, n in enumerate(cell["sizes"]):
            for k in range(len(means[i])):
                truth = k % len(kinds)
                biases = {"true": cell["bias"][name][truth], **bounds}
                yield Record(
                    d, name, kinds[truth], cell["place"], law, cell["half"], n, VARIANCES[k // len(kinds)],
                    means[i][k], errors[i][k], biases, coefficient_count(F, d),
                )  # fmt: skip


def chosen_constant(
    records: list[Record], rule: str, L: float = 1.0, constant: str = "proved"
) -> tuple[Record, list[Record], int]:
    """The record of one half that needs the largest c, those of the other half that need more, and their number."""
    needed = {half: [r for r in records if r.half == half] for half in HALVES}
    worst = max(needed["choose"], key=lambda r: r.needed(rule, L, constant))
    c = worst.needed(rule, L, constant)
    return worst, [r for r in needed["check"] if r.needed(rule, L, constant) > c], len(needed["check"])


def by_class(records: list[Record]) -> dict[str, list[Record]]:
    """The records of each class, poorest class first."""
    groups: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: (-record.d, record.p, record.n)):
        groups.setdefault(record.name, []).append(record)
    return groups


def bias_cell(d: int, law: str, truths: int) -> dict[str, Any]:
    """Exact biases of all orders beside the two formulas; x_j = +-1 of mean 0, independent of each other and of M."""
    rates = populations.RATES[law](d)
    rng = np.random.default_rng([d, BIAS_LAWS.index(law)])
    true: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    for kind in KINDS:
        for _ in range(truths):
            weights = draw_truth(kind, d, 1.0, random_state=int(rng.integers(2**31)))
            true[kind].append(populations.order_biases(weights, rates, 1.0)[: d - 1].tolist())
    formulas = {
        rule: [bias_bound(("polynomial", t), d, 1.0, bias=rule, missing=rates) for t in range(d - 1)]
        for rule in ("proved", "paper")
    }
    return {"d": d, "law": law, "true": true, **formulas}
