"""Models of Parquet files that are larger than memory, beside a plain scan of the files and scikit-learn's SGD.

Rows have 20 features, of which each is missing with probability 0.3 completely at random (about a million patterns),
and are written as float32 with nulls. Every measurement is a process of its own with one thread: CPU seconds, and the
peak memory.

    scan    pyarrow reads all columns of all row groups
    pass    row statistics for affine intercepts with 5 folds and for trees of depth 4, and from them the
            cross-validated affine intercept and the exact tree
    SGD     ``SGDRegressor.partial_fit``, one pass over the same batches, on standardised (x, m) with 0 for missing
    glum    ridge in memory, on (x, m) of as many rows as are given, if it is installed

R2 is that of a million rows in another file.
"""

import shutil
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.linear_model import SGDRegressor
from sklearn.metrics import r2_score

from admiss import AdaptiveRegressorCV, FiniteRegressor
from admiss.partition import OptimalTree
from admiss.streaming import HashFolds, RowStatistics, accumulate, open_source
from admiss.tables.source import Source, named_frame
from experiments.bench.records import footer, measured, table, timed

# Features, the depth of the tree, and the rows to test on, which are also the most that are held in memory.
D, DEPTH, MEMORY_ROWS = 20, 4, 10**6


def run(folder: Path, *, quick: bool = False, rows: int = 10**8, scratch: Path | None = None) -> str:
    """Run the missing measurements, and return the report; the generated files are deleted at the end."""
    rows = 2 * 10**5 if quick else rows
    data = (folder if scratch is None else scratch) / f"rows-{rows}"
    functions = {"scan": scan, "pass": fit, "SGD": sgd} | ({"glum": glum} if find_spec("glum") else {})
    measures = {f"{name}-{rows}": partial(function, data) for name, function in functions.items()}
    if not all((folder / f"{name}.json").exists() for name in measures):
        generate(data, rows)
    records = measured(folder, measures)
    shutil.rmtree(data, ignore_errors=True)
    return report(dict(zip(functions, records.values(), strict=True)))


def report(records: dict[str, dict[str, Any]]) -> str:
    """The table."""
    scanned, fitted, sgd = (records[name] for name in ("scan", "pass", "SGD"))
    n = scanned["rows"]
    lines = [
        ["plain scan", n, scanned["seconds"], "", scanned["memory"]],
        ["one pass of statistics", n, fitted["pass"], "", fitted["memory"]],
        ["affine intercept, 5 folds, from them", n, fitted["affine"], fitted["affine R2"], fitted["memory"]],
        [f"exact tree of depth {DEPTH}, from them: {fitted['status']}", n, fitted["tree"], fitted["tree R2"],
         fitted["memory"]],
        ["SGDRegressor.partial_fit", n, sgd["seconds"], sgd["R2"], sgd["memory"]],
    ]  # fmt: skip
    if glum := records.get("glum"):
        lines.append(["glum in memory", *(glum[name] for name in ("rows", "seconds", "R2", "memory"))])
    shown = [
        [name, f"{count:,}", f"{seconds:.1f}", f"{seconds / count * 1e9:.0f}", r2 and f"{r2:.5f}", f"{memory:.2f}"]
        for name, count, seconds, r2, memory in lines
    ]
    size = f"{scanned['gigabytes']:.1f} GB of Parquet files; CPU seconds; peak memory of the process"
    header = ["", "rows", "seconds", "ns a row", "test R2", "memory, GB"]
    return table(header, shown, f"{size}; {footer('admiss', 'numpy', 'scikit-learn')}")


def generate(folder: Path, n: int, file_rows: int = 10**7, group_rows: int = 2**20) -> None:
    """Write the files that do not exist yet, each completely or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [min(file_rows, n - start) for start in range(0, n, file_rows)]
    for number, size in enumerate([*sizes, min(MEMORY_ROWS, n)]):
        path = folder / (f"{number:03}.parquet" if number < len(sizes) else "test/rows.parquet")
        if not path.exists():
            print(f"writing {path} ..", flush=True)
            path.parent.mkdir(exist_ok=True)
            unfinished = path.with_suffix(".part")
            with pq.ParquetWriter(unfinished, _table(1, number, 0).schema, compression="none") as writer:
                for start in range(0, size, group_rows):
                    writer.write_table(_table(min(group_rows, size - start), number, start), row_group_size=group_rows)
            unfinished.replace(path)


def _table(n: int, number: int, start: int) -> Any:
    """Rows with y = x'w + noise, of features with different means, of which some are missing."""
    rng = np.random.default_rng([number, start])
    w = np.linspace(1.0, -1.0, D, dtype=np.float32)
    X = rng.standard_normal((D, n), dtype=np.float32)
    y = w @ X + rng.standard_normal(n, dtype=np.float32)
    M = rng.integers(0, 256, (D, n), dtype=np.uint8) < 77  # of 256, a share of 0.3
    columns = {f"x{j}": pa.array(X[j] + np.float32(j), mask=M[j]) for j in range(D)}
    return pa.table({**columns, "y": y})


