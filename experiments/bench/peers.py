"""Penalised paths in the form that every engine receives, and the peers that fit them: glmnet, adelie and glmnet-rs.

R's *glmnet* divides y by its standard deviation sigma, which changes the mix of l1 and l2: it receives y / sigma, with
alpha and lambda that compensate. It rescales penalty factors to sum to p, and uses half the squared loss.

*adelie* (C++, group elastic net) and *glmnet-rs* (the coordinate descent of glmnet in Rust, in its terms) fit logistic
paths here. adelie asks for numpy < 2, so that they run in an environment of their own, which is made by

    python -m venv .adelie && .adelie/bin/pip install adelie glmnet-rs "numpy<2"

and found there, or by the path of its Python in the environment variable ADELIE_PYTHON. The objective of adelie is that
of the project, in the same units. Without a peer the benchmark runs without it, and says so.
"""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from admiss.linear.grid_paths import PATH_TOLERANCE
from formulations.erm.logistic_path import logistic_path
from formulations.erm.quadratic_path import quadratic_path
from formulations.losses import Logistic, Squared

# Peers in a Python of their own, and the modules of these.
PYTHON_PEERS = {"adelie": "adelie", "glmnet-rs": "glmnetrs"}
# Required accuracy of a peer, relative to the objective: that of the fits of admiss.
ACCURACY = 1e-6


@dataclass(frozen=True)
class PathProblem:
    """One path: A without intercept column, rows of equal weight."""

    fold: int
    A: np.ndarray
    y: np.ndarray
    u: np.ndarray
    alpha: float
    lambdas: np.ndarray

    def objective(self, loss: str, b: np.ndarray, W: np.ndarray) -> np.ndarray:
        """The objective at each lambda."""
        z = self.A @ W.T + b
        kind = Squared() if loss == "squared" else Logistic()
        risk = kind.value(self.y[:, None], z).mean(axis=0)
        return risk + self.lambdas * (self.alpha * np.abs(W) @ self.u + (1 - self.alpha) / 2 * W**2 @ self.u)

    def fitted_by_engine(self, loss: str, tolerance: float = PATH_TOLERANCE) -> tuple[np.ndarray, np.ndarray]:
        """Intercepts and coefficients of the path."""
        mean = self.A.mean(axis=0)
        if loss == "squared":
            A = np.asfortranarray(self.A - mean)
            v1, v2 = self.alpha * self.u, (1 - self.alpha) * self.u
            H, b = 2 * A.T @ A / len(A), 2 * A.T @ (self.y - self.y.mean()) / len(A)
            W = quadratic_path(H, b, v1, v2, self.lambdas).w
            return self.y.mean() - W @ mean, W
        A = np.empty((len(self.A), len(mean) + 1), order="F")
        A[:, 0], A[:, 1:] = 1.0, self.A - mean
        u, q = np.insert(self.u, 0, 0.0), np.full(len(A), 1 / len(A))
        v1, v2 = self.alpha * u, (1 - self.alpha) * u
        path = logistic_path(A, 1, self.y, q, v1, v2, self.lambdas, tolerance)
        return path.w[:, 0] - path.w[:, 1:] @ mean, path.w[:, 1:]


