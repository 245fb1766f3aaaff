"""Grids of hyper-parameters by name, and validation of user-defined grids.

A grid maps names of parameters of the tuned estimator to lists of values. ``"authors"`` has the grids of the paper's
authors, whose XGBoost always ran 10 rounds. For the linear predictor the values of lambda, ``lam``, are those of a path
unless given.
"""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

Grid = dict[str, list[Any]]

ROUNDS = [25, 50, 100, 200, 400]

GRIDS: dict[str, dict[str, Grid]] = {
    "default": {
        "linear": {"l1_ratio": [0.0, 0.5, 1.0]},
        "tree": {"max_depth": [1, 2, 3, 4, 6, 8, 12, 16], "min_samples_leaf": [1, 5, 20]},
        "forest": {"n_estimators": [50, 100, 200], "max_depth": [4, 8, 16, None], "max_features": [1 / 3, 1.0]},
        "xgboost": {"n_estimators": ROUNDS, "learning_rate": [0.1], "max_depth": [2, 4, 6]},
        "hist_boosting": {"max_iter": ROUNDS, "learning_rate": [0.1], "max_depth": [2, 4, 6]},
    },
    "authors": {
        "linear": {"l1_ratio": [k / 10 for k in range(1, 11)]},
        "tree": {"max_depth": list(range(2, 17, 2))},
        "forest": {"n_estimators": list(range(50, 201, 25)), "max_depth": list(range(5, 51, 5))},
        "xgboost": {
            "n_estimators": [10],
            "learning_rate": [0.3],
            "max_depth": [3, 5, 7, 9],
            "min_child_weight": [1, 2, 3, 4, 5, 6],
            "gamma": [0.0, 0.1, 0.2, 0.3, 0.4],
        },
    },
}


def resolve_grid(grid: Any, kinds: tuple[str, ...]) -> dict[str, Grid]:
    """The grid of each kind.

    ``grid`` is a name; for one kind its grid; or, for several, a dict of names or grids by kind, "default" for absent
    kinds.

    Examples
    --------
    >>> resolve_grid("authors", ("tree",))
    {'tree': {'max_depth': [2, 4, 6, 8, 10, 12, 14, 16]}}
    >>> resolve_grid({"max_depth": [2, 3]}, ("tree",))
    {'tree': {'max_depth': [2, 3]}}
    """
    if isinstance(grid, Mapping) and set(grid) <= set(kinds):
        return {kind: _grid_of(kind, grid.get(kind, "default")) for kind in kinds}
    if isinstance(grid, Mapping) and len(kinds) > 1:
        raise ValueError(f"For several kinds grid must have one grid per kind ({', '.join(kinds)}), not {list(grid)}.")
    return {kind: _grid_of(kind, grid) for kind in kinds}


def _grid_of(kind: str, grid: Any) -> Grid:
    if isinstance(grid, str):
        if grid not in GRIDS:
            raise ValueError(f"grid must be one of {', '.join(map(repr, GRIDS))} or a dict, not {grid!r}.")
        if kind not in GRIDS[grid]:
            raise ValueError(f"There is no grid {grid!r} for {kind!r}: use 'default' or a dict.")
        return GRIDS[grid][kind]
    if not isinstance(grid, Mapping):
        raise ValueError(f"grid must be one of {', '.join(map(repr, GRIDS))} or a dict, not {grid!r}.")
    for name, values in grid.items():
        if isinstance(values, str | Mapping) or not hasattr(values, "__len__") or not len(values):
            raise ValueError(f"The grid of {name!r} must be a list of at least one value, not {values!r}.")
    return {str(name): _plain(values) for name, values in grid.items()}


def _plain(values: Any) -> list[Any]:
    """The values of a list, array or range as Python objects."""
    return values.tolist() if hasattr(values, "tolist") else list(values)


def check_class_weights(grids: dict[str, Grid], classes: list[Any]) -> None:
    """Refuse weights of classes absent from y, and invalid weights."""
    for grid in grids.values():
        for weights in grid.get("class_weight", []):
            if not isinstance(weights, Mapping):
                continue  # None, or a name known to the predictor
            unknown = [label for label in weights if label not in classes]
            if unknown:
                raise ValueError(f"class_weight has labels that y does not have, {unknown}: leave them out.")
            if any(not isinstance(weight, Real) or not 0 <= float(weight) < np.inf for weight in weights.values()):
                raise ValueError(f"Class weights must be non-negative numbers, not {dict(weights)}.")