def _sources(folder: Path) -> tuple[Source, Source]:
    """Training and test rows."""
    return open_source(str(folder / "*.parquet"), "y"), open_source(folder / "test", "y")


def scan(folder: Path) -> dict[str, Any]:
    """Read all columns."""
    pa.set_cpu_count(1)
    paths = sorted(folder.glob("*.parquet"))

    def count() -> int:
        n = 0
        for path in paths:
            with pq.ParquetFile(path) as file:
                n += sum(len(batch) for batch in file.iter_batches(2**17))
        return n

    seconds, n = timed(count)
    return {"rows": n, "seconds": seconds, "gigabytes": sum(path.stat().st_size for path in paths) / 1e9}


def fit(folder: Path) -> dict[str, Any]:
    """One pass, and both models."""
    pa.set_cpu_count(1)
    source, test = _sources(folder)
    X, y = _rows(source, 2000)
    settings: dict[str, Any] = {"adaptivity": "affine_intercept", "tree_depth": DEPTH, "folds": HashFolds(5)}
    linear, tree = AdaptiveRegressorCV("affine_intercept"), FiniteRegressor(OptimalTree(max_depth=DEPTH))
    few = RowStatistics.of(X, y, **settings | {"tree_depth": 1})
    linear.fit_statistics(few)  # compiles
    FiniteRegressor(OptimalTree(max_depth=1)).fit_statistics(few)
    collect = partial(accumulate, source, RowStatistics(**settings))
    pass_seconds, statistics = timed(collect)
    linear_seconds, _ = timed(partial(linear.fit_statistics, statistics))
    tree_seconds, _ = timed(partial(tree.fit_statistics, statistics))
    names = source.schema.names
    scores = [_score(partial(_predicted, model, names), test) for model in (linear, tree)]
    return {
        "rows": statistics.n_rows, "pass": pass_seconds, "affine": linear_seconds, "tree": tree_seconds,
        "affine R2": scores[0], "tree R2": scores[1],
        "status": str(tree.certificate_.status), "gap": float(tree.certificate_.gap),
    }  # fmt: skip


def sgd(folder: Path) -> dict[str, Any]:
    """One pass of stochastic gradient descent; means and deviations are those of the first batch."""
    pa.set_cpu_count(1)
    source, test = _sources(folder)
    model = SGDRegressor(random_state=0)

    def learn() -> tuple[Any, Any]:
        scaling = None
        for chunk in source.chunks():
            for batch in chunk.batches():
                if scaling is None:
                    scaling = np.nanmean(batch.X, axis=0), np.nanstd(batch.X, axis=0)
                model.partial_fit(_standardised(batch.X, *scaling), batch.y)
        assert scaling is not None
        return scaling

    seconds, scaling = timed(learn)
    return {"seconds": seconds, "R2": _score(lambda X: model.predict(_standardised(X, *scaling)), test)}


def glum(folder: Path) -> dict[str, Any]:
    """Ridge in memory."""
    from glum import GeneralizedLinearRegressor

    source, test = _sources(folder)
    X, y = _rows(source, MEMORY_ROWS)
    scaling = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    seconds, model = timed(
        lambda: GeneralizedLinearRegressor(alpha=1e-6, l1_ratio=0).fit(_standardised(X, *scaling), y)
    )
    score = _score(lambda X: model.predict(_standardised(X, *scaling)), test)
    return {"rows": len(y), "seconds": seconds, "R2": score}


def _predicted(model: Any, names: list[str], X: Any) -> Any:
    return model.predict(named_frame(X, names))


def _score(predict: Callable[[Any], Any], test: Source) -> float:
    """R2 of the test rows, predicted a few at a time."""
    X, y = _rows(test, MEMORY_ROWS)
    parts = np.array_split(np.arange(len(y)), 16)
    return float(r2_score(y, np.concatenate([predict(X[rows]) for rows in parts])))


def _standardised(X: Any, mean: Any, deviation: Any) -> Any:
    M = np.isnan(X)
    return np.hstack([np.where(M, 0.0, (X - mean) / deviation), M])


def _rows(source: Source, most: int) -> tuple[Any, Any]:
    """The first rows, in memory."""
    batches: list[Any] = []
    for batch in (batch for chunk in source.chunks() for batch in chunk.batches()):
        batches.append(batch)
        if sum(len(each.y) for each in batches) >= most:
            break
    return np.vstack([each.X for each in batches])[:most], np.concatenate([each.y for each in batches])[:most]
