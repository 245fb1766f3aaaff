"""Exact partitions: the cost of a proof, against peers on the same rows.

All times are CPU seconds of one thread, from rows to certificate, leaf features and fits included; each measurement
runs in a new process, after compilation on a smaller problem. Leaves are static linear models. Peers:

* pystreed, the piecewise-linear regression trees of STreeD, on the same rows with the indicators as its binary
  features. It requires at least 5 d rows per leaf, a limit that both get; its leaves are refitted at this leaf cost,
  since its own leaf fits are not exact;
* numpy's batched Cholesky factorisation of as many matrices of the same size as there are boxes, in batches of 50,000:
  the minimum work of a program that factors box by box;
* the dynamic program over the same boxes, for the mixed-integer program.
"""

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from admiss import FiniteClassifier, FiniteRegressor
from admiss.datasets import make_synthetic
from admiss.finite.base import LeafFeatures
from admiss.partition import Greedy, OptimalTree, Partitioner
from admiss.partition.greedy import tree_objective
from admiss.study.report.sections import markdown
from experiments.bench.records import footer, measured, timed
from formulations.leaves.box_costs import count_boxes
from formulations.leaves.squared import SquaredLeafCost
from formulations.trees.dynamic_program import Tree


def run(folder: Path, *, quick: bool = False) -> str:
    """Run the missing measurements, and return the report."""
    small = {"d10": (2000, 8, 2), "d20": (1000, 8, 3), "d50": (500, 12, 2), "mio": (500, 8, 3), "logistic": (200, 5, 2)}
    large = {"d10": (10_000, 10, 4), "d20": (10_000, 20, 6), "d50": (10_000, 50, 4), "mio": (10_000, 20, 4),
             "logistic": (1000, 10, 3)}  # fmt: skip
    sizes = small if quick else large
    measures: dict[str, Callable[[], dict[str, Any]]] = {
        "against-pystreed": partial(against_pystreed, *sizes["d10"]),
        "against-cholesky": partial(against_cholesky, *sizes["d20"]),
        "many-boxes": partial(exact_tree, *sizes["d20"]),
        "many-features": partial(exact_tree, *sizes["d50"]),
        "mixed-integer": partial(mixed_integer, *sizes["mio"]),
        "logistic": partial(logistic, *sizes["logistic"]),
    }
    return report(measured(folder, measures))


