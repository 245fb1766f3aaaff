"""Small studies with tables of random numbers, for the tests of reports."""

import json
from dataclasses import asdict, dataclass, replace
from itertools import product

import numpy as np
import polars as pl

from admiss.study import Best, Method, Product, Study
from admiss.study.report.labels import Labels
from admiss.study.report.presentation import Presentation
from admiss.study.report.sections import Section

BESTS = ("Joint", "Mean", "mice")
SPITEFUL = '</script><img src="http://example.invalid/x.png" onerror="alert(1)"> & "quotes"'
FACTS = {
    "command": ["python -m experiments run synthetic --scale laptop", "python -m experiments report synthetic"],
    "versions": {"admiss": "0.1", "python": "3.11.2", "numpy": "1.26"},
    "machine": "a machine with 2 cores",
    "digests": [("0123456789abcdef", 700), ("fedcba9876543210", 12)],
    "scale": "laptop",
    "done": 700,
    "failed": 12,
    "pending": 30,
    "stale": 0,
}


LABELS = Labels(
    words={"mcar": "MCAR", "censoring": "censoring", "am": "AM", "TextInstance": "fresh draws of the text"},
    reference="Mean - best",
    outside={"kind": ("TextInstance",), "signal": ("tree",)},
)
SECTION = Section("A <comparison>", "Some & more.", ("method", "R2"), (("<b>Affine</b>", 0.12345), ("Finite", None)))


def presented(study):
    """A study with labels, a table, and a value that is not the score on some of its instances."""
    return Presentation(study, lambda table: [SECTION], labels=LABELS, value=value_of)


def value_of(table):
    score = pl.col("score")
    return pl.coalesce("r2_authors", score) if "r2_authors" in table.columns else score


@dataclass(frozen=True)
class AuthorsInstance:
    n: int
    mechanism: str
    signal: str
    missing_fraction: float
    replicate: int


@dataclass(frozen=True)
class TextInstance(AuthorsInstance):
    pass


@dataclass(frozen=True)
class SemiSynthetic:
    dataset: str
    design: str
    signal: str
    k_missing: int
    split: int
    max_rows: int = 5000


@dataclass(frozen=True)
class RealTarget:
    dataset: str
    split: int
    max_rows: int = 5000


@dataclass(frozen=True)
class Patterns:
    source: str
    n: int
    missing_fraction: float
    max_depth: int
    tuned: bool
    replicate: int


def _nothing(rows, seed):
    raise AssertionError("No cell of these studies is computed.")


def _study(name, title, instances, methods, settings):
    cells = [Product(instances, [Method(method, _nothing) for method in methods])]
    best = (Best("Mean - best", ("Mean - linear", "Mean - forest")),)
    return Study(name, title, f"Drawn numbers in the form of {name}.", lambda scale: cells, best, settings)


def _row(instance, method, score, seconds, rng, **others):
    failed = rng.uniform() < 0.015 and "best" not in method
    reason = f"The cell took more than {rng.integers(1, 3)} minutes." if rng.uniform() < 0.8 else SPITEFUL
    done = {"score": score, "cv_score": score - 0.01, "seconds": seconds, **others}
    return {
        "key": None if "best" in method else f"{rng.integers(2**62):032x}",
        "kind": type(instance).__name__,
        "method": method,
        "status": "failed" if failed else "done",
        "reason": reason if failed else None,
        "version": "0.1",
        "digest": "0123",
        "machine": "drawn",
        **({} if failed else done),
        **asdict(instance),
    }


def _frame(rows):
    return pl.DataFrame(rows, infer_schema_length=None)


