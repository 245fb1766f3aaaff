"""Greedy splitting against the proven optimum, and against no split, on generated and on real patterns.

All three minimise the same leaf cost, with static leaves, one ridge, the same depth and minimum rows per leaf, which
makes the training costs of their certificates comparable. In a tuned problem cross-validation selects depth, ridge and
leaf model, and only test scores are comparable. Scores:

    score          R2 on the test rows
    train_cost     cost of the leaves in training: squared errors plus ridge
    proof, gap     status of the certificate, and its relative gap (null without a bound)
    leaves, depth  of the tree
    ridge, leaf_model, n_train, d, missing, patterns

The exact tree has no time limit of its own, on which its numbers would depend: a cell that takes too long has failed.
"""

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from admiss import FiniteRegressor, FiniteRegressorCV
from admiss.datasets.paper.registry import find_record, registry
from admiss.partition import Greedy, OptimalTree, Partitioner
from admiss.study import Method, Product, Scores, Study
from experiments.scales import SCALES
from experiments.studies.partitions.problems import GeneratedPatterns, PartitionRows, RealPatterns

PARTITIONERS = ("none", "greedy", "exact")
# Shares of missing values by source; tuned problems have the first.
FRACTIONS = {
    "mcar": (0.3, 0.1, 0.5), "censoring": (0.3, 0.1, 0.5), "mcar, nn": (0.3,), "interacting": (0.5, 0.3),
}  # fmt: skip
MAX_ROWS = 5000
# Sets with fewer patterns or rows, which leave little to choose, are run only at paper scale.
FEWEST_PATTERNS, FEWEST_ROWS = 5, 100
# Wider sets are not tuned: 70 fits per fold of leaves with hundreds of features take minutes.
TUNED_COLUMNS = 100
# Six thyroid sets have the same features: with drawn targets one of the six is enough.
SAME_ROWS = tuple(f"thyroid-disease-{name}" for name in ("allhyper", "allhypo", "allrep", "dis", "sick"))


def fit_partition(rows: PartitionRows, seed: int, *, partitioner: str, ridge: float, leaf_model: str) -> Scores:
    """Fit at the given depth, ridge and leaf model; the seed is not used."""
    model = FiniteRegressor(
        _partitioner(rows, partitioner), ridge=ridge, leaf_model=leaf_model, center=False, scale=False
    )
    return _scores(model, rows)


def fit_tuned_partition(rows: PartitionRows, seed: int, *, partitioner: str, folds: int) -> Scores:
    """Fit at the depth, ridge and leaf model that cross-validation selects."""
    depths = () if partitioner == "none" else range(1, rows.max_depth + 1)
    model = FiniteRegressorCV(
        _partitioner(rows, partitioner), max_depths=tuple(depths), center=False, cv=folds, random_state=seed
    )  # fmt: skip
    return _scores(model, rows)


METHODS = tuple(
    Method(name, fit_partition, {"partitioner": name, "ridge": 1.0, "leaf_model": "static"}) for name in PARTITIONERS
)
TUNED_METHODS = tuple(Method(name, fit_tuned_partition, {"partitioner": name, "folds": 5}) for name in PARTITIONERS)


def _partitioner(rows: PartitionRows, name: str) -> Partitioner:
    limits: dict[str, Any] = {"min_rows": min(rows.min_rows, len(rows.X_train)), "split_features": rows.split_features}
    if name == "none":
        return Greedy(max_leaves=1, **limits)
    if name == "greedy":
        return Greedy(max_depth=rows.max_depth, **limits)
    if name == "exact":
        return OptimalTree(max_depth=rows.max_depth, **limits)
    raise ValueError(f"Unknown partitioner {name!r}: choose one of {', '.join(PARTITIONERS)}.")


