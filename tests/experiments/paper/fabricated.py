"""Fabricated results in the form of the paper's two studies."""

import itertools

import numpy as np
import polars as pl

from experiments.paper import numbers as paper_numbers
from experiments.paper.labels import PAPER_METHODS

SETTINGS = (("mcar", "linear"), ("mcar", "nn"), ("censoring", "linear"), ("censoring", "nn"))
COMPARED = tuple(dict.fromkeys(method for method, *_ in paper_numbers.synthetic_references()))
FACTS = {"version": "0.1", "digest": "abc", "machine": "here", "reason": None}


def reference(method, mechanism, signal):
    """The authors' average, .5 if theirs exploded; the linear model is below the best."""
    if method == "Mean - linear":
        return reference("Mean - best", mechanism, signal) - 0.03
    compared = paper_numbers.synthetic_references()[method, mechanism, signal].compared
    return 0.5 if compared is None else compared


def synthetic_table(level=reference, sizes=(40, 200, 1000), fractions=(0.1, 0.3, 0.8), kind="AuthorsInstance", **of):
    """Rows with R2 = level + a part of the signal + a little noise; ``of`` are functions for other columns."""
    noise = np.random.default_rng(0)
    rows = []
    for n, p, (mechanism, signal), replicate in itertools.product(sizes, fractions, SETTINGS, range(1, 6)):
        for method in (*COMPARED, "Mean - linear"):
            r2 = level(method, mechanism, signal) + 0.1 * (replicate - 3) + 0.001 * noise.normal()
            row = {"key": "k", "kind": kind, "method": method, "status": "done", "score": r2, "r2_authors": r2, **FACTS}
            row |= {"n": n, "mechanism": mechanism, "signal": signal, "missing_fraction": p, "replicate": replicate}
            row |= {"seconds": 2.0, "depth": 3.0, "selected_depth": 4.0, "chosen_method": None}
            if method == "Adaptive LR - best":
                row |= {"key": None, "chosen_method": "Affine" if p == 0.1 else "Finite"}
            rows.append(row | {name: function(method, n, p, mechanism) for name, function in of.items()})
    return pl.DataFrame(rows, infer_schema_length=None)


def real_table(level, sets=8, seconds=lambda method: 1.0, ks=(0, 5, 10), signals=("linear", "nn", "tree"), spread=0.05):
    """Rows of both kinds with score = level(method, design, k) + a part of the set."""
    noise = np.random.default_rng(0)
    shared = {"key": "k", "status": "done", "split": 0, "max_rows": 5000, "chosen_method": None, "r2_authors": None}
    shared |= FACTS
    rows = []
    for dataset, method in itertools.product(range(sets), PAPER_METHODS):
        target = {"kind": "RealTarget", "design": None, "signal": None, "k_missing": None}
        target["task"] = "regression" if dataset % 2 else "binary"
        synthetic = [
            {"kind": "SemiSynthetic", "design": design, "signal": signal, "k_missing": k, "task": "regression"}
            for design, signal, k in itertools.product(("mar", "nmar", "am"), signals, ks)
        ]
        for instance in [target, *synthetic] if not method.startswith("Oracle") else synthetic:
            instance["fraction_missing"] = None if instance["k_missing"] is None else instance["k_missing"] / 10.4
            score = level(method, instance["design"] or instance["task"], instance["k_missing"])
            score += spread * (dataset - sets / 2) + 0.002 * noise.normal() + 5 * (instance["signal"] == "tree")
            row = {"dataset": f"set {dataset}", "method": method, "score": score, "seconds": seconds(method)}
            rows.append(shared | instance | row)
    return pl.DataFrame(rows, infer_schema_length=None)


def found(section, *values):
    """The rows of a section that begin with given values, as dicts."""
    rows = [dict(zip(section.header, row, strict=True)) for row in section.rows if tuple(row[: len(values)]) == values]
    assert rows
    return rows
