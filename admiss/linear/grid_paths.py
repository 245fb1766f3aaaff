"""Paths of lambda over a grid of penalties, in all folds.

The lambdas are geometric, from the smallest at which all penalised coefficients are 0 on all rows. For ridge there is
none: its path is set by the curvature h_k of the risk in column k, and covers multiples of max_k h_k / u_k.

Iterative fits make the loss of a cell uncertain by more than what separates the best cells. The cells that contend for
the smallest loss are therefore solved again, exactly enough for ties. Fits of a path start from the one before, which
decides where there are several best fits: paths are solved again from their first lambda to the last that contends.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from admiss.adaptivity import Adaptivity
from admiss.linear.design import Design, fit_design
from admiss.linear.penalty import penalty_weights
from admiss.terminal.progress import progress
from admiss.terminal.table import Table
from formulations.arrays import BoolArray, FloatArray

# Rules for the range of lambda: that of glmnet, and one of its own for ridge.
EPS_RULES = ("auto", "glmnet")
# alpha is at least this when the largest lambda is computed by the rule of glmnet: that of ridge is infinite.
SMALLEST_ALPHA = 1e-3
# Largest and smallest lambda of ridge, as multiples of the one at which the penalty equals the curvature of the risk.
RIDGE_RANGE = (1e2, 1e-6)
# A fit with a larger violation is discarded.
UNFINISHED = 1e-3
# Lambdas between two checks of the error, if a path may stop early.
CHUNK = 10
# Losses within this share of each other are tied.
TIE = 1e-9
# The conditions of a logistic fit in a path hold to this share of the size of their column; in cells that contend for
# the choice to a smaller one, since the loss must be right to within a tie. Ridge paths have it at once: small lambdas
# leave more freedom to predictions, and their steps converge fast.
PATH_TOLERANCE, CHOICE_TOLERANCE = 5e-6, 1e-10
# A cell contends if its loss is within LEAST_ERROR of the smallest of all, as a share, or within SAFETY times the
# largest change seen so far between the two tolerances, in cells whose loss is NEAR the smallest of their path.
LEAST_ERROR, SAFETY, NEAR = 1e-4, 5.0, 1e-2

FoldPath = Callable[[int, float, FloatArray, Any, float], tuple[FloatArray, FloatArray, Any]]
Weights = list[tuple[FloatArray, FloatArray]]
# A path: index of its class, index of its adaptive penalty, l1_ratio.
Task = tuple[int, int, float]
PathErrors = tuple[FloatArray, FloatArray]
WHOLE = slice(None)


@dataclass(frozen=True)
class GridOptions:
    """The grid that is crossed with every adaptivity class, and what all of its fits share."""

    l1_ratios: Sequence[float]
    adaptive_penalties: Sequence[float]
    n_lambdas: int
    eps: float | str
    penalty_weights: str
    center: bool
    scale: bool
    fit_intercept: bool
    stop_early: bool

    def design(self, X: FloatArray, s: FloatArray, adaptivity: Adaptivity) -> Design:
        """The design of an adaptivity class on some rows; features that are not scaled are so inside, see `weights`."""
        return self.in_units(fit_design(X, s, adaptivity, **self.of_design))

    def in_units(self, design: Design) -> Design:
        """The design in the units of the paths."""
        return design if self.scale else design.in_powers_of_two()[0]

    @property
    def of_design(self) -> dict[str, bool]:
        """The options of a design."""
        return {"center": self.center, "scale": self.scale, "fit_intercept": self.fit_intercept}

    def weights(self, design: Design, X: FloatArray | None = None, s: FloatArray | None = None) -> Weights:
        """u1 and u2 of the columns, for each adaptive penalty; rows matter only for the authors' weights."""
        kind, standardise = self.penalty_weights, self.scale
        divisor = np.ones(len(design.pairs)) if self.scale else design.column_scale
        parts = [
            penalty_weights(design, X, s, kind=kind, adaptive_penalty=c, standardise=standardise)
            for c in self.adaptive_penalties
        ]
        return [(u1 / divisor, u2 / divisor**2) for u1, u2 in parts]


