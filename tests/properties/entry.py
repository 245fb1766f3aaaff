"""An estimator of the table, the registry of properties, and the rows and outputs that they share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from textwrap import shorten
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

NAMES = ["a", "b", "c", "d"]


@dataclass(frozen=True)
class Entry:
    """An estimator of the table.

    ``grid`` maps a parameter to two values that give different models. ``not_promised`` maps properties, those of
    scikit-learn included, to the reason why the estimator need not have them. The slow tier has the slow entries.
    """

    model: Any
    grid: dict[str, list[Any]]
    not_promised: dict[str, str] = field(default_factory=dict)
    slow: bool = False
    accuracy: float = 1e-6

    def __str__(self) -> str:
        parameters = [getattr(self.model, name) for name in signature(type(self.model)).parameters][:1]
        return shorten(" ".join([type(self.model).__name__, *map(str, parameters)]), 60, placeholder=" ..")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **parameters: Any) -> Any:
        """A fitted copy."""
        return fit(clone(self.model).set_params(**parameters), X, y, sample_weight)


def fit(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit a model; transformers are not given y."""
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return model.fit(X, **weights) if is_transformer(model) else model.fit(X, y, **weights)


PROPERTIES: dict[str, tuple[Callable[..., None], Callable[[Any], bool]]] = {}
# Properties that compare two fits, and are asked of several tables in the slow tier.
RELATIONS: list[str] = []


def prop(applies: Callable[[Any], bool] = lambda model: True, relation: bool = False) -> Callable[..., Any]:
    """Register a property of the estimators to which it applies; relations also take the seed of the rows."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        PROPERTIES[function.__name__] = function, applies
        if relation:
            RELATIONS.append(function.__name__)
        return function

    return register


def is_transformer(model: Any) -> bool:
    return not (is_classifier(model) or is_regressor(model))


def takes_weights(model: Any) -> bool:
    return bool(has_fit_parameter(model, "sample_weight"))


def has(*names: str) -> Callable[[Any], bool]:
    """Estimators that have all these methods or parameters."""
    return lambda model: all(hasattr(model, name) for name in names)


def make_rows(model: Any, n: int = 60, seed: int = 0) -> tuple[Any, Any]:
    """Four features, all but the second with missing values, and a target that depends on values and patterns."""
    rng = np.random.default_rng(seed)
    X = 1.0 + rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4))
    M = rng.uniform(size=X.shape) < [0.4, 0.0, 0.4, 0.4]
    y = X @ [1.0, 0.3, -0.3, -1.0] + 2.0 * M @ [0.5, 0.8, 1.2, 1.5] + 0.5 * rng.normal(size=n)
    if get_tags(model).target_tags.positive_only:
        y = np.exp(0.3 * y)
    return np.where(M, np.nan, X), np.where(y > np.median(y), "high", "low") if is_classifier(model) else y


def outputs(model: Any, X: Any) -> Any:
    """Probabilities, predictions, or transformed rows."""
    method = "predict_proba" if is_classifier(model) else "predict" if is_regressor(model) else "transform"
    return np.asarray(getattr(model, method)(X))


def assert_close(found: Any, expected: Any, message: str = "", accuracy: float = 1e-6) -> None:
    np.testing.assert_allclose(found, expected, rtol=accuracy, atol=accuracy, err_msg=message)


def assert_finite(values: Any) -> None:
    assert np.isfinite(values).all(), "NaN or infinity in the output"


def assert_points_to_the_call(caught: Any, words: str) -> None:
    """Warnings with these words point to the line that called the estimator: in this file."""
    assert {warning.filename for warning in caught if words in str(warning.message)} == {__file__}
