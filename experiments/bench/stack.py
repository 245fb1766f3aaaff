"""The cost of a stack: its fit against the cross-validation of affine weights, in CPU seconds of one thread.

Both on the same rows, after a first fit that compiles. ``AdaptiveRegressorCV("affine")`` has its default grid; the
stack fits each of its candidates, that class included, on five folds and on all rows.
"""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from admiss import AdaptiveRegressorCV, AdaptiveStackRegressor
from admiss.datasets import paper_instance
from experiments.bench.records import footer, measured, table, timed


def run(folder: Path, *, quick: bool = False, repeats: int = 3) -> str:
    """Run the missing measurements, and return the report."""
    sizes, fractions = ((200,), (0.3,)) if quick else ((200, 800), (0.3, 0.6))
    cells = product(("mcar", "censoring"), sizes, fractions)
    measures = {f"{mechanism}-{n}-{p}": partial(compare, mechanism, n, p, repeats) for mechanism, n, p in cells}
    header = ["missing", "n", "share", "affine, CV", "stack", "ratio", "of which laws", "forest", "boosting", "affine"]
    rows = [
        [r["mechanism"], r["n"], r["p"], f"{r['affine']:.2f}", f"{r['stack']:.2f}", f"{r['stack'] / r['affine']:.1f}",
         *(f"{r[part]:.2f}" for part in ("laws", "forest", "boosting", "paths"))]
        for r in measured(folder, measures).values()
    ]  # fmt: skip
    return table(header, rows, f"CPU seconds of one thread, least of {repeats}; {footer('admiss', 'numpy')}")


def compare(mechanism: str, n: int, p: float, repeats: int) -> dict[str, Any]:
    """Seconds of both on the same rows, the minimum over repetitions."""
    data = paper_instance(n, mechanism, "nn", p, 1)
    few = data.X_train[:60], data.y_train[:60]
    AdaptiveStackRegressor(random_state=0).fit(*few)
    AdaptiveRegressorCV("affine", random_state=0).fit(*few)
    affine, stacks = [], []
    for k in range(1, repeats + 1):
        rows = data.X_train[k:], data.y_train[k:]  # different rows each time, since the last fitted laws are cached
        affine.append(timed(partial(AdaptiveRegressorCV("affine", random_state=0).fit, *rows))[0])
        stacks.append(timed(partial(AdaptiveStackRegressor(random_state=0).fit, *rows)))
    stack, model = min(stacks, key=lambda result: result[0])
    seconds = dict(zip(model.weights_["candidate"], model.weights_["seconds"], strict=True))
    laws = sum(value for name, value in seconds.items() if "conditional" in name or "expected" in name)
    paths = seconds["affine"] + seconds["affine_intercept"]
    return {
        "mechanism": mechanism, "n": n, "p": p, "affine": min(affine), "stack": stack, "laws": laws,
        "forest": seconds["forest"], "boosting": seconds["boosting"], "paths": paths,
    }  # fmt: skip