class Peer:
    """Another engine: problems are written to a folder, where it leaves the coefficients of each."""

    tolerances: tuple[float, ...]

    def __init__(self, folder: Path, loss: str) -> None:
        self.folder = folder
        self.loss = loss

    def seconds(self, problems: list[PathProblem], tolerance: float, coefficients: bool = False) -> np.ndarray:
        """CPU seconds of each path, NaN if it is not finished."""
        jobs = []
        for job, problem in enumerate(problems):
            alpha, lambdas, y = self.in_its_terms(problem)
            arrays = {"A": problem.A.T, "y": y, "u": problem.u, "lambda": lambdas}
            for name, values in arrays.items():
                np.ascontiguousarray(values, dtype=float).tofile(self.folder / f"{name}{job}.bin")
            jobs.append({"job": job, "columns": problem.A.shape[1], "alpha": float(alpha)})
        command = self.command(jobs, tolerance, coefficients)
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return np.array([float(line) for line in output.split()])

    def loosest(self, problems: list[PathProblem]) -> tuple[float, float, float]:
        """The loosest sufficiently accurate tolerance, its relative error, and the mean CPU seconds of a path."""
        exact = [p.objective(self.loss, *p.fitted_by_engine(self.loss, 1e-9)) for p in problems]
        for tolerance in self.tolerances:
            seconds = self.seconds(problems, tolerance, coefficients=True)
            errors = [0.0]
            for job, (problem, best) in enumerate(zip(problems, exact, strict=True)):
                if np.isfinite(seconds[job]):
                    raw = np.fromfile(self.folder / f"w{job}.bin").reshape(len(problem.lambdas), -1)
                    b, W = self.in_our_terms(problem, raw)
                    errors.append(float(np.max(problem.objective(self.loss, b, W) / best - 1)))
            if max(errors) <= ACCURACY:
                break
        return tolerance, max(errors), float(np.nanmean(seconds))

    def in_its_terms(self, problem: PathProblem) -> tuple[float, np.ndarray, np.ndarray]:
        """alpha, lambda and y of the peer."""
        return problem.alpha, problem.lambdas, problem.y

    def in_our_terms(self, problem: PathProblem, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Intercepts and coefficients from those of the peer."""
        return raw[:, 0], raw[:, 1:]

    def command(self, jobs: list[dict[str, Any]], tolerance: float, coefficients: bool) -> list[str]:
        """Write the list of jobs, and return the command that fits them."""
        raise NotImplementedError


class Glmnet(Peer):
    """R's glmnet."""

    tolerances = (1e-7, 3e-8, 1e-8, 3e-9, 1e-9, 3e-10, 1e-10, 1e-11, 1e-12)

    def in_its_terms(self, problem: PathProblem) -> tuple[float, np.ndarray, np.ndarray]:
        share = problem.u.sum() / len(problem.u)
        if self.loss == "logistic":
            return problem.alpha, share * problem.lambdas, (problem.y > 0).astype(float)
        sigma, mean = problem.y.std(), problem.y.mean()
        mix = problem.alpha / sigma + 1 - problem.alpha
        return problem.alpha / sigma / mix, share * problem.lambdas / 2 * mix, (problem.y - mean) / sigma

    def in_our_terms(self, problem: PathProblem, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.loss == "logistic":
            return raw[:, 0], raw[:, 1:]
        sigma = problem.y.std()
        return raw[:, 0] * sigma + problem.y.mean(), raw[:, 1:] * sigma

    def command(self, jobs: list[dict[str, Any]], tolerance: float, coefficients: bool) -> list[str]:
        rows = [f"{job['job']},{job['columns']},{job['alpha']!r}" for job in jobs]
        (self.folder / "jobs.csv").write_text("\n".join(["job,columns,alpha", *rows, ""]))
        script = str(Path(__file__).with_name("glmnet_paths.R"))
        family = "gaussian" if self.loss == "squared" else "binomial"
        return ["Rscript", script, str(self.folder), family, repr(tolerance), str(int(coefficients))]


class PythonPeer(Peer):
    """A peer on logistic paths in the Python of :func:`adelie_python`; ``order`` is that of the matrix it takes."""

    engine: str
    order: str

    def command(self, jobs: list[dict[str, Any]], tolerance: float, coefficients: bool) -> list[str]:
        jobs = [job | {"order": self.order} for job in jobs]
        (self.folder / "jobs.json").write_text(json.dumps(jobs))
        script = str(Path(__file__).with_name("python_peer_paths.py"))
        # isolated: the modules of this folder are not for a Python without admiss
        python = [str(adelie_python()), "-I", script]
        return [*python, self.engine, str(self.folder), repr(tolerance), str(int(coefficients))]


class Adelie(PythonPeer):
    """adelie."""

    engine = "adelie"
    order = "F"
    tolerances = (1e-7, 1e-8, 1e-9, 1e-10, 1e-12)


class GlmnetRs(PythonPeer):
    """glmnet-rs, in the terms of glmnet."""

    engine = "glmnet-rs"
    order = "C"
    tolerances = Glmnet.tolerances

    def in_its_terms(self, problem: PathProblem) -> tuple[float, np.ndarray, np.ndarray]:
        return problem.alpha, problem.u.sum() / len(problem.u) * problem.lambdas, problem.y


def logistic_peers(folder: Path) -> dict[str, Peer]:
    """The peers that are installed, for logistic paths."""
    peers: dict[str, Peer] = {}
    if shutil.which("Rscript"):
        peers["glmnet"] = Glmnet(folder, "logistic")
    for peer in (Adelie, GlmnetRs):
        if python_has(PYTHON_PEERS[peer.engine]):
            peers[peer.engine] = peer(folder, "logistic")
    return peers


def python_has(module: str) -> bool:
    """Whether the Python of the peers exists and has a module."""
    python = adelie_python()
    return (
        python is not None and subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0
    )


def adelie_python() -> str | None:
    """The Python that has adelie, if there is one."""
    return shutil.which(os.environ.get("ADELIE_PYTHON", ".adelie/bin/python"))


def python_peer_versions() -> str:
    """Versions of adelie and glmnet-rs, or how to install them."""
    python = adelie_python()
    if python is None:
        return 'adelie not installed: python -m venv .adelie && .adelie/bin/pip install adelie glmnet-rs "numpy<2"'
    code = "from importlib.metadata import version; print(*[f'{p} {version(p)}' for p in %r], sep=', ', end='')"
    packages = [name for name, module in PYTHON_PEERS.items() if python_has(module)]
    return subprocess.run([python, "-c", code % [*packages, "numpy"]], capture_output=True, text=True).stdout


def glmnet_version() -> str:
    """Version of glmnet, or how to install it."""
    if not shutil.which("Rscript"):
        return "glmnet not installed: its columns are empty (Debian packages r-base-core and r-cran-glmnet)"
    code = 'cat("glmnet", as.character(packageVersion("glmnet")), "on", R.version.string)'
    return subprocess.run(["Rscript", "-e", code], capture_output=True, text=True).stdout or "glmnet not installed"
