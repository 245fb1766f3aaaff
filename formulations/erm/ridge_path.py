"""Ridge paths on sufficient statistics, to rounding error: one reduction for all lambdas.

    minimise over w   w'H w / 2 - b'w + lambda sum_j v_j w_j^2 / 2        for each lambda

with H positive semidefinite and v >= 0. Coefficients f without penalty (v_j = 0) are eliminated,
w_f = H_ff^+ (b_f - H_fk w_k), which leaves the others with the Schur complement of H and with b_k - H_kf H_ff^+ b_f.
With w_k = u / sqrt(v_k) every penalty is lambda u_j^2 / 2, and u solves (G + lambda) u = g, with G and g the quadratic
in these units.

*Reduction.* An orthogonal Q makes a matrix tridiagonal, Q'G Q = T, in a third of the time of its eigenvectors. Then
u = Q (T + lambda)^-1 Q'g, and the systems of all lambdas are solved in time that is linear in their size.

*Few rows.* If R with H = R'R and b = R't has fewer rows than columns, T is that of the smaller matrix M M',
M = R diag(v)^-1/2, and

    u = M'Q (T + lambda)^-1 Q't.

For any other g, u = [g - M'Q (T + lambda)^-1 Q'M g] / lambda, which loses digits where lambda is small.

Penalties that differ by a factor t_g on each group g of columns share the terms of
M M' = sum_g R_g diag(v_g)^-1 R_g' / t_g.

Residuals are those of the stated problem, and are solved for in the same way until they are rounding. Where the
conditions are not met, the solutions are those of :mod:`formulations.erm.quadratic_path`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from formulations.arrays import FloatArray, IntArray
from formulations.erm.active_set import CONDITION_TOLERANCE
from formulations.erm.quadratic_path import Path, quadratic_path

# Residuals, as a share of the largest |b|, that are not refined: at 930 columns most fits of a path are below it at
# once, and held-out losses differ by 4e-11 at most from those solved to rounding error.
ROUNDED = 1e-12
# Columns that the routines of LAPACK treat as one block.
BLOCK = 64


class Tridiagonal(NamedTuple):
    """Q'G Q = T of a symmetric G.

    Attributes
    ----------
    diagonal, off_diagonal : arrays of shape (r,) and (r - 1,)
    reflectors, factors : arrays of shape (r - 1, r - 1) and (r - 1,)
        Q, which leaves the first coordinate as it is.
    """

    diagonal: FloatArray
    off_diagonal: FloatArray
    reflectors: FloatArray
    factors: FloatArray

    @classmethod
    def of(cls, G: FloatArray) -> "Tridiagonal":
        """Reduce G."""
        r = len(G)
        if r < 2:
            return cls(np.diag(G).copy(), np.zeros(0), np.zeros((0, 0)), np.zeros(0))
        reduced, diagonal, off_diagonal, factors, _ = lapack.dsytrd(G, lower=1, lwork=BLOCK * r)
        return cls(diagonal, off_diagonal, np.asfortranarray(reduced[1:, :-1]), factors)

    def solve(self, B: FloatArray, lambdas: FloatArray) -> FloatArray:
        """(G + lambda)^-1 b for each lambda, with b a row of B, one row for each lambda or one for all."""
        r, n = len(self.diagonal), len(lambdas)
        if r < 2:
            return np.asarray(B / (self.diagonal + lambdas[:, None]))
        # one system for all lambdas, whose blocks are not coupled
        diagonal = (self.diagonal + lambdas[:, None]).ravel()
        off_diagonal = np.tile(np.append(self.off_diagonal, 0.0), n)[:-1]
        rotated = np.broadcast_to(self._rotated(B, "T"), (n, r)).ravel()
        *_, solution, info = lapack.dgtsv(off_diagonal, diagonal, off_diagonal, rotated)
        return self._rotated(solution.reshape(n, r), "N") if info == 0 else np.full((n, r), np.nan)

    def _rotated(self, B: FloatArray, transposed: str) -> FloatArray:
        """The rows of B times Q, or times Q' for "T"."""
        columns = np.asfortranarray(B[:, 1:].T)
        turned, *_ = lapack.dormqr("L", transposed, self.reflectors, self.factors, columns, BLOCK * columns.shape[1])
        return np.hstack([B[:, :1], turned.T])


@dataclass(frozen=True)
class FewRows:
    """Rows R with H = R'R and b = R't, fewer than the columns, and what several penalties share.

    Attributes
    ----------
    R, t : arrays of shape (n, p) and (n,)
    v : array of shape (p,)
        One of the penalties.
    groups : list of int arrays
        Groups of columns on which all penalties are multiples of v; empty if nothing is shared.
    sums : list of arrays of shape (n, n)
        R_g diag(v_g)^-1 R_g' for each group.
    """

    R: FloatArray
    t: FloatArray
    v: FloatArray
    groups: list[IntArray]
    sums: list[FloatArray]

    @classmethod
    def of(cls, R: FloatArray, t: FloatArray, penalties: Sequence[FloatArray]) -> "FewRows":
        """Sum over the groups of the positive penalties."""
        positive = np.array([v for v in penalties if np.all(v > 0)])
        if len(positive) < 2:
            return cls(R, t, np.zeros(R.shape[1]), [], [])
        v, ratios = positive[0], np.round(positive / positive[0], 12)
        distinct, group_of = np.unique(ratios, axis=1, return_inverse=True)
        if distinct.shape[1] > len(positive):
            return cls(R, t, v, [], [])
        groups = [np.flatnonzero(group_of.ravel() == g) for g in range(distinct.shape[1])]
        halves = [R[:, g] / np.sqrt(v[g]) for g in groups]
        return cls(R, t, v, groups, [half @ half.T for half in halves])

    def gram(self, M: FloatArray, v: FloatArray) -> FloatArray:
        """M M' with M = R diag(v)^-1/2, for one of the penalties."""
        if not self.groups:
            return M @ M.T
        total = np.zeros((len(M), len(M)))
        for g, part in zip(self.groups, self.sums, strict=True):
            total += part * (self.v[g[0]] / v[g[0]])
        return total


