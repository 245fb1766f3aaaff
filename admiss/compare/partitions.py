"""Comparison of partitioners on one data set, at the same leaf cost.

For each: leaves, training cost, the bound proven for its class of partitions, the gap to the best bound known for that
class, seconds, R2 in cross-validation and on test rows. Classes are nested, trees in boxes in groups: a lower bound for
a larger class holds for a smaller one, and a cost in a smaller class is an upper bound for a larger one.
"""

import time
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from admiss.compare.near_optimal import NearOptimal, near_optimal
from admiss.datasets import make_interacting
from admiss.estimator.folds import make_folds
from admiss.estimator.validation import read_features
from admiss.finite.estimators import FiniteRegressor
from admiss.partition.base import Partitioner
from admiss.partition.box_partition import BoxPartition
from admiss.partition.greedy import Greedy, grow_greedily, tree_objective
from admiss.partition.optimal_tree import OptimalTree
from admiss.partition.pattern_groups import PatternGroups
from admiss.partition.proof import enumerated_boxes
from admiss.partition.split_assign_tree import SplitAssignTree
from admiss.terminal.progress import progress
from admiss.terminal.table import Table
from admiss.verification.check import verify
from formulations.leaves import leaf_cost_of
from formulations.leaves.cholesky import LOWER, UPPER
from formulations.losses import resolve_loss
from formulations.trees.dynamic_program import best_costs

# For each method its class of partitions, and a description.
METHODS: dict[str, tuple[str, str]] = {
    "none": ("tree", "no split"),
    "greedy": ("tree", "greedy tree"),
    "tree": ("tree", "exact tree, dynamic program"),
    "tree-mio": ("tree", "exact tree, mixed-integer program in Pyomo with HiGHS"),
    "split-assign": ("tree", "textbook mixed-integer tree with big-M (absolute loss, ridge 0)"),
    "boxes": ("boxes", "disjoint boxes, set partitioning"),
    "groups": ("groups", "arbitrary groups of patterns, column generation"),
}
DEFAULT_METHODS = ("none", "greedy", "tree")
LARGER = {"tree": ("tree", "boxes", "groups"), "boxes": ("boxes", "groups"), "groups": ("groups",)}


@dataclass(frozen=True)
class Setting:
    """Parameters shared by all methods of a comparison."""

    max_depth: int = 3
    max_leaves: int | None = None
    min_rows: int | None = None
    ridge: float = 1.0
    ridge_scale: str = "leaf"
    leaf_model: str = "static"
    loss: str = "squared"
    time_limit: float | None = 60.0
    folds: int = 5
    seed: int = 0

    def partitioner(self, method: str) -> Partitioner:
        """The partitioner of a method."""
        limits: dict[str, Any] = {"max_leaves": self.max_leaves, "min_rows": self.min_rows}
        timed: dict[str, Any] = {"time_limit": self.time_limit}
        depth: dict[str, Any] = {"max_depth": self.max_depth}
        if method == "none":
            return Greedy(max_leaves=1, min_rows=self.min_rows)
        if method == "greedy":
            return Greedy(**depth, **limits)
        if method in ("tree", "tree-mio"):
            return OptimalTree(**depth, **limits, **timed, method="dp" if method == "tree" else "mio")
        if method == "split-assign":
            return SplitAssignTree(**depth, **limits, **timed)
        if method == "boxes":
            limits["max_leaves"] = self.max_leaves or 1 << self.max_depth  # as many as a tree can have
            return BoxPartition(**depth, **limits, **timed)
        limits["max_leaves"] = self.max_leaves or 1 << self.max_depth
        return PatternGroups(**limits, **timed)

    def estimator(self, method: str) -> FiniteRegressor:
        """The model of a method."""
        return FiniteRegressor(
            self.partitioner(method),
            ridge=self.ridge,
            leaf_model=self.leaf_model,
            loss=self.loss,
            ridge_scale=self.ridge_scale,
        )


