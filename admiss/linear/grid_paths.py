"""Paths of lambda over a grid of penalties, in all folds.

The lambdas are geometric, from the smallest at which all penalised coefficients are 0 on all rows. For ridge there is
none: its path is set by the curvature h_k of the risk in column k, and covers multiples of max_k h_k / u_k.

Iterative fits make the loss of a cell uncertain by more than what separates the best cells. The paths that contend for
the smallest loss are therefore solved again, exactly enough for ties.
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
from formulations.arrays import FloatArray

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
# The conditions of a logistic fit in a path hold to this share of the size of their column; in paths that contend for
# the choice to a smaller one, since the loss must be right to within a tie. Ridge paths have it at once: small lambdas
# leave more freedom to predictions, and their steps converge fast.
PATH_TOLERANCE, CHOICE_TOLERANCE = 5e-6, 1e-10
# A path contends if its smallest loss is within LEAST_ERROR of the smallest of all, as a share, or within SAFETY times
# the largest change seen so far between the two tolerances, in cells whose loss is NEAR the smallest of their path.
LEAST_ERROR, SAFETY, NEAR = 1e-4, 5.0, 1e-2

FoldPath = Callable[[int, float, FloatArray, Any, float], tuple[FloatArray, FloatArray, Any]]
Weights = list[tuple[FloatArray, FloatArray]]
# A path: index of its class, index of its adaptive penalty, l1_ratio.
Task = tuple[int, int, float]
PathErrors = tuple[FloatArray, FloatArray, FloatArray]


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
    errors: dict[Task, PathErrors] = {}

    def solve(some: list[Task], tolerance: float, words: str) -> None:
        runs = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
            delayed(_path_errors)(folds[k], c, alpha, options, tolerance if alpha > 0 else CHOICE_TOLERANCE)
            for k, c, alpha in some
        )
        errors.update(zip(some, progress(runs, len(some), f"cross-validation: {words}"), strict=True))

    solve(tasks, PATH_TOLERANCE, "paths")
    settled = {task for task in tasks if folds[task[0]].exact or task[2] == 0}
    largest_change = 0.0
    while contenders := _contenders(folds, errors, settled, largest_change):
        rough = {task: errors[task][1].sum(axis=0) for task in contenders}
        solve(contenders, CHOICE_TOLERANCE, "choice")
        settled.update(contenders)
        for task in contenders:
            change = _change(rough[task], errors[task][1].sum(axis=0)) / folds[task[0]].weight
            largest_change = max(largest_change, change)
    return [
        {
            "class_index": k,
            "adaptivity": folds[k].name,
            "columns": folds[k].n_columns,
            "adaptive_penalty": options.adaptive_penalties[c],
            "l1_ratio": alpha,
            "lam": errors[k, c, alpha][0],
            "mean_loss": errors[k, c, alpha][1].sum(axis=0) / folds[k].weight,
            "violation": errors[k, c, alpha][2],
        }
        for k, c, alpha in tasks
    ]


def _contenders(
    folds: list[ClassFolds], errors: dict[Task, PathErrors], settled: set[Task], largest_change: float
) -> list[Task]:
    """The paths, not settled yet, that may have the smallest loss of all: at first only the one that seems to."""
    least = {task: _least(errors[task][1].sum(axis=0)) / folds[task[0]].weight for task in errors}
    best = min(least, key=least.__getitem__, default=None)
    if best is None or not np.isfinite(least[best]):
        return []
    if best not in settled:
        return [best]
    limit = least[best] + max(LEAST_ERROR * least[best], SAFETY * largest_change)
    return [task for task in errors if task not in settled and least[task] <= limit]


def _least(loss: FloatArray) -> float:
    return float(np.nanmin(loss, initial=np.inf))


def _change(rough: FloatArray, exact: FloatArray) -> float:
    """The largest change of a loss that is near the smallest of its path."""
    with np.errstate(invalid="ignore"):
        near = exact <= (1.0 + NEAR) * _least(exact)
        change = np.abs(rough - exact)[near]
    return float(np.max(change[np.isfinite(change)], initial=0.0))


def _path_errors(folds: ClassFolds, penalty: int, alpha: float, options: GridOptions, tolerance: float) -> PathErrors:
    """Lambdas, the held-out loss by fold and lambda (NaN after an early stop), and the largest violations."""
    lambdas = folds.lambdas(penalty, alpha, options)
    errors, violations = np.full((2, len(folds.paths), options.n_lambdas), np.nan)
    states: list[Any] = [None] * len(folds.paths)
    size = CHUNK if options.stop_early else options.n_lambdas
    for start in range(0, options.n_lambdas, size):
        part = slice(start, start + size)
        for f, path in enumerate(folds.paths):
            errors[f, part], violations[f, part], states[f] = path(penalty, alpha, lambdas[part], states[f], tolerance)
        total = errors[:, : part.stop].sum(axis=0)
        best = int(total.argmin())
        # clearly past the minimum: by more than a tenth, for the whole last chunk
        if options.stop_early and best < start and total[part].min() > 1.1 * total[best]:
            break
    errors[violations > UNFINISHED] = np.inf
    return lambdas, errors, violations.max(axis=0)


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
