"""The steps of a comparison, each with a share of the time.

Methods without a proof are fitted and cross-validated first, then the references, then exact methods; the curves of
costs against leaves with the trees close to the optimum follow, and proofs of certificates. A step that takes longer
than its share is ended and reported as not finished; what was finished stays.
"""

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from admiss.compare.comparison import Comparison, best_bound, percent_above
from admiss.compare.curves import Curves
from admiss.compare.references import reference, reference_names
from admiss.compare.rows import ComparedRows
from admiss.compare.scores import SCORES, fitted, fold_scores, predicted, scores_of
from admiss.compare.setting import HEURISTICS, Setting
from admiss.compare.time_budget import TimeBudget, TimeIsUpError, TimeLimit
from admiss.estimator.notices import silence
from admiss.terminal.progress import counter, progress
from admiss.terminal.table import Table
from admiss.verification.check import verify as prove_again
from formulations.certificate import SolverError, clock
from formulations.leaves.cost import LeafCost

LATE, FAILED = "time limit", "failed"
# Weights of the steps, of heuristics and references or of exact methods.
FIT, FOLDS = {True: 2.0, False: 4.0}, {True: 1.0, False: 2.0}
CURVES, PROOF = 2.0, 1.0
# A step is taken once more if it gets so many times the seconds that it had.
AGAIN = 1.5
# Folds are not begun if they would take so many times their seconds at the pace of the fit to all rows.
HOPELESS = 1.5
# Share of its time after which an exact method returns what it has found.
STOPPED = 0.8

# Values of a table from which on several threads are faster than one; before, they wait for each other.
MANY_VALUES = 10**6

Step = Callable[[float | None], None]


