"""Oracles: what must hold for every odd input.

A fit and its predictions succeed, with finite predictions of the right shape and without a RuntimeWarning of ours, or
one clear sentence is raised; nothing hangs.
"""

import dis
import faulthandler
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier, is_regressor

from admiss.extras import MissingPackageError
from formulations.certificate import SolverError
from tests.properties.entry import fit, outputs

ROOT = Path(__file__).parents[2]
OURS = (str(ROOT / "admiss"), str(ROOT / "formulations"))
LIBRARIES = tuple(str(Path(module.__file__).parent) for module in (np, sys.modules["scipy"]))
VALIDATION = tuple(
    str(Path(sklearn.__file__).parent / part) for part in ("utils", "base.py", "model_selection/_split.py")
)
SENTENCES = (ValueError, TypeError, SolverError, MissingPackageError)


class Broken(AssertionError):  # noqa: N818
    """An oracle that does not hold; the message begins with its name."""


def require(holds: Any, reason: str) -> None:
    if not holds:
        raise Broken(reason)


@contextmanager
def no_warnings_of_ours() -> Iterator[None]:
    """Fail at a RuntimeWarning that our code has caused, directly or by a call of numpy or scipy."""
    found: list[str] = []

    def show(message: Any, category: Any, filename: str, lineno: int, *_: Any) -> None:
        if issubclass(category, RuntimeWarning):
            frame = sys._getframe(1)
            while frame and (frame.f_code.co_filename.startswith(LIBRARIES) or "warnings" in frame.f_code.co_filename):
                frame = frame.f_back  # type: ignore[assignment]
            if frame and frame.f_code.co_filename.startswith(OURS):
                place = Path(frame.f_code.co_filename).relative_to(ROOT)
                found.append(f"{message} ({place}:{frame.f_lineno})")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield
    require(not found, f"warning: {found[0] if found else ''}")


def unclear(error: BaseException) -> str | None:
    """Why an error is not one clear sentence, or None if it is."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    text = str(error)
    kind = f"{type(error).__name__}: {text[:300]!r}"
    ours = [f for f in frames if f.filename.startswith(OURS)]
    place = f" at {Path(ours[-1].filename).relative_to(ROOT)}:{ours[-1].lineno}" if ours else ""
    if not isinstance(error, SENTENCES):
        return f"type: {kind}{place}"
    if not _is_raised(error) or not last.filename.startswith(OURS + VALIDATION):
        return f"not a sentence of ours: {kind}{place}"
    if last.filename.startswith(OURS) and ("\n" in text or not text.strip() or len(text) > 600):
        return f"not one sentence: {kind}{place}"
    return None


def _is_raised(error: BaseException) -> bool:
    """Whether a statement ``raise`` has raised the error, and not compiled code."""
    last = error.__traceback__
    while last.tb_next:  # type: ignore[union-attr]
        last = last.tb_next  # type: ignore[union-attr]
    code = last.tb_frame.f_code.co_code  # type: ignore[union-attr]
    return code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]  # type: ignore[union-attr]


def is_refused(error: BaseException) -> bool:
    """Whether the error is one clear sentence; otherwise it is an oracle that does not hold."""
    reason = unclear(error)
    if reason:
        raise Broken(reason) from error
    return True


def check_outputs(model: Any, X: Any) -> Any:
    """Outputs at X, after checks of their shape and values."""
    found = outputs(model, X)
    n = X.num_rows if hasattr(X, "num_rows") else len(X)
    per_row = () if is_regressor(model) else (len(model.classes_),) if is_classifier(model) else found.shape[1:]
    expected = (n, *per_row)
    require(found.shape == expected, f"shape: {found.shape} instead of {expected}")
    require(found.dtype.kind == "f" and np.isfinite(found).all(), f"finite: outputs {found.ravel()[:4]}")
    if is_classifier(model):
        labels = model.predict(X)
        require(np.isin(labels, model.classes_).all() and labels.shape == (n,), "labels: not those of the classes")
        require(((found >= 0) & (found <= 1)).all(), "probabilities: outside of 0 and 1")
        require(np.abs(found.sum(axis=1) - 1).max(initial=0.0) < 1e-6, "probabilities: do not sum to 1")
    certificate = getattr(model, "certificate_", None)
    if certificate is not None:
        objective, bound = certificate.objective, certificate.bound
        require(np.isfinite(objective), f"certificate: objective {objective}")
        require(bound <= objective, f"certificate: bound {bound} above the objective")
        str(certificate)
    return found


@contextmanager
def time_limit(seconds: float = 600.0) -> Iterator[None]:
    """End the process with its stack after some seconds: compiled code may ignore any other signal.

    The first fit may compile loops for a minute, and longer on a busy machine.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def check_input(model: Any, X: Any, y: Any, s: Any = None, test: Any = None, must_fit: bool = False) -> str:
    """The sentence of a refusal, or "" after a fit; raise :class:`Broken` if an oracle does not hold."""
    with no_warnings_of_ours(), time_limit():
        try:
            fit(model, X, y, s)
        except BaseException as error:
            is_refused(error)
            require(not must_fit, f"ordinary input refused: {type(error).__name__}: {str(error)[:300]}")
            return str(error)
        try:
            check_outputs(model, X)
        except Broken:
            raise
        except BaseException as error:
            is_refused(error)
            raise Broken(f"fitted rows refused: {type(error).__name__}: {str(error)[:300]}") from error
        try:
            check_outputs(model, X if test is None else test)
        except Broken:
            raise
        except BaseException as error:
            is_refused(error)
            require(not must_fit, f"ordinary rows refused: {type(error).__name__}: {str(error)[:300]}")
            return str(error)
    return ""
