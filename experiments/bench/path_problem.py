"""A penalised path in the form that every peer receives."""

from dataclasses import dataclass

import numpy as np

from admiss.linear.grid_paths import PATH_TOLERANCE
from formulations.erm.logistic_path import logistic_path
from formulations.erm.quadratic_path import quadratic_path
from formulations.losses import Logistic, Squared

# Required accuracy of a peer, relative to the objective.
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
        A = np.asfortranarray(self.A - mean)
        v1, v2 = self.alpha * self.u, (1 - self.alpha) * self.u
        if loss == "squared":
            H, b = 2 * A.T @ A / len(A), 2 * A.T @ (self.y - self.y.mean()) / len(A)
            W = quadratic_path(H, b, v1, v2, self.lambdas).w
            return self.y.mean() - W @ mean, W
        q = np.full(len(A), 1 / len(A))
        path = logistic_path(A, np.ones((len(A), 1)), self.y, q, v1, v2, self.lambdas, tolerance)
        return path.free[:, 0] - path.w @ mean, path.w
