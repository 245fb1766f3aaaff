"""The outcome of a cell: scores, or the reason why there are none."""

import math
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from admiss._version import __version__
from admiss.versions import processor

# Numbers that are compared: a cell with one that is not finite has failed.
NUMBERS = ("score", "cv_score", "seconds")


@dataclass(frozen=True)
class Outcome:
    """The end of a cell.

    Attributes
    ----------
    status : {"done", "failed"}
    reason : str or None
        One line that says why it failed.
    details : str or None
        The last lines of the traceback, or of the worker's output before it died.
    scores : dict
        Plain values; empty if it failed.
    elapsed : float
        Seconds of wall-clock time.
    origin : dict
        Version of admiss and machine of the process that computed it.
    pid : int
        Number of that process.
    dependencies : dict
        What it depends on besides its recipe, see :mod:`admiss.study.dependencies`.
    rows : str
        Sketch of the rows of the instance, see :mod:`admiss.study.shared_rows`; empty if there is none.
    """

    status: str
    reason: str | None = None
    details: str | None = None
    scores: dict[str, Any] = field(default_factory=dict)
    elapsed: float = 0.0
    origin: dict[str, str] = field(default_factory=dict)
    pid: int = 0
    dependencies: dict[str, str] = field(default_factory=dict)
    rows: str = ""


@cache
def origin() -> dict[str, str]:
    """Version of admiss and machine of this process."""
    machine = f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    return {"version": __version__, "machine": machine}


def plain_scores(scores: Any) -> dict[str, Any]:
    """Convert the scores of a method to values of JSON; raises ``ValueError`` if they are not scores.

    A number that is not finite is an error among the compared ones, and None otherwise. Text is made encodable.

    Examples
    --------
    >>> plain_scores({"score": 0.5, "mu": (1.0, float("nan"))})
    {'score': 0.5, 'mu': [1.0, None]}
    """
    if not isinstance(scores, Mapping):
        raise ValueError(f"the method returned {type(scores).__name__} instead of a dict of scores")
    plain = {encodable(str(name)): _plain(name, value) for name, value in scores.items()}
    if "score" not in scores:
        raise ValueError("the method returned no score")
    for name in NUMBERS:
        if name not in scores or (scores[name] is None and name != "score"):
            continue
        value = plain[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name} is {scores[name]!r}, not a finite number")
    return plain


def _plain(name: Any, value: Any) -> Any:
    if hasattr(value, "tolist"):  # arrays and scalars of numpy
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return encodable(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Mapping):
        return {encodable(str(key)): _plain(name, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(name, item) for item in value]
    raise ValueError(f"{name} is of type {type(value).__name__}, not a plain value")


def encodable(text: str) -> str:
    """Escape characters that UTF-8 cannot encode, such as undecodable bytes of file names.

    Examples
    --------
    >>> encodable("file \\udcff.csv")
    'file \\\\udcff.csv'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
