"""Paths of lambda over a grid of penalties, in all folds.

Iterative fits make the loss of a cell uncertain by more than what separates the best cells. The cells that contend for
the smallest loss are therefore solved again, exactly enough for ties. Fits of a path start from the one before, which
decides where there are several best fits: paths are solved again from their first lambda to the last that contends.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from admiss.adaptivity import Adaptivity
from admiss.linear.folds import ClassFolds, GridOptions
from admiss.terminal.progress import progress
from formulations.arrays import BoolArray, FloatArray

# A fit with a larger violation is discarded.
UNFINISHED = 1e-3
# Lambdas between two checks of the error, if a path may stop early.
CHUNK = 10
# Losses within this share of each other are tied.
TIE = 1e-9
# The conditions of a fit in a path hold to this share of the size of their column (the logistic loss and those with a
# log link) or of the objective (absolute, quantile and Huber losses); in cells that contend for the choice to a smaller
# one, since the loss must be right to within a tie. Ridge paths have it at once: small lambdas leave more freedom to
# predictions, and their steps converge fast.
PATH_TOLERANCE, CHOICE_TOLERANCE = 5e-6, 1e-10
# A cell contends if its loss is within LEAST_ERROR of the smallest of all, as a share, or within SAFETY times the
# largest change seen so far between the two tolerances, in cells whose loss is NEAR the smallest of their path. That
# change was 2e-6 to 6e-6 on eight grids of 100 to 10,000 rows and 20 to 515 columns, alike on all paths of a grid.
LEAST_ERROR = 1e-5
SAFETY = 5.0
NEAR = 1e-2

# A path: index of its class, index of its adaptive penalty, l1_ratio.
Task = tuple[int, int, float]
PathErrors = tuple[FloatArray, FloatArray]
WHOLE = slice(None)


def grid_tasks(n_classes: int, options: GridOptions) -> list[Task]:
    """All paths of the grid."""
    return list(product(range(n_classes), range(len(options.adaptive_penalties)), options.l1_ratios))


def best_tasks(tasks: list[Task], cells: list[dict[str, Any]]) -> list[Task]:
    """Of each class the path with its best cell, or all of its paths if none has a best fit."""
    best = []
    for k in sorted({task[0] for task in tasks}):
        own = [i for i, task in enumerate(tasks) if task[0] == k]
        results = joined([cells[i] for i in own])
        if np.isfinite(results["mean_loss"]).any():
            n_lambdas = len(results["lam"]) // len(own)
            own = [own[best_cell(results) // n_lambdas]]
        best += [tasks[i] for i in own]
    return best


def grid_cells(
    folds: list[ClassFolds], options: GridOptions, n_jobs: int | None, promising: list[Task] | None = None
) -> list[dict[str, Any]]:
    """The cells of all paths of the grid, or of promising ones; then of all paths of a class without a fit on these."""
    tasks = grid_tasks(len(folds), options)
    followed = tasks if promising is None else promising
    parts = path_cells(folds, followed, options, n_jobs)
    others = tasks_without_a_fit(followed, parts, tasks)
    return parts + path_cells(folds, others, options, n_jobs) if others else parts


def tasks_without_a_fit(followed: list[Task], parts: list[dict[str, Any]], tasks: list[Task]) -> list[Task]:
    """The other paths of classes that have no best fit on the paths that were followed."""
    fitted = {part["class_index"] for part in parts if np.isfinite(part["mean_loss"]).any()}
    return [task for task in tasks if task[0] not in fitted and task not in followed]


def path_cells(
    folds: list[ClassFolds], tasks: list[Task], options: GridOptions, n_jobs: int | None
) -> list[dict[str, Any]]:
    """The cells of each path, as columns of a table of results; exact where they decide the choice."""
    lambdas = {(k, c, alpha): folds[k].lambdas[c, alpha] for k, c, alpha in tasks}

    def solve(some: dict[Task, slice], tolerance: float, words: str) -> dict[Task, PathErrors]:
        runs = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
            delayed(_path_errors)(folds[task[0]], task, lambdas[task][part], options, tolerance)
            for task, part in some.items()
        )
        return dict(zip(some, progress(runs, len(some), f"cross-validation: {words}"), strict=True))

    results = solve(dict.fromkeys(tasks, WHOLE), PATH_TOLERANCE, "paths")
    losses = {task: errors / folds[task[0]].weight for task, (errors, _) in results.items()}
    violations = {task: violation for task, (_, violation) in results.items()}
    is_exact = {task: np.full(options.n_lambdas, folds[task[0]].exact or task[2] == 0) for task in tasks}
    largest_change: float | None = None
    while contenders := _contenders(losses, is_exact, largest_change):
        for task, (errors, violation) in solve(contenders, CHOICE_TOLERANCE, "choice").items():
            part, rough = contenders[task], losses[task].copy()
            losses[task][part], violations[task][part] = errors / folds[task[0]].weight, violation
            is_exact[task][part] = True
            largest_change = max(largest_change or 0.0, _change(rough, losses[task]))
    return [
        {
            "class_index": k,
            "adaptivity": folds[k].name,
            "columns": folds[k].n_columns,
            "adaptive_penalty": options.adaptive_penalties[c],
            "l1_ratio": alpha,
            "lam": lambdas[k, c, alpha],
            "mean_loss": losses[k, c, alpha],
            "violation": violations[k, c, alpha],
        }
        for k, c, alpha in tasks
    ]


def _contenders(
    losses: dict[Task, FloatArray], settled: dict[Task, BoolArray], largest_change: float | None
) -> dict[Task, slice]:
    """Beginnings of paths with all cells, not settled yet, that may have the smallest loss of all.

    The path that seems to have it comes first, and those tied with it. They are solved as a whole, so that the last
    digits of the chosen loss do not depend on other paths. If nothing was solved twice so far, since they were exact at
    once, the best of the other paths follows: it tells how large the change is.
    """
    least = {task: _least(loss) for task, loss in losses.items()}
    best = min(least, key=least.__getitem__, default=None)
    if best is None or not np.isfinite(least[best]):
        return {}
    tied = [task for task in losses if least[task] <= least[best] + 2.0 * TIE * abs(least[best])]
    if any(not settled[task].all() for task in tied):
        return {task: WHOLE for task in tied if not settled[task].all()}
    rough = [task for task in losses if not settled[task].any() and np.isfinite(least[task])]
    if rough and largest_change is None:
        return {min(rough, key=least.__getitem__): WHOLE}
    limit = least[best] + max(LEAST_ERROR * least[best], SAFETY * (largest_change or 0.0))
    contending = {task: np.flatnonzero((loss <= limit) & ~settled[task]) for task, loss in losses.items()}
    return {task: slice(0, cells[-1] + 1) for task, cells in contending.items() if len(cells)}


def _least(loss: FloatArray) -> float:
    return float(np.nanmin(loss, initial=np.inf))


def _change(rough: FloatArray, exact: FloatArray) -> float:
    """The largest change of a loss that is near the smallest of its path."""
    with np.errstate(invalid="ignore"):
        near = exact <= (1.0 + NEAR) * _least(exact)
        change = np.abs(rough - exact)[near]
    return float(np.max(change[np.isfinite(change)], initial=0.0))


def _path_errors(
    folds: ClassFolds, task: Task, lambdas: FloatArray, options: GridOptions, tolerance: float
) -> PathErrors:
    """The held-out loss by lambda, summed over folds (NaN after an early stop), and the largest violations."""
    _, penalty, alpha = task
    tolerance = tolerance if alpha > 0 else CHOICE_TOLERANCE
    errors, violations = np.full((2, len(folds.paths), len(lambdas)), np.nan)
    states: list[Any] = [None] * len(folds.paths)
    size = CHUNK if options.stop_early else len(lambdas)
    for start in range(0, len(lambdas), size):
        part = slice(start, start + size)
        for f, path in enumerate(folds.paths):
            errors[f, part], violations[f, part], states[f] = path(penalty, alpha, lambdas[part], states[f], tolerance)
        total = errors[:, : part.stop].sum(axis=0)
        best = int(total.argmin())
        # clearly past the minimum: by more than a tenth, for the whole last chunk
        if options.stop_early and best < start and total[part].min() > 1.1 * total[best]:
            break
    errors[violations > UNFINISHED] = np.inf
    return errors.sum(axis=0), violations.max(axis=0)


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Columns of all cells; a single value holds for all cells of its part."""
    columns = {}
    for name in parts[0]:
        values = [np.broadcast_to(np.asarray(part[name]), len(part["lam"])) for part in parts]
        columns[name] = np.concatenate(values)
    return columns


def best_cell(results: Mapping[str, Any], rounding: float = 0.0) -> int:
    """The smallest loss; among ties, and among losses that are rounding, the simpler model."""
    loss = results["mean_loss"]
    if not np.isfinite(loss).any():
        raise ValueError(
            "No cell of the grid has a best fit: if classes are linearly separable by columns without penalty, use "
            "adaptive_penalties > 0; with constraints, use a solver that proves its fits."
        )
    smallest = np.nanmin(loss)
    tied = np.flatnonzero(loss <= smallest + TIE * abs(smallest) + rounding)
    order = np.lexsort(
        [
            -np.nan_to_num(results["l1_ratio"][tied]),
            -np.nan_to_num(results["adaptive_penalty"][tied]),
            -results["lam"][tied],
            results["columns"][tied],
        ]
    )
    return int(tied[order[0]])


def cell_parameters(adaptivity: Adaptivity, results: dict[str, Any], cell: int) -> dict[str, Any]:
    """The parameters of the adaptive model of a cell."""
    searched = {name: float(results[name][cell]) for name in ("adaptive_penalty", "l1_ratio", "lam")}
    return {"adaptivity": adaptivity, **searched}
