"""The methods of a comparison, and the settings that they share.

Settings that are not given are those of :class:`~admiss.FiniteRegressor`, so that a method of a comparison is the model
that the same partitioner gives in Python.
"""

from dataclasses import dataclass
from typing import Any

from admiss.finite.estimators import FiniteClassifier, FiniteRegressor
from admiss.partition.base import Partitioner
from admiss.partition.box_partition import BoxPartition
from admiss.partition.greedy import Greedy
from admiss.partition.optimal_tree import OptimalTree
from admiss.partition.pattern_groups import PatternGroups
from admiss.partition.split_assign_tree import SplitAssignTree

# For each method its class of partitions, and a description.
METHODS: dict[str, tuple[str, str]] = {
    "none": ("tree", "no split"),
    "greedy": ("tree", "greedy tree"),
    "tree": ("tree", "exact tree, dynamic program"),
    "tree-mio": ("tree", "exact tree, mixed-integer program in Pyomo with HiGHS"),
    "split-assign": ("tree", "textbook mixed-integer tree with big-M (absolute loss, ridge 0)"),
    "boxes": ("boxes", "disjoint boxes, set partitioning"),
    "groups": ("groups", "arbitrary groups of patterns, column generation (squared loss)"),
}
DEFAULT_METHODS = ("none", "greedy", "tree")
# Methods without a proof, which take little time.
HEURISTICS = ("none", "greedy")
TASKS = ("regression", "classification")
DEFAULTS: dict[str, Any] = FiniteRegressor().get_params(deep=False)


@dataclass(frozen=True)
class Setting:
    """Settings shared by all methods of a comparison.

    Attributes
    ----------
    task : {"regression", "classification"}
    max_depth, max_leaves, min_rows
        As in :class:`~admiss.partition.Partitioner`.
    ridge, ridge_scale, leaf_model, center, scale
        As in :class:`~admiss.FiniteRegressor`.
    loss : str, optional
        "squared" by default, "logistic" in classification.
    time_limit : float, optional
        Seconds for the whole comparison.
    folds : int
        Folds of the cross-validation, 0 for none.
    references : bool
        Whether methods of scikit-learn are scored too.
    seed : int
        Seed of the folds.

    Examples
    --------
    >>> setting = Setting(max_depth=2, references=False)
    >>> setting.leaf_model, setting.folds
    ('affine_intercept', 5)
    """

    task: str = "regression"
    max_depth: int | None = Greedy().max_depth
    max_leaves: int | None = None
    min_rows: int | None = None
    ridge: float = DEFAULTS["ridge"]
    ridge_scale: str = DEFAULTS["ridge_scale"]
    leaf_model: str = DEFAULTS["leaf_model"]
    center: bool = DEFAULTS["center"]
    scale: bool = DEFAULTS["scale"]
    loss: str | None = None
    time_limit: float | None = 120.0
    folds: int = 5
    references: bool = True
    seed: int = 0

    @property
    def loss_name(self) -> str:
        """The loss, also if it is that of the task."""
        return self.loss or ("logistic" if self.task == "classification" else "squared")

    def partitioner(self, method: str, seconds: float | None = None) -> Partitioner:
        """The partitioner of a method, with a time limit if it takes one."""
        limits: dict[str, Any] = {"max_leaves": self.max_leaves, "min_rows": self.min_rows}
        depth: dict[str, Any] = {"max_depth": self.max_depth}
        timed: dict[str, Any] = {"time_limit": seconds}
        if method == "none":
            return Greedy(max_leaves=1, min_rows=self.min_rows)
        if method == "greedy":
            return Greedy(**depth, **limits)
        if method in ("tree", "tree-mio"):
            return OptimalTree(**depth, **limits, **timed, method="dp" if method == "tree" else "mio")
        if method == "split-assign":
            return SplitAssignTree(**depth, **limits, **timed)
        if self.max_depth is not None:
            limits["max_leaves"] = self.max_leaves or 1 << self.max_depth  # as many as a tree can have
        return BoxPartition(**depth, **limits, **timed) if method == "boxes" else PatternGroups(**limits, **timed)

    def estimator(self, method: str, seconds: float | None = None) -> FiniteRegressor | FiniteClassifier:
        """The model of a method."""
        kind = FiniteClassifier if self.task == "classification" else FiniteRegressor
        return kind(
            self.partitioner(method, seconds),
            ridge=self.ridge,
            leaf_model=self.leaf_model,
            loss=self.loss_name,
            ridge_scale=self.ridge_scale,
            center=self.center,
            scale=self.scale,
        )

    def check(self, methods: tuple[str, ...]) -> None:
        """Raise an error in one sentence for settings that cannot work."""
        unknown = [method for method in methods if method not in METHODS]
        if unknown or not methods:
            raise ValueError(f"Unknown method {', '.join(unknown)}: choose among {', '.join(METHODS)}.")
        if self.task not in TASKS:
            raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))}, not {self.task!r}.")
        if self.task == "classification":
            for method in ("split-assign", "groups"):
                if method in methods:
                    raise ValueError(f"{method} is for regression: use tree or boxes for classes.")
        if "split-assign" in methods and (self.loss_name != "absolute" or self.ridge != 0):
            raise ValueError("split-assign is a linear program: use the absolute loss and ridge 0.")
        if "groups" in methods and self.loss_name != "squared":
            raise ValueError("groups needs the squared loss: use tree or boxes for other losses.")
        if self.folds != 0 and self.folds < 2:
            raise ValueError(f"The number of folds must be 0 or at least 2, not {self.folds}.")
        if self.time_limit is not None and not self.time_limit >= 0:
            raise ValueError(f"The time limit must be a non-negative number of seconds, not {self.time_limit}.")
        for method in methods:
            self.estimator(method)._check_parameters()
