"""The stored record, and how results are compared with it.

Predictions agree to 1e-6 of their spread, or of their size if they do not vary, and to 1e-3 if a cone solver has found
them; numbers to 1e-6 of their size; words and counts exactly. A bound may be better than the recorded one, never worse
by more than the tolerance of "optimal".
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from formulations.certificate import SOLVERS_BOUND
from tests.record import finite_models, linear_models, other_models, streamed_models
from tests.record.facts import Cases, Facts

RECORD = Path(__file__).with_name("record.json")
# The second is the square root of the first: coefficients whose objective is known to 1e-6 are known to 1e-3.
CLOSE, BY_CONES = 1e-6, 1e-3


def all_cases() -> Cases:
    """The cases of all modules by title."""
    modules = (linear_models, finite_models, streamed_models, other_models)
    return {title: case for module in modules for title, case in module.cases().items()}


def read_record() -> dict[str, Any]:
    """What is stored."""
    content: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return content


def differences(found: Facts, stored: Facts) -> list[str]:
    """What differs, one line each."""
    lines = [f"{name} is not recorded" for name in found.keys() - stored.keys()]
    for name, expected in stored.items():
        if name not in found:
            lines.append(f"{name} is lost")
        elif name == "bound" and "objective" in stored:
            lines += _worse_bound(found, stored)
        elif not _agree(found[name], expected, BY_CONES if stored.get("status") == SOLVERS_BOUND else CLOSE):
            lines.append(f"{name} was {expected}, is {found[name]}")
    return lines


def _worse_bound(found: Facts, stored: Facts) -> list[str]:
    allowed = CLOSE * max(abs(stored["objective"]), 1e-12)
    if found["bound"] >= stored["bound"] - allowed and found["bound"] <= found["objective"] + allowed:
        return []
    return [f"bound was {stored['bound']}, is {found['bound']} at objective {found['objective']}"]


def _agree(found: Any, expected: Any, close: float) -> bool:
    if isinstance(expected, dict):
        same_keys = isinstance(found, dict) and found.keys() == expected.keys()
        return same_keys and all(_agree(found[key], entry, close) for key, entry in expected.items())
    if isinstance(expected, list) and _are_numbers(expected):
        first, second = np.array(found, dtype=float), np.array(expected, dtype=float)
        if first.shape != second.shape:
            return False
        scale = np.nanstd(second) or np.nanmax(np.abs(second), initial=0.0)
        return bool(np.allclose(first, second, rtol=0.0, atol=close * scale, equal_nan=True))
    if isinstance(expected, list):
        same_length = isinstance(found, list) and len(found) == len(expected)
        return same_length and all(_agree(first, second, close) for first, second in zip(found, expected, strict=True))
    if isinstance(expected, float):
        return isinstance(found, float) and bool(np.isclose(found, expected, rtol=CLOSE, atol=1e-12, equal_nan=True))
    return type(found) is type(expected) and found == expected


def _are_numbers(entries: list[Any]) -> bool:
    if all(isinstance(entry, list) for entry in entries):
        return all(map(_are_numbers, entries))
    return all(isinstance(entry, int | float) and not isinstance(entry, bool) for entry in entries)