@dataclass(frozen=True)
class RidgeProblem:
    """The ridge problem of the module, reduced.

    Attributes
    ----------
    H, b, v : arrays of shape (p, p), (p,) and (p,)
    k, f : int arrays
        Coefficients with and without penalty.
    unit : array of shape (len(k),)
        1 / sqrt(v_k).
    inverse, response : arrays of shape (len(f), len(f)) and (len(f), len(k))
        H_ff^+ and H_ff^+ H_fk.
    M, t : arrays of shape (n, len(k)) and (n,), optional
        Of the rows, if they are fewer than the columns.
    reduced : Tridiagonal
        That of M M', or of G.

    Examples
    --------
    >>> H, b = np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([4.0, -1.0])
    >>> RidgeProblem.of(H, b, np.array([1.0, 0.0])).path(np.array([2.0, 0.5])).w
    array([[ 1. , -0.5],
           [ 1.6, -0.5]])
    """

    H: FloatArray
    b: FloatArray
    v: FloatArray
    k: IntArray
    f: IntArray
    unit: FloatArray
    inverse: FloatArray
    response: FloatArray
    M: FloatArray | None
    t: FloatArray | None
    reduced: Tridiagonal

    @classmethod
    def of(cls, H: FloatArray, b: FloatArray, v: FloatArray, rows: FewRows | None = None) -> "RidgeProblem":
        """Eliminate and reduce, by the rows if they are known and fewer than the columns."""
        k = np.flatnonzero(v > 0)
        f = np.flatnonzero(v <= 0)
        unit = 1.0 / np.sqrt(v[k])
        inverse = np.asarray(np.linalg.pinv(H[np.ix_(f, f)], hermitian=True))
        response = inverse @ H[np.ix_(f, k)]
        if rows is not None and len(f) == 0:
            M = rows.R * unit
            return cls(H, b, v, k, f, unit, inverse, response, M, rows.t, Tridiagonal.of(rows.gram(M, v)))
        G = (H[np.ix_(k, k)] - H[np.ix_(k, f)] @ response if len(f) else H) * unit
        G *= unit[:, None]
        return cls(H, b, v, k, f, unit, inverse, response, None, None, Tridiagonal.of(G))

    def path(self, lambdas: FloatArray) -> Path:
        """Solutions for each lambda, with their violations as in :func:`quadratic_path`."""
        scale = float(np.abs(self.b).max(initial=0.0)) or 1.0
        if self.M is None or self.t is None:
            W = self._solve(self.b[None], lambdas)
        else:
            W = (self.reduced.solve(self.t[None], lambdas) @ self.M) * self.unit
        residuals, violation = self._residuals(W, lambdas, scale)
        rough = np.flatnonzero(violation > ROUNDED)
        while len(rough):
            corrected = W[rough] + self._solve(residuals[rough], lambdas[rough])
            new_residuals, new_violation = self._residuals(corrected, lambdas[rough], scale)
            gained = new_violation < 0.5 * violation[rough]
            better = rough[gained]
            W[better], residuals[better] = corrected[gained], new_residuals[gained]
            violation[better] = new_violation[gained]
            rough = better[violation[better] > ROUNDED]
        left = np.flatnonzero(~(violation <= 10.0 * CONDITION_TOLERANCE))
        if len(left):
            by_supports = quadratic_path(self.H, self.b, np.zeros(len(self.b)), self.v, lambdas[left])
            closer = ~(violation[left] <= by_supports.violation)
            W[left[closer]], violation[left[closer]] = by_supports.w[closer], by_supports.violation[closer]
        return Path(W, violation)

    def _solve(self, B: FloatArray, lambdas: FloatArray) -> FloatArray:
        """Solutions with b a row of B, one row for each lambda or one for all."""
        g = (B[:, self.k] - B[:, self.f] @ self.response) * self.unit
        if self.M is None:
            u = self.reduced.solve(g, lambdas)
        else:
            u = (g - self.reduced.solve(g @ self.M.T, lambdas) @ self.M) / lambdas[:, None]
        W = np.empty((len(lambdas), len(self.b)))
        W[:, self.k] = u * self.unit
        W[:, self.f] = B[:, self.f] @ self.inverse - W[:, self.k] @ self.response.T
        return W

    def _residuals(self, W: FloatArray, lambdas: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
        """b - H w - lambda v w for each lambda, and its largest entry as a share of ``scale``."""
        residuals = self.b - W @ self.H - lambdas[:, None] * (self.v * W)
        return residuals, np.abs(residuals).max(axis=1, initial=0.0) / scale
