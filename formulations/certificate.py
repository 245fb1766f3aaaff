"""The certificate of a solution: its objective, a proven bound, and the solver.

A solution of ``min f`` is certified by a lower bound on the minimum that is independent of the solution's own
objective: ``bound <= min f <= objective``. The gap between the two is what remains unproven. :func:`certify` is the one
place where a solution is called optimal: if the gap is within the stated tolerance, and the bound holds for exact
arithmetic, not only up to the rounding of a solver. :func:`total` calls a sum optimal if all of its parts are;
elsewhere statuses are only lowered.
"""

import io
import json
import math
import os
import time
import uuid
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from formulations.arrays import FloatArray

# A constraint of a program counts as satisfied up to this share of its size, the tolerance of most solvers.
FEASIBLE = 1e-6
# Status of a gap that is closed only by the floating-point bound of a solver.
SOLVERS_BOUND = "solver's bound"
# Status of a gap that is within the tolerance, or would be, if numbers were not rounded to doubles.
ROUNDING = "rounding errors exceed the tolerance"
# Status of a gap that remains although the solver has finished.
NOT_CLOSED = "not proven to the tolerance"
# A fit is optimal if its gap is below this share of its objective, or of the risk of the null model: six digits.
GAP_TOLERANCE = 1e-6
# Names of the parts of a file that are not arrays of the evidence.
HEADER, DUAL = "certificate", "dual"


class SolverError(RuntimeError):
    """No solver returned a solution that could be certified."""


class Clock:
    """Seconds since some moment, without those during which the clock was stopped.

    ``formulations.jit`` stops it while loops are compiled, so the first fit on a machine takes as many seconds as later
    ones, and has as many within a time limit. There is one clock for all threads: none sees it go backwards.

    Examples
    --------
    >>> stopped = Clock()
    >>> stopped.stop()
    >>> stopped() == stopped()
    True
    """

    def __init__(self) -> None:
        # When it was stopped, if it is, and the seconds of earlier stops: one tuple, so that threads read both at once.
        self._state: tuple[float | None, float] = None, 0.0

    def __call__(self) -> float:
        stopped, excluded = self._state
        return (time.perf_counter() if stopped is None else stopped) - excluded

    def stop(self) -> None:
        """Stand still until :meth:`resume`."""
        self._state = time.perf_counter(), self._state[1]

    def resume(self) -> None:
        """Go on from the time of :meth:`stop`."""
        self._state = None, time.perf_counter() - self()


# The clock of all certificates and time limits.
clock = Clock()