def _scores(model: Any, rows: PartitionRows) -> Scores:
    with warnings.catch_warnings():
        # About features never observed in training; too many boxes show in the proof.
        warnings.simplefilter("ignore")
        start = time.process_time()
        model.fit(rows.X_train, rows.y_train)
        seconds = time.process_time() - start
        score = float(model.score(rows.X_test, rows.y_test))
    fitted = getattr(model, "best_estimator_", model)
    certificate = fitted.certificate_
    return {
        "score": score,
        "seconds": seconds,
        "train_cost": float(certificate.objective),
        "proof": certificate.status,
        "gap": float(certificate.relative_gap) if np.isfinite(certificate.bound) else None,
        "leaves": int(fitted.n_leaves_),
        "depth": int(fitted.partition_.depth),
        "ridge": float(fitted.ridge),
        "leaf_model": fitted.leaf_model,
        **rows.facts,
    }


def products(scale: str) -> list[Product]:
    """The grids of a scale."""
    if scale == "smoke":
        fractions: dict[str, Sequence[float]] = {"mcar": (0.3,), "interacting": (0.5,)}
        return [
            *_generated(fractions, (200,), (1, 2), range(2)),
            *_real(["COUNT-loomis"], ["datasets-airquality"], (2,), range(1)),
        ]
    if scale == "laptop":
        return [
            *_generated(FRACTIONS, (200, 1000, 10_000), (1, 2, 3, 4), range(10)),
            *_real(*_datasets(FEWEST_PATTERNS, FEWEST_ROWS), (2, 3), range(5)),
        ]
    fractions = {source: (*first, *(p for p in (0.1, 0.3, 0.5, 0.7, 0.9) if p not in first))
                 for source, first in FRACTIONS.items()}  # fmt: skip
    return [
        *_generated(fractions, (100, 200, 500, 1000, 2000, 5000, 10_000), (1, 2, 3, 4, 5), range(50)),
        *_real(*_datasets(2, 1), (1, 2, 3, 4, 5), range(50)),
    ]


def _generated(
    fractions: dict[str, Any], sizes: Sequence[int], depths: Sequence[int], replicates: Sequence[int]
) -> list[Product]:
    """Every depth at every share of missing values, and tuned problems at the first share."""
    fixed = [
        GeneratedPatterns(source, n, fraction, depth, False, replicate)
        for source, shares in fractions.items()
        for n in sizes
        for fraction in shares
        for replicate in replicates
        for depth in depths
    ]
    tuned = [
        GeneratedPatterns(source, n, shares[0], max(depths), True, replicate)
        for source, shares in fractions.items()
        for n in sizes
        for replicate in replicates
    ]
    return [Product(fixed, METHODS), Product(tuned, TUNED_METHODS)]


def _real(
    regressions: Sequence[str], datasets: Sequence[str], depths: Sequence[int], replicates: Sequence[int]
) -> list[Product]:
    """Every depth with real and drawn targets; tuned problems up to depth 2, with the first replicate only."""
    rows = [(name, "real target") for name in regressions]
    rows += [(name, source) for name in datasets for source in ("mar", "am")]
    fixed = [
        RealPatterns(name, source, MAX_ROWS, depth, False, replicate)
        for name, source in rows
        for replicate in replicates
        for depth in depths
    ]
    tuned = [
        RealPatterns(name, source, MAX_ROWS, 2, True, replicates[0])
        for name, source in rows
        if find_record(name).clean[1] <= TUNED_COLUMNS
    ]
    return [Product(fixed, METHODS), Product(tuned, TUNED_METHODS)]


def _datasets(fewest_patterns: int, fewest_rows: int) -> tuple[list[str], list[str]]:
    """Names of the data sets with enough patterns and rows: those with a numeric target, and all."""
    large = []
    for name, record in registry().items():
        n, _, patterns = record.clean
        if patterns >= fewest_patterns and n >= fewest_rows:
            large.append(name)
    regressions = [name for name in large if find_record(name).task == "regression"]
    return regressions, [name for name in large if name not in SAME_ROWS]


STUDY = Study(
    name="partitions",
    scales=SCALES,
    title="Greedy against exact partitions",
    description=(
        "Training cost and test R2 of the greedy tree, of the proven optimum and of no split, at the same leaf cost, "
        "on generated and on real missingness patterns."
    ),
    products=products,
    settings=("source", "n", "missing_fraction", "max_depth", "tuned", "dataset"),
    seconds=600.0,
    gigabytes=8.0,
)
