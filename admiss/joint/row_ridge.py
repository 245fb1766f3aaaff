"""The ridge of :mod:`admiss.joint.indicator_ridge` for the squared loss, with fewer rows than features.

Let A, B and t be the centred z, m and y of a training set, rows times the roots of their shares of the weight. With
P = 1 - A (A'A + alpha)^-1 A', which has the eigenvectors of AA', the solution in the space of rows is

    b = B' P^(1/2) (P^(1/2) BB' P^(1/2) + beta)^-1 P^(1/2) t,      w = A' (AA' + alpha)^-1 (t - B b),

and all decompositions are of n x n matrices.
"""

import numpy as np

from admiss.joint.indicator_ridge import (
    Cell,
    IndicatorRidge,
    Parts,
    Solutions,
    penalised_inverse,
    standardised,
    standardised_columns,
)
from formulations.arrays import FloatArray, IntArray


class RowRidge(IndicatorRidge):
    """The squared loss of a numeric target, from rows; parameters and results as in ``SquaredRidge``."""

    def __init__(
        self, X: FloatArray, y: FloatArray, s: FloatArray, held_out: list[IntArray], cells: list[Cell]
    ) -> None:
        super().__init__(X, s, held_out, cells)
        self.columns, self.target = self._columns(X), standardised(y, s)

    def _solve(self, training: Parts, cells: list[Cell], selecting: bool) -> Solutions:
        rows = np.sort(np.concatenate([self.held_out[part] for part in training]))
        d, q = self.d, self.s[rows] / self.s[rows].sum()
        zm, mean, deviation = standardised_columns(self.columns[rows], q)
        y = self.target[rows]
        level, y_level = q @ zm, q @ y
        root = np.sqrt(q)
        centred = (zm - level) * root[:, None]
        w, b = _row_solutions(centred[:, :d], centred[:, d:], (y - y_level) * root, cells)
        a = y_level - w @ level[:d] - b @ level[d:]
        return Solutions(w[:, None], b[:, None], a[:, None], mean, deviation)

    def _errors(self, coefficients: FloatArray, held: int) -> FloatArray:
        rows = self.held_out[held]
        residuals = self.target[rows, None] - self.columns[rows] @ coefficients[:, 0].T
        return np.asarray(self.s[rows] @ residuals**2)


def _row_solutions(A: FloatArray, B: FloatArray, t: FloatArray, cells: list[Cell]) -> tuple[FloatArray, FloatArray]:
    """w and b for each cell."""
    roots, U = np.linalg.eigh(A @ A.T)
    roots = np.maximum(roots, 0.0)
    K = U.T @ (B @ B.T) @ U
    w, b = np.zeros((len(cells), A.shape[1])), np.zeros((len(cells), A.shape[1]))
    for alpha in {alpha for alpha, _ in cells}:
        shrunk = penalised_inverse(roots, alpha)
        half = np.sqrt(np.maximum(1.0 - roots * shrunk, 0.0))  # P^(1/2), in the coordinates of U
        half[half < 1e-7] = 0.0  # the root of a rounded 0
        left, V = np.linalg.eigh(half[:, None] * K * half)
        unexplained = V.T @ (half * (U.T @ t))
        for i, cell in enumerate(cells):
            if cell[0] == alpha:
                b[i] = B.T @ (U @ (half * (V @ (penalised_inverse(left, cell[1]) * unexplained))))
                w[i] = A.T @ (U @ (shrunk * (U.T @ (t - B @ b[i]))))
    return w, b
