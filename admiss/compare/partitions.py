"""Comparison of partitioners on one data set, at the same leaf cost.

For each method: leaves, training cost, the bound proven for its class of partitions, the gap to the best bound known
for that class, seconds, and scores in cross-validation and on test rows. References of scikit-learn have the scores, on
the same folds and test rows.

References are fitted and cross-validated first, then methods without a proof, then exact methods; the curves of costs
against leaves with the trees close to the optimum follow, and proofs of certificates. Each of these steps has a share
of the time:

    share of a step = seconds left * its weight / weight of the steps that are still to come, itself included,
                      but at least a quarter of the seconds left

What a step does not use is left to those after it. Exact methods stop by themselves within their share, and a
cross-validation stops between folds. A single fit of a reference or of a heuristic is not ended: if it takes longer,
less is left to the steps after it. What is not finished is reported so; what was finished stays.
"""

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from admiss.compare.comparison import Comparison, best_bound, percent_above
from admiss.compare.near_optimal import Curves
from admiss.compare.scores import SCORES, fitted, fold_scores, predicted, reference, reference_names, scores_of
from admiss.compare.setting import DEFAULT_METHODS, HEURISTICS, ComparedRows, Methods, Setting, task_of
from admiss.datasets import make_interacting
from admiss.estimator.notices import silence
from admiss.terminal.progress import counter, progress
from admiss.terminal.table import Table
from admiss.verification.check import verify as prove_again
from formulations.certificate import SolverError, clock
from formulations.leaves.cost import LeafCost

LATE, FAILED = "time limit", "failed"
# Folds are begun if they need less than this multiple of their seconds at the pace of the fit to all rows.
PATIENCE = 1.5
# Share of its time after which an exact method returns what it has found.
STOPPED = 0.8

Step = Callable[[float | None], None]


class TimeIsUpError(Exception):
    """A step has used its share of the time."""


class TimeBudget:
    """Seconds to divide among steps of given weights, unlimited if None.

    Examples
    --------
    >>> TimeBudget(None, [1, 2]).share(1) is None
    True
    """

    def __init__(self, seconds: float | None, weights: Iterable[float]) -> None:
        self.end = None if seconds is None else time.monotonic() + seconds
        self.weight = float(sum(weights))

    def share(self, weight: float) -> float | None:
        """Seconds for the next step, None if time is unlimited."""
        part = max(0.25, weight / self.weight)
        self.weight -= weight
        return None if self.end is None else part * max(0.0, self.end - time.monotonic())


def compare_partitions(
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    task: str | None = None,
    methods: Methods = DEFAULT_METHODS,
    setting: Setting | None = None,
    title: str = "data",
    notes: tuple[str, ...] = (),
    verify: bool = False,
) -> Comparison:
    """Fit every method on the same rows, at the same leaf cost.

    Parameters
    ----------
    X, y : arrays or frames
        Training rows.
    X_test, y_test : arrays or frames, optional
        Rows for the test scores.
    task : {"regression", "classification"}, optional
        By default text and truth values in y are classes, and so are integers if ``setting.task`` says so.
    methods : sequence of str or Partitioner
        Names among ``METHODS``, with the limits of ``setting``, and partitioners, with limits of their own: their gaps
        are to their own bounds, and their bounds hold for no other method.
    setting : Setting, optional
        Limits, leaf cost, folds, time limit.
    title : str
    notes : tuple of str
        Sentences about the data, for the notes of the comparison.
    verify : bool
        Prove every certificate again in exact arithmetic, for a column "verified".

    Examples
    --------
    >>> from admiss.datasets import make_interacting
    >>> data = make_interacting(n=400, d=5, random_state=0)
    >>> setting = Setting(max_depth=2, min_rows=20, references=False)
    >>> comparison = compare_partitions(data.X_train, data.y_train, setting=setting)
    >>> comparison.table["leaves"].tolist()
    [1.0, 3.0, 4.0]

    A partitioner, also one that you have written, beside the exact tree:

    >>> from admiss.partition import Greedy
    >>> methods = ["tree", Greedy(max_leaves=2)]
    >>> comparison = compare_partitions(data.X_train, data.y_train, methods=methods, setting=setting)
    >>> comparison.table["method"].tolist(), comparison.table["leaves"].tolist()
    (['tree', 'Greedy(max_leaves=2)'], [4.0, 2.0])
    """
    setting, methods = (setting or Setting()).naming(methods)
    setting = replace(setting, task=task_of(y, task, setting.task))
    setting = replace(setting, loss=setting.loss_name)
    setting.check(methods)
    compile_kernels(setting, methods)
    return Run(ComparedRows.of(X, y, X_test, y_test, setting), setting, methods, notes).finish(title, verify)


