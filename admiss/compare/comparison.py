"""A comparison of partitioners on one data set: models, numbers, and what they say in words.

By how much a training cost is above another one, the optimum or a proven bound, is a percentage of the latter.

One method predicts better than another if the interval of the difference of their scores over folds is on one side of
0 (:mod:`admiss.estimates`, with the correction for training rows that folds share). Otherwise no difference is
seen. Without cross-validation the scores on test rows are said without a verdict.

Classes of partitions are nested, trees in boxes in groups: a lower bound for a larger class holds for a smaller one,
and a cost in a smaller class is an upper bound for a larger one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from admiss.compare.near_optimal import NearOptimal
from admiss.compare.scores import is_better, reference_names
from admiss.compare.setting import METHODS, Setting
from admiss.estimates import LEVEL, Estimate, estimate
from admiss.finite.estimators import FiniteClassifier, FiniteRegressor
from admiss.terminal.table import Table

LARGER = {"tree": ("tree", "boxes", "groups"), "boxes": ("boxes", "groups"), "groups": ("groups",)}
# The score of each task in sentences, a second one that may disagree, and how they are called.
MAIN = {"regression": ("R2",), "classification": ("AUC", "log_loss")}
WORDS = {"R2": "R2", "AUC": "AUC", "log_loss": "log-loss", "accuracy": "accuracy"}
# What is known of the difference between two methods.
BETTER, WORSE, UNSEEN, UNKNOWN = "better", "worse", "unseen", "unknown"
WHERE = {"cv": "in cross-validation", "test": "on test rows"}
NOT_CENTRED = "Features are not centred: a split also replaces the 0 that stands for a missing value."

INTERVALS = (
    f"In brackets: {LEVEL:.0%} intervals of the differences over folds, each by itself, widened for training rows that "
    "folds share (Nadeau and Bengio)."
)
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
    fold_scores : dict of dicts
        For each method and score its values by fold, see :func:`~admiss.compare.scores.fold_scores`.
    overlap : float
        Held-out rows per training row of a fold.
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
    fold_scores: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    overlap: float = 0.0

    def verdict(self) -> str:
        """Greedy beside the exact tree, splits beside one leaf, references beside partitions."""
        lines = [*self._greedy(), *self._splits(), *self._references()]
        return " ".join([*lines, INTERVALS] if any("[" in line for line in lines) else lines)

    def score(self, method: str, column: str) -> float:
        """An entry of the table, NaN if it is not there."""
        names = self.table["method"].tolist()
        return float(self.table[column][names.index(method)]) if method in names and column in self.table else np.nan

    def difference(self, first: str, second: str, score: str) -> Estimate | None:
        """How much better the first method scores in cross-validation, with an interval; None if there is none."""
        values = [np.array(self.fold_scores.get(method, {}).get(score, [])) for method in (first, second)]
        if len(values[0]) != len(values[1]):
            return None
        differences = is_better(score, *values)
        differences = differences[np.isfinite(differences)]
        differences[np.abs(differences) <= 1e-9] = 0.0  # rounding, in the scores of one model that was found twice
        found = estimate(differences, self.overlap) if len(differences) > 1 else None
        return None if found is None or found.low is None else found

    def _side(self, first: str, second: str, kind: str, name: str) -> str:
        """Whether the first method is better or worse than the second one, or no difference is seen."""
        found = self.difference(first, second, name) if kind == "cv" else None
        if found is None or found.low is None or found.high is None:
            return UNKNOWN
        return BETTER if found.low > 0 else WORSE if found.high < 0 else UNSEEN

    def _numbers(self, first: str, second: str, kind: str, words: Mapping[str, str]) -> str:
        """The scores of two methods, and their difference with its interval if it is known."""
        name = MAIN[self.setting.task][0]
        values = [f"{self.score(method, f'{kind}_{name}'):.3f}" for method in (first, second)]
        said = [f" ({words[method]})" if method in words else "" for method in (first, second)]
        text = f"{WORDS[name]} {values[0]}{said[0]} against {values[1]}{said[1]}"
        found = self.difference(first, second, name) if kind == "cv" else None
        return text if found is None else f"{text}, {found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"

    def _greedy(self) -> list[str]:
        """Greedy beside the exact tree."""
        exact = next((name for name in ("tree", "tree-mio") if name in self.models), None)
        if exact is None or "greedy" not in self.models:
            return []
        cost = self.score(exact, "cost")
        is_zero = cost <= 1e-12 * np.nanmax(self.table["cost"])
        lost = 0.0 if is_zero else percent_above(self.score("greedy", "cost"), cost)
        status = self.models[exact].certificate_.status
        proven = status == "optimal"
        lines = [] if proven else [f"The exact tree is not proven optimal ({status})."]
        if lost <= 1e-7:
            return [*lines, "Greedy found " + ("the optimal tree." if proven else "a tree as good.")]
        optimum = "the optimum" if proven else "the best tree found"
        lines.append(f"Greedy's training cost is {lost:.3g} % above {optimum}.")
        name = MAIN[self.setting.task][0]
        for kind, where in WHERE.items():
            if np.isfinite(self.score(exact, f"{kind}_{name}") - self.score("greedy", f"{kind}_{name}")):
                sentence = {
                    BETTER: f"The exact tree predicts better than greedy's {where}",
                    WORSE: f"The exact tree predicts worse than greedy's {where}",
                    UNSEEN: f"No difference between the predictions of both trees is seen {where}",
                    UNKNOWN: f"The exact tree and greedy's {where}",
                }[self._side(exact, "greedy", kind, name)]
                lines.append(f"{sentence}: {self._numbers(exact, 'greedy', kind, {})}.")
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
        side, where = self._side(best, "none", kind, name), WHERE[kind]
        sentence = {
            BETTER: f"Splitting is better than one leaf {where}",
            WORSE: f"Splitting is worse than one leaf {where}",
            UNSEEN: f"No gain or loss by splitting is seen {where}",
            UNKNOWN: f"Splitting and one leaf {where}",
        }[side]
        lines = [f"{sentence}: {self._numbers(best, 'none', kind, {best: best})}."]
        return lines + [NOT_CENTRED] * (side == BETTER and not self.setting.center)

    def _references(self) -> list[str]:
        """References that predict better than all partitions, or that none does."""
        words = reference_names(self.setting.task)
        names, (name, *others) = [n for n in words if n in self.references], MAIN[self.setting.task]
        kind = self._kind(names)
        best = self._best(list(self.models), kind, name)
        if not kind or best is None:
            return []
        where, methods = WHERE[kind], {best: best, **words}
        lines = [
            f"{words[reference].capitalize()} predicts better than every partition here {where}: "
            f"{self._numbers(reference, best, kind, {best: best})}"
            f"{''.join(self._disagreement(reference, kind, other) for other in others)}."
            for reference in names
            if self._side(reference, best, kind, name) == BETTER
        ]
        if lines:
            return lines
        strongest = str(self._best(names, kind, name))
        sentence = {
            BETTER: f"No reference predicts better {where}",
            UNSEEN: f"No difference between the best partition and the best reference is seen {where}",
            UNKNOWN: f"The best partition and the best reference {where}",
        }[self._side(best, strongest, kind, name)]
        return [f"{sentence}: {self._numbers(best, strongest, kind, methods)}."]

    def _disagreement(self, reference: str, kind: str, name: str) -> str:
        """Another score by which a partition is better than the reference."""
        best = str(self._best(list(self.models), kind, name))
        value, own = self.score(reference, f"{kind}_{name}"), self.score(best, f"{kind}_{name}")
        if self._side(best, reference, kind, name) != BETTER:
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
            "fold_scores": {
                method: {name: [_plain(name, value) for value in values] for name, values in scores.items()}
                for method, scores in self.fold_scores.items()
            },
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


def percent_above(cost: float, bound: float) -> float:
    """By how many per cent of a bound a cost is above it; infinite if the bound is not positive, and the cost is.

    Examples
    --------
    >>> percent_above(3.0, 2.0), percent_above(0.0, 0.0), percent_above(3.0, 0.0)
    (50.0, 0.0, inf)
    """
    if np.isnan(cost) or np.isnan(bound):
        return np.nan
    if cost <= bound:
        return 0.0
    return 100 * (cost / bound - 1) if bound > 0 else np.inf


def _plain(name: str, value: Any) -> Any:
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, float):
        return None if not np.isfinite(plain) else int(plain) if name == "leaves" else plain
    return plain
