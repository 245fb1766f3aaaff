"""Paths of adelie on problems written by :mod:`experiments.bench.adelie`, in a Python of its own without admiss.

Arguments: folder, tolerance, whether to write coefficients (0 or 1), the first job. Prints the CPU seconds of each fit,
nan if adelie does not reach the end of the path within its iterations. The first job is fitted twice, since it loads
libraries. A fit that takes more than PATH_SECONDS ends the process, by the signal SIGXCPU.
"""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

# Steps of iteratively reweighted least squares at one lambda; adelie's default would take minutes where it stalls.
MAX_STEPS = 200
# CPU seconds of a fit: within one step it may stall as well.
PATH_SECONDS = 5


def main(folder: Path, tolerance: float, write_coefficients: bool, first: int) -> None:
    """Fit the path of every job from the first."""
    import adelie  # absent where the module is only collected for its examples

    jobs = json.loads((folder / "adelie.json").read_text())
    for attempt, k in enumerate([first, *range(first, len(jobs))]):
        job = jobs[k]
        A = np.asfortranarray(np.fromfile(folder / f"A{job['fold']}.bin").reshape(job["columns"], -1).T)
        y, u, lambdas = (np.fromfile(folder / f"{name}{k}.bin") for name in ("y", "u", "lambda"))
        start = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(start) + PATH_SECONDS + 1, resource.RLIM_INFINITY))
        loss = adelie.glm.binomial((y > 0).astype(float))
        options = {"tol": tolerance, "irls_tol": tolerance, "irls_max_iters": MAX_STEPS, "early_exit": False}
        try:
            path = adelie.solver.grpnet(
                X=A,
                glm=loss,
                alpha=job["alpha"],
                penalty=u,
                lmda_path=lambdas,
                n_threads=1,
                progress_bar=False,
                **options,
            )
            seconds = time.process_time() - start if len(path.lmdas) == len(lambdas) else float("nan")
        except RuntimeError:
            seconds = float("nan")
        if attempt > 0:
            print(seconds, flush=True)
        if write_coefficients and seconds == seconds:
            np.column_stack([path.intercepts, path.betas.toarray()]).tofile(folder / f"w{k}.bin")


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "1", int(sys.argv[4]))
