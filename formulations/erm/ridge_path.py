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

*Several penalties.* If they are multiples c of v on all columns but few, S of M, where they are v_s / c_s times c, then

    R diag(v~)^-1 R' + lambda = [M M' + c lambda + S D S'] / c,      D = diag(c_s) - 1,

and one reduction serves all of them. With Y = (M M' + c lambda)^-1 S the inverse of the bracket is, applied to any z,
that of M M' + c lambda less  Y (I + D S'Y)^-1 D S'  times it. The eigenvalues of S'Y are between 0 and 1, so that
little is lost in the difference.

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
from formulations.jit import compiled

# Residuals, as a share of the largest |b|, that are not refined: at 930 columns most fits of a path are below it at
# once, and held-out losses differ by 4e-11 at most from those solved to rounding error.
ROUNDED = 1e-12
# Columns that the routines of LAPACK treat as one block.
BLOCK = 64
# Largest share of the rows of which a reduction is shared although so many columns have other multiples of the penalty.
FEW = 0.125


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
        return self.turned_back(self.turned_solution(B, lambdas))

    def turned_solution(self, B: FloatArray, lambdas: FloatArray) -> FloatArray:
        """(T + lambda)^-1 Q'b."""
        r, n = len(self.diagonal), len(lambdas)
        if r < 2:
            return np.asarray(B / (self.diagonal + lambdas[:, None]))
        # one system for all lambdas, whose blocks are not coupled
        diagonal = (self.diagonal + lambdas[:, None]).ravel()
        off_diagonal = np.tile(np.append(self.off_diagonal, 0.0), n)[:-1]
        rotated = np.broadcast_to(self.turned(B), (n, r)).ravel()
        *_, solution, info = lapack.dgtsv(off_diagonal, diagonal, off_diagonal, rotated)
        return np.asarray(solution.reshape(n, r)) if info == 0 else np.full((n, r), np.nan)

    def turned(self, B: FloatArray) -> FloatArray:
        """Q'b for each row b of B."""
        return self._rotated(B, "T")

    def turned_back(self, B: FloatArray) -> FloatArray:
        """Q b for each row b of B."""
        return self._rotated(B, "N")

    def _rotated(self, B: FloatArray, transposed: str) -> FloatArray:
        """The rows of B times Q, or times Q' for "T"."""
        if len(self.diagonal) < 2:
            return B
        columns = np.asfortranarray(B[:, 1:].T)
        turned, *_ = lapack.dormqr("L", transposed, self.reflectors, self.factors, columns, BLOCK * columns.shape[1])
        return np.hstack([B[:, :1], turned.T])


class Changed(NamedTuple):
    """[G + S D S'] / c for a reduced G.

    Attributes
    ----------
    base : Tridiagonal
        That of G.
    S : array of shape (r, m)
        Q'S.
    D : array of shape (m,)
    c : float
    """

    base: Tridiagonal
    S: FloatArray
    D: FloatArray
    c: float

    def solve(self, B: FloatArray, lambdas: FloatArray) -> FloatArray:
        """As that of the reduction."""
        shifts, base = self.c * lambdas, self.base
        X = base.turned_solution(B, shifts)
        Y = np.empty_like(self.S)
        for x, shift in zip(X, shifts, strict=True):
            solve_shifted(base.diagonal, base.off_diagonal, shift, self.S, Y)
            core = np.eye(len(self.D)) + self.D[:, None] * (self.S.T @ Y)
            x -= Y @ np.linalg.solve(core, self.D * (x @ self.S))
        return self.c * base.turned_back(X)


@compiled
def solve_shifted(diagonal, off_diagonal, shift, S, Y):  # type: ignore[no-untyped-def]
    """Write (T + shift)^-1 S, for a positive definite T + shift."""
    r, m = S.shape
    pivots = np.empty(r)
    for i in range(r):
        pivots[i] = diagonal[i] + shift
        factor = 0.0
        if i > 0:
            factor = off_diagonal[i - 1] / pivots[i - 1]
            pivots[i] -= factor * off_diagonal[i - 1]
        above = max(i - 1, 0)
        for j in range(m):
            Y[i, j] = S[i, j] - factor * Y[above, j] if i > 0 else S[i, j]
    for i in range(r - 1, -1, -1):
        inverse = 1.0 / pivots[i]
        if i == r - 1:
            for j in range(m):
                Y[i, j] *= inverse
        else:
            entry = off_diagonal[i]
            for j in range(m):
                Y[i, j] = (Y[i, j] - entry * Y[i + 1, j]) * inverse


class Shared(NamedTuple):
    """What several penalties share.

    Attributes
    ----------
    v : array of shape (p,)
        One of the penalties.
    few, others : int arrays
        Columns on which the penalties are any multiples of v, and those on which each is one multiple of it.
    base : Tridiagonal
        That of R diag(v)^-1 R'.
    S : array of shape (n, len(few))
        Q'S.
    """

    v: FloatArray
    few: IntArray
    others: IntArray
    base: Tridiagonal
    S: FloatArray


@dataclass(frozen=True)
class FewRows:
    """Rows R with H = R'R and b = R't, fewer than the columns, and what several penalties share, if anything.

    Attributes
    ----------
    R, t : arrays of shape (n, p) and (n,)
    shared : Shared or None
    """

    R: FloatArray
    t: FloatArray
    shared: Shared | None

    @classmethod
    def of(cls, R: FloatArray, t: FloatArray, penalties: Sequence[FloatArray]) -> "FewRows":
        """Reduce once if the positive penalties are multiples of each other on all but few columns."""
        positive = np.array([v for v in penalties if np.all(v > 0)])
        if len(positive) < 2:
            return cls(R, t, None)
        v = positive[0]
        group_of = np.unique(np.round(positive / v, 12), axis=1, return_inverse=True)[1].ravel()
        is_other = group_of == np.bincount(group_of).argmax()
        few, others = np.flatnonzero(~is_other), np.flatnonzero(is_other)
        if len(few) > FEW * len(R):
            return cls(R, t, None)
        M = R / np.sqrt(v)
        base = Tridiagonal.of(M @ M.T)
        return cls(R, t, Shared(v, few, others, base, np.ascontiguousarray(base.turned(M[:, few].T).T)))

    def reduced(self, M: FloatArray, v: FloatArray) -> Tridiagonal | Changed:
        """M M' with M = R diag(v)^-1/2, for one of the penalties."""
        if self.shared is None:
            return Tridiagonal.of(M @ M.T)
        ratios, shared = v / self.shared.v, self.shared
        c = float(ratios[shared.others[0]])
        D = c / ratios[shared.few] - 1.0
        return Changed(shared.base, shared.S, D, c) if D.any() or c != 1.0 else shared.base


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
    reduced : Tridiagonal or Changed
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
    reduced: Tridiagonal | Changed

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
            return cls(H, b, v, k, f, unit, inverse, response, M, rows.t, rows.reduced(M, v))
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