@dataclass(frozen=True)
class Certificate:
    """Objective of a solution and the proof of its quality.

    Attributes
    ----------
    objective : float
        Value of the solution.
    bound : float
        Proven lower bound on the minimum, or ``-inf``.
    status : str
        ``"optimal"`` if the gap is within the tolerance, ``"solver's bound"`` if it is so only by the floating-point
        bound of a solver, else the reason for stopping.
    solver : str
        Name of the solver.
    version : str
        Version of the solver.
    seconds : float
        Wall-clock time of the solve, without that of compiling loops, which is needed once per machine.
    tolerance : float
        Largest gap that counts as closed.
    dual : array of shape (n,), optional
        The dual point of the bound, one number per row, if there is one.
    evidence : dict, optional
        Settings and solution of a fitted model in plain values and arrays.

    Examples
    --------
    >>> certificate = Certificate(2.0, 1.5, "time limit", "HIGHS", "1.8", 60.0)
    >>> certificate.gap, certificate.relative_gap
    (0.5, 0.25)
    >>> print(certificate)
    objective  2
    bound      1.5
    gap        0.5 (25 %)
    status     time limit
    solver     HIGHS 1.8
    seconds    60
    """

    objective: float
    bound: float
    status: str
    solver: str
    version: str
    seconds: float
    tolerance: float = 0.0
    dual: FloatArray | None = field(default=None, repr=False, compare=False)
    evidence: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    def in_units(self, factor: float, unit: float) -> "Certificate":
        """The certificate of costs multiplied by ``factor`` for targets multiplied by ``unit``."""
        dual = None if self.dual is None else self.dual * (factor / unit)
        numbers = {name: getattr(self, name) * factor for name in ("objective", "bound", "tolerance")}
        return replace(self, **numbers, dual=dual)

    @property
    def gap(self) -> float:
        """Objective minus bound, at least 0."""
        return max(0.0, self.objective - self.bound)

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective; 0 if both are 0."""
        if self.gap == 0.0:
            return 0.0
        return self.gap / abs(self.objective) if self.objective else math.inf

    def __str__(self) -> str:
        share = 100 * self.relative_gap
        rows = {
            "objective": f"{self.objective:.6g}",
            "bound": f"{self.bound:.6g}" if math.isfinite(self.bound) else "none",
            "gap": f"{self.gap:.2g} ({share:.2g} %)" if math.isfinite(self.gap) else "unknown",
            "status": self.status,
            "solver": f"{self.solver} {self.version}",
            "seconds": f"{self.seconds:.3g}",
        }
        return "\n".join(f"{name:<10} {value}" for name, value in rows.items())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificate of a fitted model with all that its proof needs, except the data, to one file.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> certificate = Certificate(2.0, 2.0, "optimal", "", "", 0.1, evidence={"program": {"ridge": 1.0}})
        >>> with TemporaryDirectory() as folder:
        ...     certificate.save(Path(folder, "proof.npz"))
        ...     Certificate.load(Path(folder, "proof.npz")).evidence
        {'program': {'ridge': 1.0}}
        """
        if self.evidence is None:
            raise ValueError(
                "Only the certificate_ of a model that was fitted to rows can be saved: this one has no evidence."
            )
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        evidence, arrays = dict(self.evidence), dict(self.evidence.get("arrays", {}))
        evidence.pop("arrays", None)
        if self.dual is not None:
            arrays[DUAL] = self.dual
        text = json.dumps(values | {"dual": None, "evidence": evidence})
        content = io.BytesIO()
        arrays[HEADER] = np.frombuffer(text.encode(), dtype=np.uint8)
        np.savez_compressed(content, **arrays)
        target = Path(path)
        unfinished = target.with_name(f".{uuid.uuid4().hex}.part")
        try:
            unfinished.write_bytes(content.getvalue())
            os.replace(unfinished, target)
        finally:
            unfinished.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Certificate":
        """Read a certificate that :meth:`save` has written."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            values = json.loads(arrays.pop(HEADER).tobytes())
            dual = arrays.pop(DUAL, None)
            evidence = values["evidence"] | ({"arrays": arrays} if arrays else {})
            return cls(**values | {"dual": dual, "evidence": evidence})
        except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"{path} is not a certificate written by Certificate.save, or it is damaged.") from error


def plain_value(value: Any) -> Any:
    """A value that JSON can hold: a number, text, pairs of a dictionary, or the text of any other object."""
    if isinstance(value, dict):
        return [[plain_value(key), plain_value(own)] for key, own in value.items()]
    value = value.item() if isinstance(value, np.generic) else value
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def gap_tolerance(objective: float, null_risk: float) -> float:
    """Largest gap of an optimal fit: 1e-6 of its objective, or of the risk of the null model if that is larger.

    The risk of the null model is that of :func:`formulations.erm.risk.null_risk`, in the loss of the fit.
    """
    return GAP_TOLERANCE * max(abs(objective), null_risk)


def certify(
    objective: float,
    bound: float,
    tolerance: float,
    reason: str,
    solver: str,
    version: str,
    started: float,
    *,
    rigorous: bool = True,
    dual: FloatArray | None = None,
) -> Certificate:
    """Certificate of a solve since ``started``; if the gap is not closed, its status is the reason for stopping.

    ``started`` is a time of ``clock``, which stands still while loops are compiled.
    A bound above the objective by more than the tolerance is wrong, and given up.

    Examples
    --------
    >>> certify(2.0, 2.0 - 1e-12, 1e-9, "time limit", "HIGHS", "1.8", clock()).status
    'optimal'
    """
    objective, bound, tolerance = float(objective), float(bound), float(tolerance)
    if not (math.isfinite(objective) and math.isfinite(tolerance)) or math.isnan(bound):
        bound, status = -math.inf, "not proven: the objective is not a finite number"
    elif bound > objective + tolerance:
        bound, status = -math.inf, "not proven: the bound contradicts the solution"
    elif objective - bound <= tolerance:
        status = "optimal" if rigorous else SOLVERS_BOUND
    else:
        status = NOT_CLOSED if reason == "optimal" else reason
    seconds = clock() - started
    return Certificate(objective, min(bound, objective), status, solver, version, seconds, tolerance, dual)


def total(certificates: Sequence[Certificate]) -> Certificate:
    """Certificate of a sum of separate programs.

    Objectives, bounds and seconds add up; the sum is optimal if every part is.

    Examples
    --------
    >>> part = Certificate(1.0, 1.0, "optimal", "CLARABEL", "0.11", 0.5)
    >>> total([part, part]).objective
    2.0
    """
    if len(certificates) == 1:
        return certificates[0]
    unproven = [c.status for c in certificates if c.status != "optimal"]
    return Certificate(
        objective=sum(c.objective for c in certificates),
        bound=sum(c.bound for c in certificates),
        status=unproven[0] if unproven else "optimal",
        solver=certificates[0].solver,
        version=certificates[0].version,
        seconds=sum(c.seconds for c in certificates),
        tolerance=sum(c.tolerance for c in certificates),
    )
