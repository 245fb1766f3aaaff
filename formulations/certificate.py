"""The certificate of a solution: its objective, a proven bound, and the solver.

A solution of ``min f`` is certified by a lower bound on the minimum that is independent of the solution's own
objective: ``bound <= min f <= objective``. The gap between the two is what remains unproven.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass


class SolverError(RuntimeError):
    """No solver returned a solution that could be certified."""


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
        ``"optimal"`` if the gap is closed to the tolerance of the solver, else the reason for stopping.
    solver : str
        Name of the solver.
    version : str
        Version of the solver.
    seconds : float
        Wall-clock time of the solve.

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
            "objective": f"{self.objective:.10g}",
            "bound": f"{self.bound:.10g}",
            "gap": f"{self.gap:.2g} ({share:.2g} %)",
            "status": self.status,
            "solver": f"{self.solver} {self.version}",
            "seconds": f"{self.seconds:.3g}",
        }
        return "\n".join(f"{name:<10} {value}" for name, value in rows.items())


def certify(
    objective: float, bound: float, closed: bool, status: str, solver: str, version: str, started: float
) -> Certificate:
    """Certificate of a solve since ``started``; its status is the reason for stopping if the gap is not closed."""
    reason = "optimal" if closed else "not proven to the tolerance" if status == "optimal" else status
    return Certificate(objective, min(bound, objective), reason, solver, version, time.perf_counter() - started)


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
    )
