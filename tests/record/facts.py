"""What is recorded of a fitted model."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Facts = dict[str, Any]
Cases = dict[str, Callable[[], Facts]]


def facts_of(model: Any, X_new: np.ndarray, **further: Any) -> Facts:
    """Predictions, what was selected, and the certificate, as far as the model has them."""
    facts: Facts = {"predictions": _predictions(model, X_new)}
    certificate = getattr(model, "certificate_", None)
    if certificate is not None:
        facts["objective"] = float(certificate.objective)
        facts["bound"] = float(certificate.bound)
        facts["status"] = certificate.status
    if hasattr(model, "best_params_"):
        facts["selected"] = {name: plain(value) for name, value in model.best_params_.items()}
        facts["score"] = float(model.best_score_)
    if hasattr(model, "n_leaves_"):
        facts["leaves"] = int(model.n_leaves_)
    return facts | {name: plain(value) for name, value in further.items()}


def plain(value: Any) -> Any:
    """Numbers, words, lists and dictionaries that JSON can hold."""
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def _predictions(model: Any, X_new: np.ndarray) -> Any:
    if hasattr(model, "predict_proba"):
        return plain(model.predict_proba(X_new))
    return plain(model.predict(X_new) if hasattr(model, "predict") else model.transform(X_new))
