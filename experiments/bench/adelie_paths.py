"""Paths of adelie on problems written by :mod:`experiments.bench.adelie`, in a Python of its own without admiss.

Arguments: folder, tolerance, whether to write coefficients (0 or 1). Prints the CPU seconds of each fit, nan if adelie
does not reach the end of the path within its iterations.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

# Steps of iteratively reweighted least squares at one lambda; adelie's default would take minutes where it stalls.
MAX_STEPS = 200


def main(folder: Path, tolerance: float, write_coefficients: bool) -> None:
    """Fit the path of every job."""
    import adelie  # absent where the module is only collected for its examples

    for k, job in enumerate(json.loads((folder / "adelie.json").read_text())):
        A = np.asfortranarray(np.fromfile(folder / f"A{job['fold']}.bin").reshape(job["columns"], -1).T)
        y, u, lambdas = (np.fromfile(folder / f"{name}{k}.bin") for name in ("y", "u", "lambda"))
        start = time.process_time()
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
        except RuntimeError:
            print("nan", flush=True)
            continue
        seconds = time.process_time() - start
        print(seconds if len(path.lmdas) == len(lambdas) else "nan", flush=True)
        if write_coefficients:
            np.column_stack([path.intercepts, path.betas.toarray()]).tofile(folder / f"w{k}.bin")


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "1")
