"""A comparison of partitioners on one data set: models, numbers, and what they say in words.

Classes of partitions are nested, trees in boxes in groups: a lower bound for a larger class holds for a smaller one,
and a cost in a smaller class is an upper bound for a larger one.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from admiss.compare.near_optimal import NearOptimal
from admiss.compare.references import reference_names
from admiss.compare.scores import is_better
from admiss.compare.setting import METHODS, Setting
from admiss.finite.estimators import FiniteClassifier, FiniteRegressor
from admiss.terminal.table import Table

LARGER = {"tree": ("tree", "boxes", "groups"), "boxes": ("boxes", "groups"), "groups": ("groups",)}
# The score of each task in sentences, a second one that may disagree, and how they are called.
MAIN = {"regression": ("R2",), "classification": ("AUC", "log_loss")}
WORDS = {"R2": "R2", "AUC": "AUC", "log_loss": "log-loss", "accuracy": "accuracy"}
WHERE = {"cv": "in cross-validation", "test": "on test rows"}
# Differences of scores that are none, and that are too small to rely on.
LEVEL, SMALL = 0.0005, 0.005
NOT_CENTRED = "Features are not centred: a split also replaces the 0 that stands for a missing value."

SMALL_LEAVES = "No method splits: by default a leaf needs ten rows per coefficient (--min-rows allows smaller ones)."


@dataclass
class Comparison:
    """A comparison of partitioners.

    Attributes
    ----------
    title : str
        Name of the data.
    setting : Setting
    models : dict of FiniteRegressor or FiniteClassifier
        Fitted model of each method that was finished.
    table : Table
        One row per method and reference; NaN and "-" if undefined or not finished.
    curves : dict of lists
        Training cost against the number of leaves: greedy's, and the proven optimum of trees.
    interrupted : bool
        Whether an interrupt cut the comparison short.
    near : NearOptimal, optional
        The best tree among others close to it, if there is an exact tree.
    references : dict of estimators
        Fitted methods of scikit-learn.
    description : str
        Size of the data in words.
    notes : list of str
        Sentences about the data, and about work that was not finished.
    """

    title: str
    setting: Setting
    models: dict[str, FiniteRegressor | FiniteClassifier]
    table: Table
    curves: dict[str, list[float]] = field(default_factory=dict)
    interrupted: bool = False
    near: NearOptimal | None = None
    references: dict[str, Any] = field(default_factory=dict)
    description: str = ""
    notes: list[str] = field(default_factory=list)

    def verdict(self) -> str:
        """Greedy beside the exact tree, splits beside one leaf, references beside partitions."""
        return " ".join([*self._greedy(), *self._splits(), *self._references()])

    def score(self, method: str, column: str) -> float:
        """An entry of the table, NaN if it is not there."""
        names = self.table["method"].tolist()
        return float(self.table[column][names.index(method)]) if method in names and column in self.table else np.nan

    def _greedy(self) -> list[str]:
        """Greedy beside the exact tree."""
        exact = next((name for name in ("tree", "tree-mio") if name in self.models), None)
        if exact is None or "greedy" not in self.models:
            return []
        greedy_cost, cost = self.score("greedy", "cost"), self.score(exact, "cost")
        lost = greedy_cost / cost - 1 if cost > 1e-12 * np.nanmax(self.table["cost"]) else 0.0
        status = self.models[exact].certificate_.status
        proven = status == "optimal"
        lines = [] if proven else [f"The exact tree is not proven optimal ({status})."]
        if lost <= 1e-9:
            return [*lines, "Greedy found " + ("the optimal tree." if proven else "a tree as good.")]
        optimum = "the optimum" if proven else "the best tree found"
        lines.append(f"Greedy's training cost is {100 * lost:.2g} % above {optimum}.")
        name = MAIN[self.setting.task][0]
        for kind, where in WHERE.items():
            difference = self.score(exact, f"{kind}_{name}") - self.score("greedy", f"{kind}_{name}")
            if np.isfinite(difference):
                side = "better" if difference > 0 else "worse"
                words = f"{side} {where}: {WORDS[name]} {difference:+.3f}"
                lines.append(f"The exact tree is {words if abs(difference) > LEVEL else f'level {where}'}.")
        return lines

    def _splits(self) -> list[str]:
        """The best partition beside one leaf."""
        name, kind = MAIN[self.setting.task][0], self._kind(["none"])
        best = self._best([method for method in self.models if method != "none"], kind, name)
        if best is None:
            return []
        if all(model.n_leaves_ == 1 for model in self.models.values()):
            several = any(len(model.partition_.patterns) > 1 for model in self.models.values())
            return [SMALL_LEAVES if several and self.setting.min_rows is None else "No method splits."]
        with_splits, without = self.score(best, f"{kind}_{name}"), self.score("none", f"{kind}_{name}")
        gain = with_splits - without
        numbers = f"{WHERE[kind]}: {WORDS[name]} {with_splits:.3f} ({best}) against {without:.3f}"
        if gain <= SMALL:
            return [f"Splitting gains {'nothing' if gain <= LEVEL else 'little'} over one leaf {numbers}."]
        return [f"Splitting is better than one leaf {numbers}."] + [NOT_CENTRED] * (not self.setting.center)

    def _references(self) -> list[str]:
        """References that predict better than all partitions, or that none does."""
        words = reference_names(self.setting.task)
        names, (name, *others) = [n for n in words if n in self.references], MAIN[self.setting.task]
        kind = self._kind(names)
        best = self._best(list(self.models), kind, name)
        if not kind or best is None:
            return []
        own = self.score(best, f"{kind}_{name}")
        values = {reference: self.score(reference, f"{kind}_{name}") for reference in names}
        lines = [
            f"{words[reference].capitalize()} predicts better than every partition here {WHERE[kind]}: {WORDS[name]} "
            f"{value:.3f} against {own:.3f}{''.join(self._disagreement(reference, kind, other) for other in others)}."
            for reference, value in values.items()
            if value - own > SMALL
        ]
        if lines:
            return lines
        strongest = max(values, key=lambda reference: values[reference])
        value, partition = values[strongest], f"{own:.3f} ({best})"
        if own - value > SMALL:
            numbers = f"{WORDS[name]} {partition} against {value:.3f} ({words[strongest]})"
            return [f"No reference predicts better {WHERE[kind]}: {numbers}."]
        level = f"{words[strongest].capitalize()} predicts as well as the best partition {WHERE[kind]}"
        return [f"{level}: {WORDS[name]} {value:.3f} against {partition}."]

    def _disagreement(self, reference: str, kind: str, name: str) -> str:
        """Another score by which a partition is better than the reference."""
        best = self._best(list(self.models), kind, name)
        value, own = self.score(reference, f"{kind}_{name}"), self.score(str(best), f"{kind}_{name}")
        if not is_better(name, own, value) > LEVEL:
            return ""
        method = "one leaf" if best == "none" else best
        return f", but {method} has the better {WORDS[name]}, {own:.3f} against {value:.3f}"

    def _kind(self, needed: list[str]) -> str:
        """Where methods are compared with partitions: in cross-validation, or on test rows if that is not known."""
        name, others = MAIN[self.setting.task][0], [method for method in self.models if method not in needed]
        for kind in WHERE if needed else ():
            if all(self._best([method], kind, name) for method in needed) and self._best(others, kind, name):
                return kind
        return ""

    def _best(self, methods: list[str], kind: str, name: str) -> str | None:
        """The method with the best score, None if there is no score."""
        known = {method: self.score(method, f"{kind}_{name}") for method in methods}
        known = {method: value for method, value in known.items() if np.isfinite(value)}
        return max(known, key=lambda method: is_better(name, known[method], 0.0)) if known else None

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain lists and numbers."""
        return {
            "title": self.title,
            "description": self.description,
            "notes": self.notes,
            "setting": self.setting.to_dict(),
            "methods": [
                {name: _plain(name, values[i]) for name, values in self.table.items()} for i in range(self.table.n_rows)
            ],
            "curves": self.curves,
            "models": {name: model.to_text() for name, model in self.models.items()},
            "references": {name: repr(model) for name, model in self.references.items()},
            "verdict": self.verdict(),
            "near_optimal": None if self.near is None else self.near.to_dict(),
        }


def best_bound(method: str, models: dict[str, FiniteRegressor | FiniteClassifier]) -> float:
    """The best lower bound known for the class of a method, and of larger ones; for a partitioner, its own bound.

    The limits of partitioners may be others than those of the named methods.
    """
    if method not in METHODS:
        return float(models[method].certificate_.bound)
    kinds = LARGER[METHODS[method][0]]
    return max(
        model.certificate_.bound for name, model in models.items() if name in METHODS and METHODS[name][0] in kinds
    )


def _plain(name: str, value: Any) -> Any:
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, float):
        return None if not np.isfinite(plain) else int(plain) if name == "leaves" else plain
    return plain