@dataclass(frozen=True)
class ClassFolds:
    """The folds of one adaptivity class, ready for paths.

    Attributes
    ----------
    name : str
        The class in words.
    n_columns : int
        Columns of its design on all rows.
    largest : array of shape (n_penalties,)
        For each adaptive penalty, alpha times the smallest lambda at which all penalised coefficients are 0.
    balanced : array of shape (n_penalties,)
        For each adaptive penalty, the smallest lambda at which a ridge is at least the curvature of the risk.
    eps : float
        Smallest lambda as a share of the largest.
    paths : list of callables
        One function per fold of (adaptive penalty index, alpha, lambdas, state, tolerance) that returns, for each
        lambda, the summed loss on the held-out rows and the violation of the optimality conditions, and a state from
        which the path can continue.
    weight : float
        Weight of all held-out rows.
    exact : bool
        Whether the paths are exact whatever the tolerance.
    """

    name: str
    n_columns: int
    largest: FloatArray
    balanced: FloatArray
    eps: float
    paths: list[FoldPath]
    weight: float
    exact: bool

    def lambdas(self, penalty: int, alpha: float, options: GridOptions) -> FloatArray:
        """The lambdas of a path, from large to small."""
        if alpha == 0.0 and options.eps != "glmnet":
            large, small = (factor * float(self.balanced[penalty]) for factor in RIDGE_RANGE)
            return np.geomspace(large, small if options.eps == "auto" else self.eps * large, options.n_lambdas)
        largest = self.largest[penalty] / max(alpha, SMALLEST_ALPHA)
        return np.geomspace(largest, self.eps * largest, options.n_lambdas)


def path_cells(folds: list[ClassFolds], options: GridOptions, n_jobs: int | None) -> list[dict[str, Any]]:
    """The cells of each path of every class, as columns of a table of results; exact where they decide the choice."""
    tasks = list(product(range(len(folds)), range(len(options.adaptive_penalties)), options.l1_ratios))
    lambdas = {(k, c, alpha): folds[k].lambdas(c, alpha, options) for k, c, alpha in tasks}

    def solve(some: dict[Task, slice], tolerance: float, words: str) -> dict[Task, PathErrors]:
        runs = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
            delayed(_path_errors)(folds[task[0]], task, lambdas[task][part], options, tolerance)
            for task, part in some.items()
        )
        return dict(zip(some, progress(runs, len(some), f"cross-validation: {words}"), strict=True))

    found = solve(dict.fromkeys(tasks, WHOLE), PATH_TOLERANCE, "paths")
    losses = {task: errors / folds[task[0]].weight for task, (errors, _) in found.items()}
    violations = {task: violation for task, (_, violation) in found.items()}
    settled = {task: np.full(options.n_lambdas, folds[task[0]].exact or task[2] == 0) for task in tasks}
    largest_change: float | None = None
    while contenders := _contenders(losses, settled, largest_change):
        for task, (errors, violation) in solve(contenders, CHOICE_TOLERANCE, "choice").items():
            part, rough = contenders[task], losses[task].copy()
            losses[task][part], violations[task][part] = errors / folds[task[0]].weight, violation
            settled[task][part] = True
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


def joined(parts: list[dict[str, Any]]) -> Table:
    """One table of all cells; a single value holds for all cells of its part."""
    columns = {}
    for name in parts[0]:
        values = [np.broadcast_to(np.asarray(part[name]), len(part["lam"])) for part in parts]
        columns[name] = np.concatenate(values)
    return Table(**columns)


def best_cell(results: Table, rounding: float = 0.0) -> int:
    """The smallest loss; among ties, and among losses that are rounding, the simpler model."""
    loss = results["mean_loss"]
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
