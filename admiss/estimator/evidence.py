"""Evidence of a fitted model: program and solution as plain values, for others to check its certificate.

The evidence is a dictionary of

    kind        "finite", "linear" or "stack"
    program     settings that define the program; values that JSON can hold
    solution    the rest of the solution in such values
    arrays      the numbers of the solution
    digest      of a stack: SHA-256 of the program and of the rows of positive weight

The program is proven again on the data that a verification is given: for other data its statements fail, or hold for
these as well. Only the proof of a stack does not see the features; its digest does.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from formulations.arrays import FloatArray
from formulations.losses import resolve_loss


def data_digest(program: Mapping[str, Any], X: FloatArray, y: FloatArray, s: FloatArray) -> str:
    """SHA-256 of a program and its rows; NaN are all the same, and so are the zeros.

    Examples
    --------
    >>> X, y, s = np.array([[1.0, np.nan]]), np.array([-0.0]), np.ones(1)
    >>> data_digest({}, X, y, s) == data_digest({}, X, -y, s)
    True
    """
    digest = hashlib.sha256(json.dumps(program, sort_keys=True).encode())
    for array in (X, y, s):
        values = np.where(np.isnan(array), np.nan, array) + 0.0
        digest.update(f"{values.shape} ".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def evidence_of(model: Any) -> dict[str, Any]:
    """The evidence of a fitted model, without a digest."""
    if hasattr(model, "leaf_weights_"):
        return _finite(model)
    if hasattr(model, "coefficients_"):
        return _linear(model)
    if hasattr(model, "combination_"):
        return _stack(model)
    raise ValueError(
        f"{type(model).__name__} has no certificate that could be checked: use a fitted finite, adaptive or stacked "
        "model."
    )


def _finite(model: Any) -> dict[str, Any]:
    partitioner, partition = model.partitioner, model.partition_
    names = list(getattr(model, "feature_names_in_", []))
    listed = getattr(partitioner, "split_features", None)
    indices = None if listed is None else [names.index(f) if isinstance(f, str) else int(f) for f in listed]
    program = {
        "task": model._task,
        "loss": loss_description(model.loss),
        "ridge": float(model.ridge),
        "ridge_scale": model.ridge_scale,
        "leaf_model": model.leaf_model,
        "center": bool(model.center),
        "scale": bool(model.scale),
        "class_weight": _class_weight(model),
        "partitioner": "Greedy" if partitioner is None else type(partitioner).__name__,
        "split_features": indices,
        **{name: _whole(getattr(partitioner, name, None)) for name in ("max_depth", "max_leaves", "min_rows")},
    }
    if partitioner is None:
        program["max_depth"] = 3
    solution = {
        "boxes": None if partition.boxes is None else [[[int(j), bool(m)] for j, m in box] for box in partition.boxes],
        "tree": _lists(partition.tree),
        "is_tree": bool(partition.is_tree),
    }
    arrays = {
        "patterns": partition.patterns,
        "leaf": partition.leaf,
        "leaf_intercepts": model.leaf_intercepts_,
        "leaf_weights": model.leaf_weights_,
        "leaf_costs": model.leaf_costs_,
        "centre": model.leaf_features_.centre,
        "scale": model.leaf_features_.scale,
        "unit": model.leaf_features_.unit,
    }
    return {"kind": "finite", "program": program, "solution": solution, "arrays": arrays}


def _linear(model: Any) -> dict[str, Any]:
    adaptivity = model.design_.adaptivity
    program = {
        "task": model._task,
        "loss": loss_description(model.loss),
        "adaptivity": type(adaptivity).__name__,
        "adaptivity_parameters": {name: _plain(value) for name, value in adaptivity.get_params().items()},
        "lam": float(model.lam),
        "l1_ratio": float(model.l1_ratio),
        "adaptive_penalty": "auto" if model.adaptive_penalty == "auto" else float(model.adaptive_penalty),
        "penalty_weights": model.penalty_weights,
        "center": bool(model.center),
        "scale": bool(model.scale),
        "fit_intercept": bool(model.fit_intercept),
        "class_weight": _class_weight(model),
    }
    design = model.design_
    arrays = {"coefficients": model.coefficients_, "centre": design.centre, "scale": design.scale}
    return {"kind": "linear", "program": program, "solution": {}, "arrays": arrays}


def _stack(model: Any) -> dict[str, Any]:
    task = "classification" if hasattr(model, "classes_") else "regression"
    program = {"task": task, "shrinkage": float(model.shrinkage)}
    arrays = {"combination": model.combination_, "held_out": model.held_out_, "tested": model.tested_}
    return {"kind": "stack", "program": program, "solution": {}, "arrays": arrays}


def loss_description(loss: Any) -> dict[str, Any]:
    """Name and parameters of a loss.

    Examples
    --------
    >>> loss_description("huber")
    {'name': 'Huber', 'delta': 1.0}
    """
    resolved = resolve_loss(loss)
    parameters: dict[str, Any] = asdict(resolved) if is_dataclass(resolved) else {}
    return {"name": type(resolved).__name__} | {name: _plain(value) for name, value in parameters.items()}


def _class_weight(model: Any) -> Any:
    """None, "balanced", or pairs of label and weight."""
    weights = getattr(model, "class_weight", None)
    if not isinstance(weights, dict):
        return weights
    return [[_plain(label), float(weight)] for label, weight in weights.items()]


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


def _plain(value: Any) -> Any:
    """A value that JSON can hold: a number, text, or the text of any other object."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def _lists(tree: Any) -> Any:
    """A tree as nested lists."""
    return None if tree is None else [int(tree[0]), _lists(tree[1]), _lists(tree[2])]
