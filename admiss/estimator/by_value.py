"""Equality of objects that hold parameters: adaptivity classes and partitioners."""

from typing import Any

import numpy as np
import scipy.sparse as sp


class EqualByValue:
    """Objects of one class are equal if their parameters, and what they have learned, are equal.

    The hash is that of the class, since ``set_params`` may change the parameters of a key.
    """

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return _equal(vars(self), vars(other))

    def __hash__(self) -> int:
        return hash(type(self))


def _equal(first: Any, second: Any) -> bool:
    """Equality of values, with arrays and what holds them compared entry by entry."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_equal(value, second[key]) for key, value in first.items())
    if isinstance(first, list | tuple) and type(first) is type(second):
        return len(first) == len(second) and all(map(_equal, first, second))
    if sp.issparse(first) and sp.issparse(second):
        return first.shape == second.shape and (first != second).nnz == 0
    if hasattr(first, "__array__") or hasattr(second, "__array__"):
        return first is second or np.array_equal(first, second)
    return bool(first is second or first == second)