def compile_kernels(setting: Setting, methods: tuple[str, ...]) -> None:
    """Compile the kernels on a few rows before the clock starts."""
    small = replace(setting, max_depth=2, max_leaves=4, min_rows=5, ridge=1.0)
    data = make_interacting(n=60, d=4, n_test=1, random_state=0)
    y = data.y_train > np.median(data.y_train) if setting.task == "classification" else data.y_train
    wanted = [name for name in ("greedy", "tree", "groups") if name != "groups" or name in methods]
    if setting.loss_name not in ("squared", "logistic"):
        wanted = ["none"]  # imports cvxpy
    with silence():
        for method in progress(wanted, len(wanted), "compiling"):
            small.estimator(method).fit(data.X_train, y)


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

    def finish(self, title: str, verify: bool) -> Comparison:
        """Take all steps; after an interrupt, what is finished by then."""
        interrupted = False
        try:
            self.take_steps(title, verify)
        except KeyboardInterrupt:
            interrupted = True
            if not self.models:
                raise
        return self.comparison(title, interrupted)

    def take_steps(self, title: str, verify: bool) -> None:
        """Take every step within its share of the time."""
        steps = self._steps(verify)
        threads = 1 if self.data.X.size < 10**6 else None  # on fewer values, threads wait for each other
        budget = TimeBudget(self.setting.time_limit, [weight for weight, _ in steps.values()])
        for index, (what, (weight, step)) in enumerate(steps.items(), start=1):
            seconds = budget.share(weight)
            if seconds == 0:
                self.unfinished.append(what)
                continue
            try:
                with counter(f"{title}: {' of '.join(what)}, step {index} of {len(steps)}"), threadpool_limits(threads):
                    step(seconds)
            except TimeIsUpError:
                self.unfinished.append(what)

    def _steps(self, verify: bool) -> dict[tuple[str, str], tuple[float, Step]]:
        """Every step by its kind and method, with its weight: fits and exact methods weigh twice as much."""
        steps: dict[tuple[str, str], tuple[float, Step]] = {}
        heuristics = [method for method in self.methods if method in HEURISTICS]
        for name in dict.fromkeys([*self.references, *heuristics, *self.methods]):
            quick = name in HEURISTICS or name in self.references
            weight = 1.0 if quick else 2.0
            steps["fit", name] = 2 * weight, partial(self._fit, name)
            if self.data.folds:
                steps["cross-validation", name] = weight, partial(self._validate, name)
        steps["costs", "all numbers of leaves"] = 2.0, self._compute_curves
        for name in self.methods if verify else ():
            steps["verification", name] = 1.0, partial(self._verify, name)
        return steps

    def _estimator(self, name: str, y: Any, seconds: float | None) -> Any:
        """The estimator of a method, or of a reference for these targets."""
        if name in self.references:
            return reference(name, self.setting.task, y, self.setting.seed)
        partitioner = self.setting.partitioner(name, None if seconds is None else STOPPED * seconds)
        return self.setting.estimator(name).set_params(partitioner=partitioner.within(len(y)))

    def _fit(self, name: str, seconds: float | None) -> None:
        """Fit to all rows, and score on test rows; warnings become notes."""
        start = clock()
        try:
            with warnings.catch_warnings(record=True) as issued:
                warnings.simplefilter("always")
                model = self._fitted_to_all(name, None if seconds is None else STOPPED * seconds)
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
        scores = {}
        if self.data.test is not None and status != "interrupted":
            scores = self._scored(model, *self.data.test, "test")
        self.scores[name], self.seconds[name], self.status[name], self.models[name] = scores, took, status, model
        return _raise_if_unfinished(status)

    def _fitted_to_all(self, name: str, seconds: float | None) -> Any:
        """The model of all rows."""
        if name in self.references:
            return fitted(self._estimator(name, self.data.y, seconds), self.data.X, self.data.y)
        return self.setting.estimator(name, seconds).fit(*self.data.given)

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
        if seconds is not None and self.seconds[name] * (len(self.data.folds) - 1) > PATIENCE * seconds:
            raise TimeIsUpError
        X, y, folds, classes = self.data.X, self.data.y, self.data.folds, self.data.classes
        held_out = np.empty(len(y) if classes is None else (len(y), len(classes)))
        start = time.perf_counter()
        with silence():  # the fit to all rows has issued them
            for done, (train, held) in enumerate(progress(folds, len(folds), f"cross-validation of {name}: folds")):
                left = None if seconds is None else (seconds + start - time.perf_counter()) / (len(folds) - done)
                if left is not None and left <= 0:
                    raise TimeIsUpError
                try:
                    model = fitted(self._estimator(name, y[train], left), X[train], y[train])
                except Exception as error:
                    if name not in self.references and not isinstance(error, SolverError):
                        raise
                    self.notes.append(f"Cross-validation of {name} failed: {' '.join(str(error).split())}")
                    return
                _raise_if_unfinished(getattr(getattr(model, "certificate_", None), "status", ""))
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
        _raise_if_unfinished(self.curves.compute(self.setting, self._leaf_cost(model), bool(exact), left))

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


def _raise_if_unfinished(status: str) -> None:
    """End a step whose computation was interrupted or ran out of time."""
    if status == "interrupted":
        raise KeyboardInterrupt
    if status == LATE:
        raise TimeIsUpError
