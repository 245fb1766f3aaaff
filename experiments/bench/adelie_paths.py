"""Paths of adelie on problems written by :mod:`experiments.bench.peers`, in a Python of its own without admiss.

Arguments: folder, tolerance, whether to write coefficients (0 or 1). Prints the CPU seconds of each fit, nan if adelie
does not reach the end of the path within its iterations, or stalls: a timer then ends the process that fits, and
another one takes the rest.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

# Steps of iteratively reweighted least squares at one lambda; adelie's default would take minutes where it stalls.
MAX_STEPS = 200
# CPU seconds after which a path has stalled, at least and per entry of its matrix: some ten times the usual.
LEAST_SECONDS, ENTRY_SECONDS = 0.5, 5e-6


def main(folder: Path, tolerance: float, write_coefficients: bool) -> None:
    """Fit the path of every job."""
    import adelie  # absent where the module is only collected for its examples

    jobs, first = json.loads((folder / "adelie.json").read_text()), 0
    while first < len(jobs):
        finished, report = os.pipe()
        if os.fork() == 0:
            # the first fit is repeated, since it loads libraries
            for attempt, k in enumerate([first, *range(first, len(jobs))]):
                seconds = _seconds(adelie, folder, k, jobs[k], tolerance, write_coefficients)
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


def _seconds(adelie: Any, folder: Path, k: int, job: dict[str, Any], tolerance: float, write: bool) -> float:
    A = np.asfortranarray(np.fromfile(folder / f"A{k}.bin").reshape(job["columns"], -1).T)
    y, u, lambdas = (np.fromfile(folder / f"{name}{k}.bin") for name in ("y", "u", "lambda"))
    options = {"tol": tolerance, "irls_tol": tolerance, "irls_max_iters": MAX_STEPS, "early_exit": False}
    signal.setitimer(signal.ITIMER_PROF, max(LEAST_SECONDS, ENTRY_SECONDS * A.size))
    start = time.thread_time()  # the timer makes the clock of the process coarse, and there is one thread
    loss = adelie.glm.binomial((y > 0).astype(float))
    problem = {"X": A, "glm": loss, "alpha": job["alpha"], "penalty": u, "lmda_path": lambdas}
    try:
        path = adelie.solver.grpnet(**problem, n_threads=1, progress_bar=False, **options)
    except RuntimeError:
        return float("nan")
    seconds = time.thread_time() - start
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    if write:
        np.column_stack([path.intercepts, path.betas.toarray()]).tofile(folder / f"w{k}.bin")
    return seconds if len(path.lmdas) == len(lambdas) else float("nan")


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "1")
