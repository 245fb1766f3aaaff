"""adelie (C++, group elastic net) as a peer for logistic paths.

It asks for numpy < 2, so that it runs in an environment of its own, which is made by

    python -m venv .adelie && .adelie/bin/pip install adelie "numpy<2"

and found there, or by the path of its Python in the environment variable ADELIE_PYTHON. Without it the benchmark runs
without this peer, and says so. Its objective is the one of the project, in the same units.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bench.path_problem import ACCURACY, PathProblem

TOLERANCES = (1e-7, 1e-8, 1e-9, 1e-10, 1e-12)


def adelie_python() -> str | None:
    """The Python that has adelie, if there is one."""
    return shutil.which(os.environ.get("ADELIE_PYTHON", ".adelie/bin/python"))


def adelie_version() -> str:
    """Version of adelie, or how to install it."""
    python = adelie_python()
    if python is None:
        return 'adelie not installed: python -m venv .adelie && .adelie/bin/pip install adelie "numpy<2"'
    code = "import adelie, numpy; print('adelie', adelie.__version__, 'with numpy', numpy.__version__, end='')"
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout or "adelie does not start"


class Adelie:
    """adelie on path problems."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.python = folder, python

    def seconds(self, problems: list[PathProblem], tolerance: float, coefficients: bool = False) -> np.ndarray:
        """CPU seconds of each path, NaN if it is not finished."""
        jobs: list[dict[str, Any]] = []
        for k, problem in enumerate(problems):
            if not any(job["fold"] == problem.fold for job in jobs):
                np.ascontiguousarray(problem.A.T).tofile(self.folder / f"A{problem.fold}.bin")
            for name, values in (("y", problem.y), ("u", problem.u), ("lambda", problem.lambdas)):
                np.asarray(values, dtype=float).tofile(self.folder / f"{name}{k}.bin")
            jobs.append({"fold": problem.fold, "columns": problem.A.shape[1], "alpha": float(problem.alpha)})
        (self.folder / "adelie.json").write_text(json.dumps(jobs))
        script = str(Path(__file__).with_name("adelie_paths.py"))
        # isolated: this module, next to the script, has the name of the package
        command = [self.python, "-I", script, str(self.folder), repr(tolerance), str(int(coefficients))]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return np.array([float(line) for line in output.split()])

    def loosest(self, problems: list[PathProblem]) -> tuple[float, float, float]:
        """The loosest sufficiently accurate tolerance, its relative error, and the mean CPU seconds of a path."""
        exact = [p.objective("logistic", *p.fitted_by_engine("logistic", 1e-9)) for p in problems]
        for tolerance in TOLERANCES:
            seconds = self.seconds(problems, tolerance, coefficients=True)
            errors = [0.0]
            for k, (problem, best) in enumerate(zip(problems, exact, strict=True)):
                if np.isfinite(seconds[k]):
                    raw = np.fromfile(self.folder / f"w{k}.bin").reshape(len(problem.lambdas), -1)
                    errors.append(float(np.max(problem.objective("logistic", raw[:, 0], raw[:, 1:]) / best - 1)))
            if max(errors) <= ACCURACY:
                break
        return tolerance, max(errors), float(np.nanmean(seconds))
