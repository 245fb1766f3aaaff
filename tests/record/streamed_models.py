"""Models of statistics: blocks of rows, merged parts, saved files, tables on disk."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from admiss import AdaptiveRegressor, AdaptiveRegressorCV, FiniteRegressor, FiniteRegressorCV
from admiss.adaptivity import Polynomial
from admiss.partition import BoxPartition, Greedy, OptimalTree, PatternGroups
from admiss.streaming import HashFolds, RowStatistics, accumulate, open_source, pattern_report, predict_to_parquet
from tests.record.facts import Cases, Facts, facts_of, plain
from tests.record.tables import TABLES, Rows

PARTITIONERS = {
    "greedy": Greedy(max_depth=2, min_rows=15),
    "tree": OptimalTree(max_depth=2, min_rows=15),
    "boxes": BoxPartition(max_depth=2, min_rows=15),
    "groups": PatternGroups(max_leaves=2, min_rows=15, time_limit=None),
}


def blocks(rows: Rows, size: int = 40) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows in blocks of one size."""
    starts = range(0, len(rows.y), size)
    return [(rows.X[i : i + size], rows.y[i : i + size], rows.s[i : i + size]) for i in starts]


def collected(rows: Rows, adaptivity: Any = "affine", **parameters: Any) -> RowStatistics:
    """Statistics of two halves, merged, written and read."""
    parts = [RowStatistics(adaptivity, **parameters) for _ in range(2)]
    chunks = blocks(rows)
    for number, block in enumerate(chunks):
        part = parts[2 * number // len(chunks)]
        part.update(*block, place=(0, number, 0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        parts[0].merge(parts[1]).save(path)
        return RowStatistics.load(path)


def linear(table: str, adaptivity: Any, **parameters: Any) -> Facts:
    """A regressor from statistics."""
    rows = TABLES[table]
    model = AdaptiveRegressor(adaptivity, **parameters).fit_statistics(collected(rows, adaptivity, tree_depth=None))
    return facts_of(model, rows.X_new)


def linear_search(table: str, adaptivity: Any) -> Facts:
    """A cross-validated regressor from statistics of folds."""
    rows = TABLES[table]
    statistics = collected(rows, adaptivity, tree_depth=None, folds=HashFolds(3))
    model = AdaptiveRegressorCV(adaptivity, n_lambdas=10).fit_statistics(statistics)
    return facts_of(model, rows.X_new)


def finite(table: str, partitioner: Any, **parameters: Any) -> Facts:
    """A finite model from statistics of patterns."""
    rows = TABLES[table]
    statistics = collected(rows, "affine_intercept", tree_depth=2, patterns=True)
    model = FiniteRegressor(partitioner, **parameters).fit_statistics(statistics)
    return facts_of(model, rows.X_new, rows=model.leaf_rows_)


def finite_sets(table: str, partitioner: Any) -> Facts:
    """A finite model from sums over missing sets."""
    rows = TABLES[table]
    model = FiniteRegressor(partitioner).fit_statistics(collected(rows, "affine_intercept", tree_depth=2))
    return facts_of(model, rows.X_new, rows=model.leaf_rows_)


def finite_search(table: str) -> Facts:
    """A cross-validated tree from statistics of folds."""
    rows = TABLES[table]
    statistics = collected(rows, "affine_intercept", tree_depth=2, folds=HashFolds(3))
    model = FiniteRegressorCV(OptimalTree(min_rows=15), max_depths=(1, 2), ridges=(0.5, 10.0))
    return facts_of(model.fit_statistics(statistics), rows.X_new)


def partial_fits(table: str, adaptivity: Any) -> Facts:
    """A regressor of blocks."""
    rows = TABLES[table]
    model = AdaptiveRegressor(adaptivity)
    for block in blocks(rows):
        model.partial_fit(*block)
    return facts_of(model, rows.X_new)


def from_files(kind: str) -> Facts:
    """A model of files, its predictions as a file, and its patterns."""
    rows = TABLES["plain"]
    names = [f"x{j}" for j in range(rows.X.shape[1])]
    table = pd.DataFrame(rows.X, columns=names).assign(
        colour=np.where(rows.y > 0, "red", "blue"), day=pd.date_range("2020-01-01", periods=len(rows.y)), y=rows.y
    )
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{part}.{kind}" for part in "ab"]
        for path, part in zip(paths, (table[:70], table[70:]), strict=True):
            part.to_parquet(path) if kind == "parquet" else part.to_csv(path, index=False)
        source = open_source(f"{folder}/*.{kind}", "y")
        model = AdaptiveRegressor().fit_statistics(accumulate(source, RowStatistics(patterns=True)))
        out = Path(folder) / "predictions.parquet"
        written = predict_to_parquet(model, source, out, keep=["y"])
        predicted = pd.read_parquet(out)
        report = pattern_report(model, source)
    return {
        "predictions": plain(predicted.iloc[:12, -1].to_numpy()),
        "columns": list(predicted.columns),
        "features": list(model.feature_names_in_),
        "written": written,
        "patterns": len(report["rows"]),
        "status": model.certificate_.status,
        "objective": model.certificate_.objective,
    }


def cases() -> Cases:
    """All of them."""
    found: Cases = {}
    classes = {
        "static": "static",
        "affine intercept": "affine_intercept",
        "affine": "affine",
        "degree 2": Polynomial(2),
    }
    for table in TABLES:
        for name, adaptivity in classes.items():
            if name != "degree 2" or table == "plain":
                for l1_ratio in (0.0, 1.0):
                    title = f"statistics, {table}, {name}, l1_ratio {l1_ratio}"
                    found[title] = partial(linear, table, adaptivity, l1_ratio=l1_ratio)
        found[f"statistics CV, {table}, affine intercept"] = partial(linear_search, table, "affine_intercept")
    found["statistics CV, plain, affine"] = partial(linear_search, "plain", "affine")
    for table in ("plain", "weighted", "offset", "collinear"):
        for name, partitioner in PARTITIONERS.items():
            found[f"statistics, {table}, {name}"] = partial(finite, table, partitioner)
            if name in ("greedy", "tree"):
                found[f"sums over sets, {table}, {name}"] = partial(finite_sets, table, partitioner)
    found["statistics, weighted, tree of means"] = partial(
        finite, "weighted", PARTITIONERS["tree"], leaf_model="static", ridge_scale="sample"
    )
    found["sums over sets, many patterns, tree"] = partial(finite_sets, "many patterns", PARTITIONERS["tree"])
    found["statistics CV, plain, tree"] = partial(finite_search, "plain")
    for table in ("plain", "weighted", "offset"):
        found[f"partial_fit, {table}"] = partial(partial_fits, table, "affine_intercept")
    for kind in ("parquet", "csv"):
        found[f"files, {kind}"] = partial(from_files, kind)
    return found
