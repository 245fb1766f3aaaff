"""One odd input from one integer: an estimator, a table in some container, a target, weights, and rows to predict."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from tests.odd_inputs.containers import FAITHFUL, LABELS, NUMBER_TARGETS, STRANGE, STRANGE_TARGETS
from tests.odd_inputs.models import make_model, spoil
from tests.odd_inputs.rows import Rows, make_rows, odd, pick

TAME_SHARE = 0.5
# Rows, and rows of each class, of a table that must be fitted if nothing about it is odd.
ENOUGH_ROWS, ENOUGH_OF_A_CLASS = 8, 4


@dataclass(frozen=True)
class Case:
    """An odd input.

    ``X``, ``y``, ``s`` and ``test`` are what the estimator is given. ``rows`` are the same as plain arrays, or None if
    the containers hold something else. ``ordinary`` inputs must be fitted; others may be refused in a sentence.
    """

    seed: int
    model: Any
    X: Any
    y: Any
    s: Any
    test: Any
    rows: Rows | None
    ordinary: bool
    words: str

    def fitted(self, rows: Rows | None = None, **parameters: Any) -> Any:
        """A fitted copy of the estimator, on the given data or on plain rows."""
        X, y, s = (self.X, self.y, self.s) if rows is None else (rows.X, rows.y, rows.s)
        return fit(clone(self.model).set_params(**parameters), X, y, s)


def fit(model: Any, X: Any, y: Any, s: Any) -> Any:
    """Fit an estimator; transformers are not given the target."""
    weights = {} if s is None or not takes_weights(model) else {"sample_weight": s}
    return model.fit(X, y, **weights) if is_classifier(model) or is_regressor(model) else model.fit(X, **weights)


def takes_weights(model: Any) -> bool:
    from sklearn.utils.validation import has_fit_parameter

    return bool(has_fit_parameter(model, "sample_weight"))


def make_case(seed: int) -> Case:
    """The odd input of a seed; about half of them are tame."""
    decide, of_rows, of_model, of_kinds = (np.random.default_rng([seed, part]) for part in range(4))
    wild, classes = bool(decide.uniform() > TAME_SHARE), bool(decide.uniform() < 0.4)
    model = make_model(of_model, wild, classes)
    rows = make_rows(of_rows, classes, wild)
    name, value = spoil(of_model, model) if odd(of_model, wild, 0.16) else ("", None)
    kind = pick(of_kinds, list(FAITHFUL)) if pick(of_kinds, (False, True)) else "array"
    strange = pick(of_kinds, list(STRANGE))
    if odd(of_kinds, wild, 0.12):
        X, test, numbers, kind = STRANGE[strange](rows.X), STRANGE[strange](rows.test), None, strange
    else:
        container, held = FAITHFUL[kind]
        with np.errstate(all="ignore"):
            X, test, numbers = container(rows.X), container(rows.test), held
    y, y_kind, labels = _target(of_kinds, rows.y, classes, wild)
    plain = None
    if numbers is not None and labels is not None:
        with np.errstate(all="ignore"):
            plain = Rows(numbers(rows.X), labels, rows.s, numbers(rows.test), rows.tame)
    ordinary = not wild and plain is not None and _is_enough(plain, classes) and not _is_far_from_zero(model, plain.X)
    test = _other_columns(of_kinds, test, wild)
    weights = "" if rows.s is None else f", weights {np.asarray(rows.s).ravel()[:3]}.."
    words = (
        f"{'wild' if wild else 'tame'} {model!r}".replace("\n", "")
        + (f", {name}={value!r}" if name else "")
        + f" on {kind} {rows.X.shape}, y {y_kind} of {len(rows.y)}{weights}"
    )
    return Case(seed, model, X, y, rows.s, test, plain, ordinary, " ".join(words.split()))


def _is_enough(rows: Rows, classes: bool) -> bool:
    """Whether there are enough rows (of each class) of positive weight, and enough observed values."""
    counts = np.unique(rows.y, return_counts=True)[1]
    of_classes = not classes or (len(counts) > 1 and counts.min() >= ENOUGH_OF_A_CLASS)
    weighted = rows.s is None or bool(np.all(rows.s > 0))
    return len(rows.y) >= ENOUGH_ROWS and of_classes and weighted and float(np.mean(~np.isnan(rows.X))) > 0.2


def _is_far_from_zero(model: Any, X: Any) -> bool:
    """Whether features vary by less than 2e-4 of their size, and the model does not centre them.

    A path over lambdas refuses them with the advice to use ``center=True``; without an intercept a solver may not reach
    its tolerance.
    """
    parameters = model.get_params(deep=False)
    centres = parameters.get("center", True) or "n_lambdas" not in parameters
    columns = [column[~np.isnan(column)] for column in X.T]
    may_fail = not (centres and parameters.get("fit_intercept", True))
    return may_fail and any(_is_nearly_constant(x) for x in columns if len(x))


def _is_nearly_constant(x: Any) -> bool:
    return bool(0 < np.std(x) < 2e-4 * np.abs(x).max())


def _target(rng: np.random.Generator, y: Any, classes: bool, wild: bool) -> tuple[Any, str, Any]:
    """Target in a container, the kind of container, and the same as plain numbers or labels if it holds them."""
    strange, usual = pick(rng, list(STRANGE_TARGETS)), pick(rng, list(LABELS if classes else NUMBER_TARGETS))
    plain = pick(rng, (True, False))
    if odd(rng, wild, 0.08):
        return STRANGE_TARGETS[strange](y), strange, None
    if plain or (usual == "large" and len(y) and y.max() > 6):
        return y, "array", y
    with np.errstate(all="ignore"):
        given = (LABELS if classes else NUMBER_TARGETS)[usual](y)
    if usual == "single":
        return given, usual, given.astype(float)
    if usual == "masked":
        return given, usual, y if np.isfinite(y).all() else None
    return given, usual, np.ravel(np.asarray(given)) if classes else y


def _other_columns(rng: np.random.Generator, test: Any, wild: bool) -> Any:
    """Rows to predict with one column less, now and then."""
    less = odd(rng, wild, 0.03)
    return test[:, 1:] if less and isinstance(test, np.ndarray) and test.ndim == 2 else test
