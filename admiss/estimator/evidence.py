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
from typing import Any

import numpy as np

from formulations.arrays import FloatArray


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
    """The evidence of a fitted model, without a digest; every model that has a certificate states its own."""
    if not hasattr(model, "certificate_") or not hasattr(model, "_evidence"):
        raise ValueError(
            f"{type(model).__name__} has no certificate that could be checked: use a fitted finite, adaptive or "
            "stacked model."
        )
    evidence: dict[str, Any] = model._evidence()
    return evidence
