"""The empirical risk of a linear model, and its compression.

    F(A w) = sum_i q_i l(y_i, a_i' w) + offset        q_i >= 0, sum_i q_i = 1

For the squared loss the rows can be replaced by p + 1 others without changing the function: with the QR factor

    R = [R_11  z]   of the rows sqrt(q_i) (a_i, y_i),       F(A w) = |R_11 w - z|^2 + rho^2.
        [ 0  rho]

The factor is built from blocks of rows, so that the design is never held as a whole.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from formulations.losses import Array, BoolArray, Loss, Squared

# A dense array or a csr_array; scipy has no types.
Matrix = Any


@dataclass(frozen=True)
class EmpiricalRisk:
    """Data of the empirical risk.

    Attributes
    ----------
    A : array or csr_array of shape (n, p)
        Design, one column a coefficient.
    y : array of shape (n,)
        Target; -1 or 1 for the logistic loss.
    q : array of shape (n,)
        Share of each row in the risk.
    loss : Loss
    offset : float
        Constant part of the risk.
    """

    A: Matrix
    y: Array
    q: Array
    loss: Loss
    offset: float = 0.0

    def value(self, w: Array) -> float:
        """F(A w)."""
        return float(self.q @ self.loss.value(self.y, self.A @ w)) + self.offset

    def gradient(self, w: Array) -> Array:
        """The gradient of F(A w) in w."""
        return self.A.T @ (self.q * self.loss.derivative(self.y, self.A @ w))

    def hessian(self, w: Array, columns: BoolArray) -> Array:
        """The Hessian of F(A w) in the coefficients of ``columns``."""
        part = self.A[:, columns]
        weight = self.q * self.loss.curvature(self.y, self.A @ w)
        if sp.issparse(part):
            return (part.T @ part.multiply(weight[:, None])).toarray()
        return part.T @ (weight[:, None] * part)

    def column_curvature(self) -> Array:
        """An upper bound on the second derivative of the risk in each coefficient alone."""
        squares = self.A.multiply(self.A) if sp.issparse(self.A) else self.A**2
        return self.loss.largest_curvature * (squares.T @ self.q)


def compressed_squared_risk(blocks: Iterable[tuple[Matrix, Array, Array]]) -> EmpiricalRisk:
    """The squared risk in at most p + 1 rows, from blocks (A, y, q) of the rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A, y, q, w = rng.normal(size=(50, 3)), rng.normal(size=50), np.full(50, 1 / 50), np.ones(3)
    >>> risk = compressed_squared_risk([(A[:20], y[:20], q[:20]), (A[20:], y[20:], q[20:])])
    >>> risk.A.shape, bool(np.isclose(risk.value(w), np.mean((y - A @ w) ** 2)))
    ((3, 3), True)
    """
    R: Array | None = None
    for A, y, q in blocks:
        dense = A.toarray() if sp.issparse(A) else A
        rows = np.sqrt(q)[:, None] * np.column_stack([dense, y])
        R = np.asarray(np.linalg.qr(rows if R is None else np.vstack([R, rows]), mode="r"))
    if R is None:
        raise ValueError("The risk needs at least one block of rows.")
    offset = 0.0
    if R.shape[0] == R.shape[1]:
        offset = float(R[-1, -1] ** 2)
        R = R[:-1]
    return EmpiricalRisk(
        A=np.ascontiguousarray(R[:, :-1]), y=R[:, -1].copy(), q=np.ones(len(R)), loss=Squared(), offset=offset
    )
