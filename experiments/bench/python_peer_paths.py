"""Paths of adelie or glmnet-rs on problems written by :mod:`experiments.bench.peers`, in a Python without admiss.

Arguments: engine, folder, tolerance, whether to write coefficients (0 or 1). Prints the CPU seconds of each fit, nan if
the engine does not reach the end of the path within its iterations, or stalls: a timer then ends the process that fits,
and another one takes the rest.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# Steps of iteratively reweighted least squares of adelie at one lambda; its default would take minutes where it stalls.
MAX_STEPS = 200
# CPU seconds after which a path has stalled, at least and per entry of its matrix: some ten times the usual.
LEAST_SECONDS, ENTRY_SECONDS = 0.5, 5e-6


# Intercepts, and coefficients by column, at each lambda: of A, y (0 or 1), penalty factors, alpha, lambdas, tolerance.
Fit = Callable[..., tuple[np.ndarray, np.ndarray]]


def main(engine: str, folder: Path, tolerance: float, write_coefficients: bool) -> None:
    """Fit the path of every job."""
    fit = {"adelie": _adelie_fit, "glmnet-rs": _glmnet_rs_fit}[engine]()
    jobs, first = json.loads((folder / "jobs.json").read_text()), 0
    while first < len(jobs):
        finished, report = os.pipe()
        if os.fork() == 0:
            # the first fit is repeated, since it loads libraries
            for attempt, k in enumerate([first, *range(first, len(jobs))]):
                seconds = _seconds(fit, folder, k, jobs[k], tolerance, write_coefficients)
                if attempt > 0:
                    print(seconds, flush=True)
                    os.write(report, b".")
            os._exit(0)
        os.close(report)
        _, status = os.wait()
        with os.fdopen(finished, "rb") as dots:
            first += len(dots.read())
        if status:
            print("nan", flush=True)
            first += 1


def _adelie_fit() -> Fit:
    import adelie  # absent where the module is only collected for its examples

    def fit(A: np.ndarray, y: np.ndarray, u: np.ndarray, alpha: float, lambdas: np.ndarray, tolerance: float) -> Any:
        options = {"tol": tolerance, "irls_tol": tolerance, "irls_max_iters": MAX_STEPS, "early_exit": False}
        problem = {"X": A, "glm": adelie.glm.binomial(y), "alpha": alpha, "penalty": u, "lmda_path": lambdas}
        path = adelie.solver.grpnet(**problem, n_threads=1, progress_bar=False, **options)
        return path.intercepts, path.betas.toarray()

    return fit


def _glmnet_rs_fit() -> Fit:
    import glmnetrs

    def fit(A: np.ndarray, y: np.ndarray, u: np.ndarray, alpha: float, lambdas: np.ndarray, tolerance: float) -> Any:
        options = {"family": "binomial", "standardize": False, "thresh": tolerance, "maxit": 10**8}
        path = glmnetrs.glmnet(A, y, alpha=alpha, lambda_=lambdas, penalty_factor=u, **options)
        return path.a0, path.beta.T

    return fit


def _seconds(fit: Fit, folder: Path, k: int, job: dict[str, Any], tolerance: float, write: bool) -> float:
    A = np.fromfile(folder / f"A{k}.bin").reshape(job["columns"], -1).T
    A = np.asarray(A, order=job["order"])
    y, u, lambdas = (np.fromfile(folder / f"{name}{k}.bin") for name in ("y", "u", "lambda"))
    signal.setitimer(signal.ITIMER_PROF, max(LEAST_SECONDS, ENTRY_SECONDS * A.size))
    start = time.thread_time()  # the timer makes the clock of the process coarse, and there is one thread
    try:
        intercepts, coefficients = fit(A, (y > 0).astype(float), u, job["alpha"], lambdas, tolerance)
    except RuntimeError:
        return float("nan")
    seconds = time.thread_time() - start
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    if len(intercepts) < len(lambdas):
        return float("nan")
    if write:
        np.column_stack([intercepts, coefficients]).tofile(folder / f"w{k}.bin")
    return seconds


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4] == "1")
