"""Every oracle can fail: estimators with one fault each, and the reason that must be given."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from admiss import AdaptiveClassifier, AdaptiveRegressor, FiniteRegressor
from admiss.partition import Greedy, OptimalTree
from tests.odd_inputs import oracles, relations
from tests.odd_inputs.case import Case, make_case
from tests.odd_inputs.oracles import Broken, check_case, no_warnings_of_ours, unclear
from tests.odd_inputs.pool import Pool
from tests.odd_inputs.pretend import pretend
from tests.odd_inputs.relations import RELATIONS
from tests.odd_inputs.rows import Rows


def make(model, classes=False):
    """An ordinary input of an estimator."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = 1.0 + X @ [1.0, -1.0, 0.5] + 0.1 * rng.normal(size=30)
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    rows = Rows(X, np.where(y > 1, "yes", "no") if classes else y, None, X[:5] + 0.1, True)
    return Case(1, model, X, rows.y, None, rows.test, rows, True, "")


def predicts(change, base=AdaptiveRegressor):
    """Changes the predictions."""
    return type("Broken", (base,), {"predict": lambda self, X: change(base.predict(self, X), np.asarray(X))})()


def fits(change, base=AdaptiveRegressor, **parameters):
    """Fits changed rows."""

    def fit(self, X, y, sample_weight=None):
        return base.fit(self, *change(np.asarray(X), np.asarray(y), sample_weight))

    return type("Broken", (base,), {"fit": fit})(**parameters)


def fails(error):
    def fit(self, X, y, sample_weight=None):
        raise error

    return type("Fails", (AdaptiveRegressor,), {"fit": fit})()


class Unnormalised(AdaptiveClassifier):
    def predict_proba(self, X):
        return 0.5 * super().predict_proba(X)


class OtherLabels(AdaptiveClassifier):
    def predict(self, X):
        return np.full(len(X), "other")


class BoundAbove(AdaptiveRegressor):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.certificate_ = replace(self.certificate_, bound=self.certificate_.objective + 1.0)
        return self


class WorseThanGreedy(FiniteRegressor):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        if not isinstance(self.partitioner, Greedy):
            self.certificate_ = replace(self.certificate_, objective=2 * self.certificate_.objective)
        return self


FAULTS = [
    (predicts(lambda f, X: np.where(np.arange(len(f)) == 1, np.nan, f)), False, "finite"),
    (predicts(lambda f, X: f[:, None]), False, "shape"),
    (predicts(lambda f, X: f + time.perf_counter()), False, "refit"),
    (Unnormalised(), True, "probabilities"),
    (OtherLabels(), True, "labels"),
    (BoundAbove(), False, "certificate"),
    (fails(KeyError("x")), False, "type: KeyError"),
    (fails(ValueError("a sentence of a test")), False, "not a sentence of ours"),
    (AdaptiveRegressor(lam=-1), False, "ordinary input refused: ValueError: lam"),
]


@pytest.mark.parametrize(("model", "classes", "reason"), FAULTS)
def test_a_fault_is_found(model, classes, reason):
    with pytest.raises(Broken, match=reason):
        check_case(make(model, classes))


def test_an_ordinary_input_passes():
    assert check_case(make(AdaptiveRegressor())) == "fitted"


RELATED = [
    (relations.plain_rows, predicts(lambda f, X: f + X.flags.c_contiguous)),
    (relations.permuted_rows, fits(lambda X, y, s: (X, y + np.arange(len(y)), s))),
    (relations.permuted_columns, predicts(lambda f, X: f + np.nan_to_num(X) @ [1.0, 2.0, 4.0])),
    (relations.copied_rows, fits(lambda X, y, s: (X, y, None if s is None else np.sqrt(s)))),
    (relations.weightless_rows, fits(lambda X, y, s: (X, y, None if s is None else np.maximum(s, 0.1)))),
    (relations.scaled_target, predicts(lambda f, X: f + 1.0)),
    (relations.other_units, predicts(lambda f, X: f + np.nan_to_num(X) @ [1.0, 2.0, 4.0])),
    (relations.below_greedy, WorseThanGreedy(OptimalTree(max_depth=1, min_rows=1))),
]


@pytest.mark.parametrize(("relation", "model"), RELATED)
def test_a_deviation_is_found(relation, model):
    case = make(model.set_params(l1_ratio=0.0) if "l1_ratio" in model.get_params() else model)
    case = replace(case, X=np.asfortranarray(case.X), test=np.asfortranarray(case.test))
    fitted = case.fitted()
    with pytest.raises(Broken):
        relation(case, fitted, oracles.outputs(fitted, case.test))


def test_there_is_a_deviation_for_every_relation():
    assert {relation for relation, _ in RELATED} == set(RELATIONS)


def error_of(call):
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def sentence_of_ours(text):
    """A call that raises a ValueError as if it were in a file of the package."""
    names = {}
    exec(compile(f"def refuse():\n raise ValueError({text!r})", f"{oracles.OURS[0]}/made_up.py", "exec"), names)
    return names["refuse"]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: AdaptiveRegressor(lam=-1).fit([[1.0]], [1.0]), None),
        (lambda: AdaptiveRegressor().fit([1.0], [1.0]), None),
        (lambda: AdaptiveRegressor().fit(np.empty((0, 1)), []), None),
        (sentence_of_ours("One sentence."), None),
        (sentence_of_ours("Two\nlines."), "not one sentence"),
        (sentence_of_ours(""), "not one sentence"),
        (lambda: np.linalg.cholesky(np.zeros((1, 1))), "not a sentence of ours: LinAlgError"),
        (lambda: [][1], "type: IndexError"),
        (lambda: 1 / 0, "type: ZeroDivisionError"),
        (lambda: next(iter(())), "type: StopIteration"),
    ],
)
def test_clear_sentences(call, reason):
    found = unclear(error_of(call))
    assert found is None if reason is None else found.startswith(reason)


@pytest.mark.parametrize(("file", "ours"), [(f"{oracles.OURS[1]}/made_up.py", True), ("/elsewhere/made_up.py", False)])
def test_runtime_warnings_of_ours(file, ours):
    names = {"np": np}
    exec(compile("def divide():\n return np.ones(1) / np.zeros(1), np.var([])", file, "exec"), names)
    if ours:
        with pytest.raises(Broken, match=r"warning: .* \(formulations/made_up.py:2\)"), no_warnings_of_ours():
            names["divide"]()
    else:
        with no_warnings_of_ours():
            names["divide"]()


def test_hangs_and_lost_processes_are_failures():
    with Pool(limit=1.0, run=pretend) as pool:
        outcomes = list(pool.outcomes([2, 0, 1, 3]))
        leftover = Path(pool.stacks)
    assert [outcome.status for outcome in outcomes] == ["fitted", "failed", "failed", "fitted"]
    assert outcomes[1].reason.startswith("hang: no answer after 1 s")
    assert outcomes[2].reason.startswith("lost: the process ended with code 3")
    assert not leftover.exists()


def test_a_seed_is_one_input():
    for seed in range(40):
        first, second = make_case(seed), make_case(seed)
        assert first.words == second.words
        if isinstance(first.X, np.ndarray) and first.X.dtype.kind == "f":
            np.testing.assert_array_equal(first.X, second.X)


def test_about_half_of_the_inputs_should_be_fitted():
    cases = [make_case(seed) for seed in range(1000)]
    assert 0.2 < np.mean([case.ordinary for case in cases]) < 0.5
    assert 0.7 < np.mean([case.rows is not None for case in cases])
    assert len({type(case.model) for case in cases}) == 19