class Run:
    """A comparison under way: what is finished so far."""

    def __init__(self, data: ComparedRows, setting: Setting, methods: tuple[str, ...], notes: tuple[str, ...]) -> None:
        self.data, self.setting, self.methods = data, setting, methods
        self.references = list(reference_names(setting.task)) if setting.references else []
        self.models: dict[str, Any] = {}
        self.status: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self.scores: dict[str, dict[str, float]] = {}
        self.fold_scores: dict[str, dict[str, list[float]]] = {}
        self.verified: dict[str, str] = {}
        self.curves = Curves()
        self.notes = [*notes, *data.notes()]
        self.unfinished: list[tuple[str, str]] = []

    def take_steps(self, title: str, verify: bool) -> None:
        """Take every step within its share of the time, and those that were ended once more with what is left."""
        steps, threads = self._steps(verify), 1 if self.data.X.size < MANY_VALUES else None
        everything, ended = list(steps), dict[tuple[str, str], float]()
        budget = TimeBudget(self.setting.time_limit, [weight for weight, _ in steps.values()])
        for _ in range(2):
            for index, (what, (weight, step)) in enumerate(steps.items(), start=1):
                seconds = budget.share(weight)
                if seconds is not None and what in ended and seconds <= AGAIN * ended[what]:  # it would not do either
                    continue
                ended.pop(what, None)
                start, label = time.monotonic(), f"{title}: {' of '.join(what)}, step {index} of {len(steps)}"
                try:
                    with counter(label), threadpool_limits(threads), TimeLimit(seconds):
                        step(seconds)
                except TimeIsUpError:
                    ended[what] = time.monotonic() - start
            steps = {what: steps[what] for what in steps if what in ended}
            budget.weight = sum(weight for weight, _ in steps.values())
        self.unfinished = [what for what in everything if what in ended]

    def _steps(self, verify: bool) -> dict[tuple[str, str], tuple[float, Step]]:
        """Every step by its kind and method, with its weight."""
        steps: dict[tuple[str, str], tuple[float, Step]] = {}
        heuristics = [method for method in self.methods if method in HEURISTICS]
        for name in dict.fromkeys([*heuristics, *self.references, *self.methods]):
            quick = name in HEURISTICS or name in self.references
            steps["fit", name] = FIT[quick], partial(self._fit, name)
            if self.data.folds:
                steps["cross-validation", name] = FOLDS[quick], partial(self._validate, name)
        steps["costs", "all numbers of leaves"] = CURVES, self._compute_curves
        for name in self.methods if verify else ():
            steps["verification", name] = PROOF, partial(self._verify, name)
        return steps

    def _estimator(self, name: str, y: Any, seconds: float | None) -> Any:
        """The estimator of a method, or of a reference for these targets."""
        if name in self.references:
            return reference(name, self.setting.task, y, self.setting.seed)
        partitioner = self.setting.partitioner(name, None if seconds is None else STOPPED * seconds)
        return self.setting.estimator(name).set_params(partitioner=partitioner.within(len(y)))

    def _fit(self, name: str, seconds: float | None) -> None:
        """Fit to all rows, and score on test rows; warnings become notes."""
        start, scores = clock(), {}
        try:
            with warnings.catch_warnings(record=True) as issued:
                warnings.simplefilter("always")
                if name in self.references:
                    model = fitted(self._estimator(name, self.data.y, seconds), self.data.X, self.data.y)
                else:
                    model = self.setting.estimator(name, None if seconds is None else STOPPED * seconds)
                    model.fit(*self.data.given)
        except SolverError as error:
            return self._fail(name, error)
        except Exception as error:
            if name not in self.references:  # it concerns the data or settings, and so all methods
                raise
            return self._fail(name, error)
        took, status = clock() - start, "-" if name in self.references else model.certificate_.status
        if name not in self.references:
            sentences = [f"{str(warning.message).rstrip('.')}." for warning in issued]
            self.notes += [note for note in dict.fromkeys(sentences) if note not in self.notes]
        if self.data.test is not None and status != "interrupted":
            scores = self._scored(model, *self.data.test, "test")
        self.scores[name], self.seconds[name], self.status[name], self.models[name] = scores, took, status, model
        if status == "interrupted":
            raise KeyboardInterrupt
        if status == LATE:
            raise TimeIsUpError
        return None

    def _fail(self, name: str, error: Exception) -> None:
        self.status[name] = FAILED
        self.notes.append(f"{name} failed: {' '.join(str(error).split())}")

    def _scored(self, model: Any, X: Any, y: Any, kind: str) -> dict[str, float]:
        with silence():
            found = scores_of(y, predicted(model, X, self.data.classes), self.data.classes)
        return {f"{kind}_{name}": value for name, value in found.items()}

    def _validate(self, name: str, seconds: float | None) -> None:
        """Score the held-out predictions of all folds."""
        if name not in self.models or self.status[name] == LATE:  # the folds would not do either
            if self.status.get(name) != FAILED:
                raise TimeIsUpError
            return
        if seconds is not None and self.seconds[name] * (len(self.data.folds) - 1) > HOPELESS * seconds:
            raise TimeIsUpError
        X, y, folds, classes = self.data.X, self.data.y, self.data.folds, self.data.classes
        held_out = np.empty(len(y) if classes is None else (len(y), len(classes)))
        start = time.perf_counter()
        with silence():  # the fit to all rows has issued them
            for done, (train, held) in enumerate(progress(folds, len(folds), f"cross-validation of {name}: folds")):
                left = None if seconds is None else (seconds + start - time.perf_counter()) / (len(folds) - done)
                try:
                    model = fitted(self._estimator(name, y[train], left), X[train], y[train])
                except Exception as error:
                    if name not in self.references and not isinstance(error, SolverError):
                        raise
                    self.notes.append(f"Cross-validation of {name} failed: {' '.join(str(error).split())}")
                    return
                status = getattr(getattr(model, "certificate_", None), "status", "")
                if status == "interrupted":
                    raise KeyboardInterrupt
                if status == LATE:
                    raise TimeIsUpError
                held_out[held] = predicted(model, X[held], classes)
        scores = scores_of(y, held_out, classes)
        self.scores[name] |= {f"cv_{score}": value for score, value in scores.items()}
        self.fold_scores[name] = fold_scores(y, held_out, classes, [held for _, held in folds])

    def _compute_curves(self, seconds: float | None) -> None:
        """Costs against leaves, from any model, as the leaf costs are the same for all."""
        model = next((self.models[method] for method in self.methods if method in self.models), None)
        if model is None:
            raise TimeIsUpError
        exact = {"tree", "tree-mio"} & set(self.models)
        left = None if seconds is None else STOPPED * seconds
        reason = self.curves.compute(self.setting, self._leaf_cost(model), bool(exact), left)
        if reason == "interrupted":
            raise KeyboardInterrupt
        if reason == LATE:
            raise TimeIsUpError

    def _leaf_cost(self, model: Any) -> LeafCost:
        cost: LeafCost = model.leaf_cost(*self.data.given)
        return cost

    def _verify(self, name: str, seconds: float | None) -> None:
        """Prove a certificate again on the training rows."""
        if name not in self.models:
            return
        self.verified[name] = LATE
        model = self.models[name]
        proof = prove_again(model, *self.data.given)
        bounded = np.isfinite(model.certificate_.bound)
        self.verified[name] = "no" if not proof else "yes" if bounded else "cost only"
        if not proof:
            self.notes.append(f"{name} is not verified: {proof.reason}.")

    def comparison(self, title: str, interrupted: bool) -> Comparison:
        """Everything that is finished; methods that were not reached before an interrupt are left out."""
        names = [n for n in (*self.methods, *self.references) if n in self.status or not interrupted]
        own = {name: self.models[name] for name in self.methods if name in self.models}
        columns: dict[str, list[Any]] = {"method": names}
        columns["leaves"] = [float(own[n].n_leaves_) if n in own else np.nan for n in names]
        columns["cost"] = [own[n].certificate_.objective if n in own else np.nan for n in names]
        columns["bound"] = [own[n].certificate_.bound if n in own else np.nan for n in names]
        best = [best_bound(n, own) if n in own else np.nan for n in names]
        columns["above_bound_percent"] = [
            percent_above(cost, bound) for cost, bound in zip(columns["cost"], best, strict=True)
        ]
        columns["status"] = [self.status.get(n, LATE) for n in names]
        columns["seconds"] = [self.seconds.get(n, np.nan) for n in names]
        for kind, is_known in (("cv", self.data.folds), ("test", self.data.test is not None)):
            for score in SCORES[self.setting.task] if is_known else ():
                column = f"{kind}_{score}"
                columns[column] = [self.scores.get(n, {}).get(column, np.nan) for n in names]
        if self.verified:
            columns["verified"] = [self.verified.get(n, "-") for n in names]
        if self.unfinished:
            of_kind = {kind: [name for other, name in self.unfinished if other == kind] for kind, _ in self.unfinished}
            parts = "; ".join(f"{kind} of {', '.join(ended)}" for kind, ended in of_kind.items())
            self.notes.append(f"Not finished within the time limit of {self.setting.time_limit:g} s: {parts}.")
        references = {name: self.models[name] for name in self.references if name in self.models}
        return Comparison(
            title,
            self.setting,
            own,
            Table(**columns),
            self.curves.costs,
            interrupted,
            self.curves.near,
            references,
            self.data.description(),
            self.notes,
            self.fold_scores,
            self.data.overlap(),
        )