def synthetic(sizes=(40, 100, 300, 1000), replicates=2, seed=0):
    """A study in the form of ``synthetic`` and its table."""
    rng = np.random.default_rng(seed)
    methods = {
        "Affine intercept": (0.0, 1),
        "Affine": (0.01, 8),
        "Finite": (-0.03, 5),
        "Adaptive LR - best": (0.01, 14),
    }
    methods |= {f"{family} - best": (shift, 20) for family, shift in zip(BESTS, (0.0, -0.03, -0.05), strict=True)}
    methods |= {"Mean - linear": (-0.06, 0.2), "CART MIA": (-0.2, 0.1), "RF MIA": (-0.05, 6), "XGBoost": (-0.07, 3)}
    grid = list(product(sizes, ("mcar", "censoring"), ("linear", "nn"), (0.1, 0.4, 0.8), range(1, replicates + 1)))
    instances = [AuthorsInstance(*values) for values in grid] + [
        TextInstance(*values) for values in grid if values[0] == sizes[0]
    ]
    rows = []
    for instance in instances:
        level = 0.75 - 0.45 * instance.missing_fraction - 6 / instance.n - 0.12 * (instance.signal == "nn")
        for method, (shift, cost) in methods.items():
            score = float(level + shift + rng.normal(scale=0.04))
            if method == "Finite" and instance.n == 40 and instance.signal == "nn" and rng.uniform() < 0.2:
                score -= 9.0
            deep = int(rng.integers(1, 3) + instance.n // 400)
            depth = {"depth": deep, "selected_depth": deep + 1} if method == "Finite" else {}
            authors = {"r2_authors": score + 0.002} if type(instance) is AuthorsInstance else {}
            seconds = float(cost * rng.lognormal(sigma=0.6))
            chosen = {"chosen": json.dumps({"note": SPITEFUL}), "task": "regression"}
            rows.append(_row(instance, method, score, seconds, rng, **depth, **authors, **chosen))
    settings = ("mechanism", "signal", "missing_fraction", "n")
    return _study("synthetic", "Synthetic <data> & methods", instances, methods, settings), _frame(rows)


def real_design(sets=16, seed=1):
    """A study in the form of ``real-design`` and its table."""
    rng = np.random.default_rng(seed)
    methods = ["Affine intercept", "Adaptive LR - best", *(f"{family} - best" for family in BESTS), "RF MIA", "XGBoost"]
    methods += ["Complete features - best", "Oracle - best"]
    names = [f"set-{index:02d}" for index in range(sets - 1)] + ["<i>set</i> & co."]
    grid = product(names, ("mar", "nmar", "am"), ("linear", "nn", "tree"), (0, 5, 10), (0,))
    instances = [SemiSynthetic(*values) for values in grid] + [RealTarget(name, 0) for name in names]
    rows = []
    for instance in instances:
        index = names.index(instance.dataset)
        task = "regression" if index % 2 else "classification"
        for shift, method in enumerate(methods):
            if method.startswith("Oracle") and isinstance(instance, RealTarget):
                continue
            score = float(0.4 + 0.02 * index - 0.01 * shift + rng.normal(scale=0.05))
            others = {"task": task}
            if isinstance(instance, SemiSynthetic):
                others["fraction_missing"] = instance.k_missing / (10 if index % 3 else 12)
            rows.append(_row(instance, method, score, float(rng.lognormal(mean=shift / 3)), rng, **others))
    settings = ("design", "signal", "k_missing", "dataset", "task")
    return _study("real-design", "Real designs", instances, methods, settings), _frame(rows)


def partitions(seed=2):
    """A study in the form of ``partitions`` and its table."""
    rng = np.random.default_rng(seed)
    grid = product(("mcar", "interacting"), (200, 1000, 10_000), (0.3, 0.5), (1, 2, 3), (False, True), range(2))
    instances = [Patterns(*values) for values in grid]
    rows = []
    for instance in instances:
        optimum = float(rng.uniform(50, 60))
        for shift, method in enumerate(("none", "greedy", "exact")):
            cost = {"none": 1.2, "greedy": 1 + 0.02 * instance.max_depth, "exact": 1.0}[method] * optimum
            score = float(0.4 + 0.03 * shift + rng.normal(scale=0.01))
            rows.append(_row(instance, method, score, 0.1, rng, train_cost=cost, proof="optimal", depth=1))
    settings = ("source", "n", "missing_fraction", "max_depth", "tuned")
    return _study("partitions", "Partitions", instances, ("none", "greedy", "exact"), settings), _frame(rows)


@dataclass(frozen=True)
class Draw:
    n: int
    mechanism: str
    replicate: int


def plain(replicates=5, seed=3):
    """A study that binds nothing, with two settings and two metrics, and its table; nothing failed."""
    rng = np.random.default_rng(seed)
    methods = {"mean + ridge": 0.0, "indicators + ridge": 0.05, "boosting": -0.04}
    instances = [Draw(*values) for values in product((100, 300, 3000), ("mcar", "censoring"), range(replicates))]
    rows = []
    for instance in instances:
        level = 0.5 + 0.1 * np.log10(instance.n) + rng.normal(scale=0.05)
        for method, shift in methods.items():
            score = float(level + shift + rng.normal(scale=0.02))
            row = _row(instance, method, score, float(rng.lognormal()), rng)
            error = None if method == "boosting" and instance.n == 100 else float(-25_000 * rng.lognormal(sigma=0.1))
            done = {"score": score, "seconds": float(rng.lognormal()), "r2": score, "neg_mae": error}
            rows.append({**row, "status": "done", "reason": None, **done})
    study = _study("plain", "A plain study", instances, methods, ("n", "mechanism"))
    return replace(study, metrics=("r2", "neg_mae"), reference="mean + ridge", best=()), _frame(rows)
