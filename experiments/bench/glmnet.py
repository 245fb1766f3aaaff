"""R's glmnet as a peer.

It divides y by its standard deviation sigma, which changes the mix of l1 and l2: it receives y / sigma, with alpha and
lambda that compensate. It rescales penalty factors to sum to p, and uses half the squared loss.
"""

import shutil
import subprocess
from pathlib import Path

import numpy as np

from experiments.bench.path_problem import ACCURACY, PathProblem

THRESHOLDS = (1e-7, 3e-8, 1e-8, 3e-9, 1e-9, 3e-10, 1e-10, 1e-11, 1e-12)


class Glmnet:
    """R's glmnet on path problems."""

    def __init__(self, folder: Path, loss: str) -> None:
        self.folder, self.loss = folder, loss

    def seconds(self, problems: list[PathProblem], threshold: float, coefficients: bool = False) -> np.ndarray:
        """CPU seconds of each path."""
        rows = ["job,fold,columns,alpha"]
        for job, problem in enumerate(problems):
            alpha, lambdas, y = self._in_its_terms(problem)
            self._write(f"A{job}", np.asfortranarray(problem.A).ravel(order="F"))
            self._write(f"y{job}", y)
            self._write(f"u{job}", problem.u)
            self._write(f"lambda{job}", lambdas)
            rows.append(f"{job},{job},{problem.A.shape[1]},{float(alpha)!r}")
        (self.folder / "jobs.csv").write_text("\n".join(rows) + "\n")
        script = Path(__file__).with_name("glmnet_paths.R")
        family = "gaussian" if self.loss == "squared" else "binomial"
        command = ["Rscript", str(script), str(self.folder), family, repr(threshold), str(int(coefficients))]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return np.array([float(line) for line in output.split()])

    def loosest(self, problems: list[PathProblem]) -> tuple[float, float, float]:
        """The loosest sufficiently accurate threshold, its relative error, and the mean CPU seconds of a path."""
        exact = [p.objective(self.loss, *p.fitted_by_engine(self.loss, 1e-9)) for p in problems]
        for threshold in THRESHOLDS:
            seconds = self.seconds(problems, threshold, coefficients=True)
            errors = []
            for job, (problem, best) in enumerate(zip(problems, exact, strict=True)):
                raw = np.fromfile(self.folder / f"w{job}.bin").reshape(len(problem.lambdas), -1)
                sigma, mean = self._units(problem)
                b, W = raw[:, 0] * sigma + mean, raw[:, 1:] * sigma
                errors.append(np.max(problem.objective(self.loss, b, W) / best - 1))
            if max(errors) <= ACCURACY:
                break
        return threshold, float(max(errors)), float(seconds.mean())

    def _in_its_terms(self, problem: PathProblem) -> tuple[float, np.ndarray, np.ndarray]:
        """alpha, lambda and y for glmnet, see the module docstring."""
        share = problem.u.sum() / len(problem.u)
        if self.loss == "logistic":
            return problem.alpha, share * problem.lambdas, (problem.y > 0).astype(float)
        sigma, mean = self._units(problem)
        mix = problem.alpha / sigma + 1 - problem.alpha
        return problem.alpha / sigma / mix, share * problem.lambdas / 2 * mix, (problem.y - mean) / sigma

    def _units(self, problem: PathProblem) -> tuple[float, float]:
        if self.loss == "logistic":
            return 1.0, 0.0
        return float(problem.y.std()), float(problem.y.mean())

    def _write(self, name: str, values: np.ndarray) -> None:
        np.asarray(values, dtype=float).tofile(self.folder / f"{name}.bin")


def glmnet_version() -> str:
    """Version of glmnet, or how to install it."""
    if not shutil.which("Rscript"):
        return "glmnet not installed: its columns are empty (Debian packages r-base-core and r-cran-glmnet)"
    code = 'cat("glmnet", as.character(packageVersion("glmnet")), "on", R.version.string)'
    return subprocess.run(["Rscript", "-e", code], capture_output=True, text=True).stdout or "glmnet not installed"
