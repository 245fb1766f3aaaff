"""Every oracle of odd inputs can fail: estimators with one fault each, and the reason that must be given."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from admiss import AdaptiveClassifier, AdaptiveRegressor
from tests.properties import oracles
from tests.properties.entry import make_rows
from tests.properties.odd_rows import random_rows
from tests.properties.oracles import Broken, check_input, no_warnings_of_ours, unclear


def predicts(change):
    """Changes the predictions."""
    predict = AdaptiveRegressor.predict
    return type("Broken", (AdaptiveRegressor,), {"predict": lambda self, X: change(predict(self, X))})()


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


FAULTS = [
    (predicts(lambda f: np.where(np.arange(len(f)) == 1, np.nan, f)), "finite"),
    (predicts(lambda f: f[:, None]), "shape"),
    (Unnormalised(), "probabilities"),
    (OtherLabels(), "labels"),
    (BoundAbove(), "certificate"),
    (fails(KeyError("x")), "type: KeyError"),
    (fails(ValueError("a sentence of a test")), "not a sentence of ours"),
    (AdaptiveRegressor(lam=-1), "ordinary input refused: ValueError: lam"),
]


@pytest.mark.parametrize(("model", "reason"), FAULTS)
def test_a_fault_is_found(model, reason):
    with pytest.raises(Broken, match=reason):
        check_input(model, *make_rows(model), must_fit=True)


def test_ordinary_inputs_are_fitted_and_others_may_be_refused():
    rows = make_rows(AdaptiveRegressor())
    assert check_input(AdaptiveRegressor(), *rows, must_fit=True) == ""
    assert "lam" in check_input(AdaptiveRegressor(lam=-1), *rows)


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


def test_a_hang_ends_the_process_with_its_stack():
    code = "import time\nfrom tests.properties.oracles import time_limit\nwith time_limit(0.5): time.sleep(60)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr


def test_random_rows_are_those_of_their_seed_and_half_of_the_tame_ones_must_be_fitted():
    for seed in range(40):
        first, second = (random_rows(seed, classes=False, wild=True) for _ in range(2))
        np.testing.assert_array_equal(first.X, second.X)
        np.testing.assert_array_equal(first.y, second.y)
    for classes in (False, True):
        tame = [random_rows(seed, classes, wild=False).are_enough(classes) for seed in range(300)]
        assert 0.3 < np.mean(tame) < 0.8