@dataclass
class Comparison:
    """A comparison of partitioners.

    Attributes
    ----------
    title : str
        Name of the data.
    setting : Setting
    models : dict of FiniteRegressor
        Fitted model of each method.
    table : Table
        One row per method.
    curves : dict of lists
        Training cost against the number of leaves: greedy's, and the proven optimum of trees.
    interrupted : bool
        Whether an interrupt cut the comparison short.
    near : NearOptimal, optional
        The best tree among others close to it, if there is an exact tree.
    """

    title: str
    setting: Setting
    models: dict[str, FiniteRegressor]
    table: Table
    curves: dict[str, list[float]] = field(default_factory=dict)
    interrupted: bool = False
    near: NearOptimal | None = None

    def verdict(self) -> str:
        """The loss of greedy in training, and its effect out of sample."""
        names = list(self.table["method"])
        exact = next((name for name in ("tree", "tree-mio") if name in names), None)
        if exact is None or "greedy" not in names:
            return ""
        g, e = names.index("greedy"), names.index(exact)
        cost = self.table["cost"]
        lost = cost[g] / cost[e] - 1 if cost[e] > 1e-12 * cost.max() else 0.0
        certificate = self.models[exact].certificate_
        proven = certificate.status == "optimal"
        lines = []
        if not proven:
            lines.append(f"The exact tree is not proven optimal ({certificate.status}).")
        if lost <= 1e-9:
            lines.append("Greedy found " + ("the optimal tree." if proven else "a tree as good."))
        else:
            optimum = "the optimum" if proven else "the best tree found"
            lines.append(f"Greedy's training cost is {100 * lost:.2g} % above {optimum}.")
            for name, what in (("cv_R2", "in cross-validation"), ("test_R2", "on test rows")):
                difference = self.table[name][e] - self.table[name][g] if name in self.table else np.nan
                if np.isfinite(difference):
                    side = "better" if difference > 0.0005 else "worse" if difference < -0.0005 else "level"
                    lines.append(f"The exact tree is {side} {what}: R2 {difference:+.3f}.")
        return " ".join(lines)

    def verify(self, X: Any, y: Any) -> list[str]:
        """Prove every certificate again on the training rows: a column "verified", and a sentence per failure."""
        checked = {name: verify(model, X, y) for name, model in self.models.items()}
        bounded = {name: np.isfinite(model.certificate_.bound) for name, model in self.models.items()}
        words = ["no" if not proof else "yes" if bounded[name] else "cost only" for name, proof in checked.items()]
        self.table["verified"] = np.array(words)
        return [f"{name} is not verified: {proof.reason}." for name, proof in checked.items() if not proof]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain lists and numbers."""
        return {
            "title": self.title,
            "setting": vars(self.setting),
            "methods": [
                {name: _plain(values[i]) for name, values in self.table.items()} for i in range(self.table.n_rows)
            ],
            "curves": self.curves,
            "models": {name: model.to_text() for name, model in self.models.items()},
            "verdict": self.verdict(),
            "near_optimal": None if self.near is None else self.near.to_dict(),
        }


def _plain(value: Any) -> Any:
    plain = value.item() if hasattr(value, "item") else value
    return None if isinstance(plain, float) and not np.isfinite(plain) else plain


def compare_partitions(
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    methods: tuple[str, ...] = DEFAULT_METHODS,
    setting: Setting | None = None,
    title: str = "data",
) -> Comparison:
    """Fit every method on the same rows, at the same leaf cost.

    Parameters
    ----------
    X, y : arrays or frames
        Training rows.
    X_test, y_test : arrays or frames, optional
        Rows for the test R2.
    methods : tuple of str
        Among ``METHODS``.
    setting : Setting, optional
        Limits, leaf cost, folds.
    title : str

    Examples
    --------
    >>> from admiss.datasets import make_interacting
    >>> data = make_interacting(n=400, d=5, random_state=0)
    >>> comparison = compare_partitions(data.X_train, data.y_train, setting=Setting(max_depth=2))
    >>> comparison.table["leaves"].tolist()
    [1, 4, 4]
    """
    unknown = [method for method in methods if method not in METHODS]
    if unknown or not methods:
        raise ValueError(f"Unknown method {', '.join(unknown)}: choose among {', '.join(METHODS)}.")
    setting = setting or Setting()
    models: dict[str, FiniteRegressor] = {}
    seconds: dict[str, float] = {}
    scores: dict[str, float] = {}
    _compile(setting, methods)
    try:
        for method in progress(methods, len(methods), f"{title}: partitioners"):
            start = time.perf_counter()
            models[method] = setting.estimator(method).fit(X, y)
            seconds[method], scores[method] = time.perf_counter() - start, np.nan
            if models[method].certificate_.status == "interrupted":
                raise KeyboardInterrupt
            scores[method] = _cross_validated(setting, method, X, y) if setting.folds else np.nan
        (curves, near), interrupted = _curves(setting, X, y, {"tree", "tree-mio"} & set(methods)), False
    except KeyboardInterrupt:  # report the methods that are done
        curves, near, interrupted = {}, None, True
        if not models:
            raise
    methods = tuple(models)
    columns: dict[str, list[Any]] = {"method": list(methods), "leaves": [models[m].n_leaves_ for m in methods]}
    columns["cost"] = [models[m].certificate_.objective for m in methods]
    columns["bound"] = [models[m].certificate_.bound for m in methods]
    best = [_best_bound(method, models) for method in methods]
    columns["gap_percent"] = [
        100 * max(0.0, 1 - b / c) if c else 0.0 for b, c in zip(best, columns["cost"], strict=True)
    ]
    columns["status"] = [models[m].certificate_.status for m in methods]
    columns["seconds"] = [seconds[m] for m in methods]
    if setting.folds:
        columns["cv_R2"] = [scores[m] for m in methods]
    if X_test is not None:
        columns["test_R2"] = [models[m].score(X_test, y_test) for m in methods]
    return Comparison(title, setting, models, Table(**columns), curves, interrupted, near)


def _compile(setting: Setting, methods: tuple[str, ...]) -> None:
    """Compile the kernels on a few rows before the clock starts."""
    small = replace(setting, max_depth=2, max_leaves=4, min_rows=5, ridge=1.0)
    data = make_interacting(n=60, d=4, n_test=1, random_state=0)
    for method in ("greedy", "tree", "groups"):
        if setting.loss == "squared" and (method in methods or method != "groups"):
            small.estimator(method).fit(data.X_train, data.y_train)


def _cross_validated(setting: Setting, method: str, X: Any, y: Any) -> float:
    """R2 of the held-out predictions of all folds."""
    rows, target = read_features(setting.estimator(method), X, reset=True), np.asarray(y, dtype=float)
    held_out = np.empty(len(target))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit on all rows has issued them
        for train, held in make_folds(rows, target, None, np.ones(len(rows)), setting.folds, setting.seed):
            partitioner = setting.partitioner(method).within(len(train))
            model = setting.estimator(method).set_params(partitioner=partitioner).fit(rows[train], target[train])
            if model.certificate_.status == "interrupted":
                raise KeyboardInterrupt
            held_out[held] = model.predict(rows[held])
    return float(r2_score(target, held_out))


def _best_bound(method: str, models: dict[str, FiniteRegressor]) -> float:
    """The best lower bound known for the class of a method."""
    kinds = LARGER[METHODS[method][0]]
    return max(model.certificate_.bound for name, model in models.items() if METHODS[name][0] in kinds)


def _curves(setting: Setting, X: Any, y: Any, exact: set[str]) -> tuple[dict[str, list[float]], NearOptimal | None]:
    """Training cost of greedy and of the best tree with at most 1, 2, .. leaves; trees close to an exact one."""
    model = setting.estimator("none").fit(X, y)
    rows = model.leaf_features_.pattern_rows(
        read_features(model, X, reset=False), np.asarray(y, dtype=float), np.ones(len(y))
    )
    leaf_cost = leaf_cost_of(rows, resolve_loss(setting.loss), setting.ridge, setting.ridge_scale)
    limits = setting.partitioner("tree").limits(rows)
    trees = [grow_greedily(leaf_cost, replace(limits, leaves=q)) for q in range(1, limits.leaves + 1)]
    curves = {"greedy": [tree_objective(leaf_cost, tree) for tree in trees]}
    allowed = limits.depth, setting.time_limit, time.perf_counter()
    lower, _ = enumerated_boxes(leaf_cost, limits, *allowed, LOWER)
    if lower is None:
        return curves, None
    optimum = best_costs(lower, limits.leaves).tolist()
    curves["optimum"] = optimum + [optimum[-1]] * (limits.leaves - len(optimum))
    upper, _ = enumerated_boxes(leaf_cost, limits, *allowed, UPPER) if exact else (None, "")
    if upper is None:
        return curves, None
    max_leaves = setting.max_leaves or 1 << limits.depth  # rows and patterns limit leaves anyway
    return curves, near_optimal(lower, upper, max_leaves, rows.patterns, trees[-1])
