"""The methods of a comparison, the settings and the folds that they share, and the rows.

Settings that are not given are those of :class:`~admiss.FiniteRegressor`, so that a method of a comparison is the model
that the same partitioner gives in Python.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from admiss.estimator.cross_validation import Split, make_folds
from admiss.estimator.validation import read_classes, read_features, read_regression_target
from admiss.finite.estimators import FiniteClassifier, FiniteRegressor
from admiss.partition.base import Partitioner
from admiss.partition.box_partition import BoxPartition
from admiss.partition.greedy import Greedy
from admiss.partition.optimal_tree import OptimalTree
from admiss.partition.pattern_groups import PatternGroups
from admiss.partition.split_assign_tree import SplitAssignTree
from formulations.arrays import FloatArray

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
# Methods whose partitions are trees with a proof, the first one first.
EXACT_TREES = ("tree", "tree-mio", "split-assign")
# Methods without a proof, which take little time.
HEURISTICS = ("none", "greedy")
TASKS = ("regression", "classification")
# A method is the name of one, or a partitioner.
Methods = str | Partitioner | Sequence[str | Partitioner]
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
    own : dict
        Partitioners that are compared with the named methods, by their names in tables, with limits of their own.

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
    own: Mapping[str, Partitioner] = field(default_factory=dict)

    def naming(self, methods: Methods) -> "tuple[Setting, tuple[str, ...]]":
        """The setting with the partitioners among some methods as its own, and the names of all methods.

        Examples
        --------
        >>> setting, names = Setting().naming(["tree", Greedy(max_depth=2)])
        >>> names, setting.own
        (('tree', 'Greedy(max_depth=2)'), {'Greedy(max_depth=2)': Greedy(max_depth=2)})
        """
        listed = [methods] if isinstance(methods, str | Partitioner) else list(methods)
        own: dict[str, Partitioner] = {}
        for method in listed:
            if isinstance(method, Partitioner):
                name = _name(method)
                if own.setdefault(name, method) != method:
                    raise ValueError(f"Two different partitioners are both {name}: rename the class of one.")
        return replace(self, own={**self.own, **own}), tuple(dict.fromkeys(map(_name, listed)))

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values, own partitioners by their names."""
        plain = asdict(replace(self, own={}))
        del plain["own"]
        return plain | ({"own": list(self.own)} if self.own else {})

    @property
    def loss_name(self) -> str:
        """The loss, also if it is that of the task."""
        return self.loss or ("logistic" if self.task == "classification" else "squared")

    def partitioner(self, method: str, seconds: float | None = None) -> Partitioner:
        """The partitioner of a method, with a time limit if it takes one."""
        if method in self.own:
            return _limited(self.own[method], seconds)
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
        unknown = [method for method in methods if method not in METHODS and method not in self.own]
        if unknown or not methods:
            raise ValueError(
                f"Unknown method {', '.join(unknown)}: choose among {', '.join(METHODS)}, or give a partitioner, "
                "Greedy(max_depth=2) for instance."
            )
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
        if not 0 <= self.seed < 2**32:  # what numpy takes
            raise ValueError(f"The seed must be from 0 to {2**32 - 1:,}, not {self.seed}.")
        for method in methods:
            self.estimator(method)._check_parameters()


def task_of(y: Any, task: str | None, of_integers: str) -> str:
    """The task: as given, or classification for text and truth values, and regression for other numbers than integers.

    Examples
    --------
    >>> task_of(["a", "b"], None, "regression"), task_of([0.5, 1.0], None, "regression")
    ('classification', 'regression')
    """
    if task is not None:
        return task
    kind = np.asarray(np.asarray(y).tolist()).dtype.kind  # objects as what they are
    return of_integers if kind in "iu" else "regression" if kind == "f" else "classification"


def _name(method: Any) -> str:
    """The name of a method in tables."""
    return method if isinstance(method, str) else " ".join(repr(method).split())


def _limited(partitioner: Partitioner, seconds: float | None) -> Partitioner:
    """A partitioner with at most so many seconds, if it has a time limit."""
    if seconds is None or "time_limit" not in partitioner.get_params(deep=False):
        return partitioner
    limit = partitioner.get_params(deep=False)["time_limit"]
    return clone(partitioner).set_params(time_limit=seconds if limit is None else min(limit, seconds))


def description(method: str) -> str:
    """A method in words; a partitioner that has no name is described by itself."""
    return METHODS[method][1] if method in METHODS else "own partitioner"


@dataclass(frozen=True)
class ComparedRows:
    """Rows as they were given, and as arrays.

    Attributes
    ----------
    given : (X, y)
        Training rows with their names.
    X, y : arrays
        The same as arrays with NaN, y numbers or labels.
    test : (X, y), optional
        Test rows as arrays.
    classes : array, optional
        All classes of training and test rows, sorted; None in regression.
    folds : list of (train, held-out)
        As many as rows if these are fewer than the folds of the settings.
    """

    given: tuple[Any, Any]
    X: FloatArray
    y: Any
    test: tuple[FloatArray, Any] | None
    classes: Any
    folds: list[Split]

    @classmethod
    def of(cls, X: Any, y: Any, X_test: Any, y_test: Any, setting: Setting) -> "ComparedRows":
        """Read the rows, with an error in one sentence for those that cannot be used."""
        reader = setting.estimator("none")
        rows = read_features(reader, X, reset=True)
        if setting.task == "classification":
            classes, labels = read_classes(reader, y, len(rows))
            target = classes[labels]
        else:
            classes, labels, target = None, None, read_regression_target(reader, y, len(rows))
        test = None
        if X_test is not None:
            test_rows = read_features(reader, X_test, reset=False)
            if classes is None:
                test = test_rows, read_regression_target(reader, y_test, len(test_rows))
            else:
                found, codes = read_classes(reader, y_test, len(test_rows))
                test, classes = (test_rows, found[codes]), np.union1d(classes, found)
        n_folds, folds = min(setting.folds, len(rows)), []
        if n_folds > 1:
            folds = make_folds(rows, target, labels, np.ones(len(rows)), n_folds, setting.seed)
        return cls((X, y), rows, target, test, classes, folds)

    def overlap(self) -> float:
        """Held-out rows per training row of a fold."""
        return float(np.mean([len(held) / len(train) for train, held in self.folds])) if self.folds else 0.0

    def description(self) -> str:
        """Their size in words."""
        return described(self.X, self.y, "regression" if self.classes is None else "classification")

    def notes(self) -> list[str]:
        """A sentence about classes that are in few rows."""
        if self.classes is None:
            return []
        counts = [(str(label), int((self.y == label).sum())) for label in self.classes]
        rare = ", ".join(label for label, count in counts if count < max(1, len(self.folds)))
        if not rare:
            return []
        return [
            f"Fewer rows than folds are of class {rare}: a fold or a leaf without them gives them probability 0, which "
            "weighs heavily in the log-loss."
        ]


def described(X: Any, y: Any, task: str) -> str:
    """The size of training rows in words."""
    n_features = np.shape(X)[1]
    missing = np.isnan(np.asarray(X, dtype=float)).mean()
    words = f"{len(y):,} training rows, {n_features} feature{'s' * (n_features != 1)}, {missing:.0%} missing"
    if task == "regression":
        return words
    labels, counts = np.unique(y, return_counts=True)
    listed = ", ".join(f"{label} {count:,}" for label, count in zip(labels, counts, strict=True))
    return f"{words}; classes: {listed}" if len(labels) <= 10 else f"{words}; {len(labels)} classes"