def _rows(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    data = make_synthetic(n=n, d=d, n_test=1, random_state=0)
    return data.X_train, data.y_train


def _fit(partitioner: Partitioner, X: np.ndarray, y: np.ndarray, ridge: float = 1.0) -> tuple[FiniteRegressor, float]:
    """A fitted model and its CPU seconds without compilation."""
    FiniteRegressor(partitioner, ridge=ridge, leaf_model="static").fit(*_rows(200, 5))
    seconds, model = timed(lambda: FiniteRegressor(partitioner, ridge=ridge, leaf_model="static").fit(X, y))
    return model, seconds


def against_pystreed(n: int, d: int, depth: int, pairs: int = 5) -> dict[str, Any]:
    """The exact tree against pystreed's, in interleaved pairs."""
    X, y = _rows(n, d)
    ridge, min_rows = 1e-3, 5 * d
    partitioner = OptimalTree(max_depth=depth, min_rows=min_rows)
    result: dict[str, Any] = {"n": n, "d": d, "depth": depth}
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(pairs):
        model, seconds = _fit(partitioner, X, y, ridge)
        ours.append(seconds)
        if find_spec("pystreed"):
            tree, seconds = _pystreed(X, y, depth, min_rows, ridge)
            theirs.append(seconds)
    result.update(
        admiss=float(np.median(ours)), objective=model.certificate_.objective, status=model.certificate_.status
    )
    if theirs:
        features = LeafFeatures.fit(X, np.ones(n), "static", True, True)
        leaf_cost = SquaredLeafCost(features.pattern_rows(X, y, np.ones(n)), ridge)
        result["pystreed"] = float(np.median(theirs))
        result["ratio"] = float(np.median(np.divide(theirs, ours)))
        result["pystreed_objective"] = tree_objective(leaf_cost, tree)
    return result


def _pystreed(X: np.ndarray, y: np.ndarray, depth: int, min_rows: int, ridge: float) -> tuple[Tree, float]:
    """pystreed's tree and its CPU seconds."""
    from pystreed import STreeDPiecewiseLinearRegressor

    model = STreeDPiecewiseLinearRegressor(
        max_depth=depth, min_leaf_node_size=min_rows, cost_complexity=0.0, ridge_penalty=ridge, time_limit=3600
    )
    seconds, _ = timed(lambda: model.fit(np.isnan(X).astype(int), y, continuous_columns=np.nan_to_num(X)))

    def read(node: Any) -> Tree:
        if node.is_leaf_node():
            return None
        return int(node.feature), read(node.left_child), read(node.right_child)

    return read(model.tree_), seconds


def against_cholesky(n: int, d: int, depth: int, pairs: int = 5, batch: int = 50_000) -> dict[str, Any]:
    """The exact tree, leaves of any size, against numpy's batched Cholesky of as many matrices, and against greedy."""
    X, y = _rows(n, d)
    boxes = count_boxes(d, depth)
    Z = np.random.default_rng(0).normal(size=(batch, d + 2, d + 2))
    grams = Z @ Z.transpose(0, 2, 1) + np.eye(d + 2)

    def factor_all() -> None:
        for first in range(0, boxes, batch):
            np.linalg.cholesky(grams[: min(batch, boxes - first)])

    ours, theirs = [], []
    for _ in range(pairs):
        model, seconds = _fit(OptimalTree(max_depth=depth, min_rows=1), X, y)
        ours.append(seconds)
        theirs.append(timed(factor_all)[0])
    greedy_model, greedy = _fit(Greedy(max_depth=depth, min_rows=1), X, y)
    return {
        "n": n, "d": d, "depth": depth, "boxes": boxes, "patterns": len(model.partition_.patterns),
        "admiss": float(np.median(ours)), "cholesky": float(np.median(theirs)),
        "share": float(np.median(np.divide(ours, theirs))), "greedy": greedy,
        "greedy_loss": greedy_model.certificate_.objective / model.certificate_.objective - 1,
        "status": model.certificate_.status,
    }  # fmt: skip


def exact_tree(n: int, d: int, depth: int) -> dict[str, Any]:
    """The exact tree with two rows per coefficient of a leaf: time, and the memory of the process."""
    X, y = _rows(n, d)
    model, seconds = _fit(OptimalTree(max_depth=depth, min_rows=2 * (d + 1)), X, y)
    return {
        "n": n, "d": d, "depth": depth, "boxes": count_boxes(d, depth), "admiss": seconds,
        "status": model.certificate_.status,
    }  # fmt: skip


def mixed_integer(n: int, d: int, depth: int) -> dict[str, Any]:
    """The mixed-integer program against the dynamic program, from data to certificate."""
    X, y = _rows(n, d)
    limits: dict[str, Any] = {"max_depth": depth, "min_rows": 2 * (d + 1)}
    exact, dp = _fit(OptimalTree(**limits), X, y)
    model, mio = _fit(OptimalTree(**limits, method="mio"), X, y)
    budget, with_budget = _fit(OptimalTree(**limits, method="mio", max_leaves=2**depth // 2), X, y)
    return {
        "n": n, "d": d, "depth": depth, "dynamic": dp, "mixed_integer": mio, "allowed": 10 * dp + 5,
        "difference": abs(model.certificate_.objective / exact.certificate_.objective - 1),
        "status": model.certificate_.status, "with_budget": with_budget, "budget_status": budget.certificate_.status,
    }  # fmt: skip


def logistic(n: int, d: int, depth: int) -> dict[str, Any]:
    """The exact logistic tree."""
    X, y = _rows(n, d)
    model = FiniteClassifier(OptimalTree(max_depth=depth, min_rows=2 * (d + 1)), ridge=1.0, leaf_model="static")
    seconds, _ = timed(lambda: model.fit(X, y > np.median(y)))
    return {
        "n": n, "d": d, "depth": depth, "boxes": count_boxes(d, depth), "admiss": seconds,
        "status": model.certificate_.status,
    }  # fmt: skip


def report(records: dict[str, dict[str, Any]]) -> str:
    """The measurements as a table."""
    table = []

    def line(what: str, found: str, peer: str, memory: float | None) -> None:
        table.append([what, found, peer, "-" if memory is None else f"{memory:.2f} GB"])

    for name, record in records.items():
        size = f"d = {record.get('d')}, depth {record.get('depth')}, n = {record['n']:,}"
        memory = record["memory"]
        if name == "against-pystreed":
            peer = "pystreed is not installed"
            if "pystreed" in record:
                loss = 100 * (record["pystreed_objective"] / record["objective"] - 1)
                peer = f"pystreed {record['pystreed']:.2f} s: {record['ratio']:.0f} x; its tree costs {loss:.2g} % more"
            line(f"exact tree, {size}", f"{record['admiss'] * 1e3:.1f} ms", peer, memory)
        elif name == "against-cholesky":
            peer = (
                f"{record['share']:.2f} of numpy's Cholesky of {record['boxes']:,} matrices, {record['cholesky']:.1f} s"
            )
            peer += f"; greedy {record['greedy']:.2f} s, {100 * record['greedy_loss']:.1f} % above the optimum"
            what = f"exact tree, {size}, {record['patterns']:,} patterns, leaves of any size"
            line(what, f"{record['admiss']:.2f} s", peer, None)  # the matrices of numpy take more
        elif name == "mixed-integer":
            peer = f"dynamic program {record['dynamic']:.2f} s; allowed {record['allowed']:.1f} s; "
            peer += f"difference {record['difference']:.0e}; half the leaves: {record['with_budget']:.1f} s"
            line(f"mixed-integer program, {size}", f"{record['mixed_integer']:.2f} s", peer, memory)
        elif name in ("many-boxes", "many-features", "logistic"):
            what = "exact logistic tree" if name == "logistic" else "exact tree"
            line(
                f"{what}, {size}", f"{record['admiss']:.2f} s, {record['status']}", f"{record['boxes']:,} boxes", memory
            )
    lines = ["CPU seconds of one thread, from rows to certificate:", ""]
    lines += [*markdown(["problem", "admiss", "beside it", "memory"], table), ""]
    peer = f"pystreed {version('pystreed') if find_spec('pystreed') else 'not installed'}"
    return "\n".join([*lines, footer("python", "admiss", "numpy", "numba", "pyomo", "highspy", peer=peer)])
