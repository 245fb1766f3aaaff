"""The optimum of a linear model's program in ninety digits, from the definition of the program.

    minimise over w   sum_i (s_i / S) l(y_i, a_i'w) + sum_k l1_k d_k |w_k| + l2_k d_k^2 w_k^2 / 2

with the columns a of the class in the user's units, which are exact after features are centred (the difference x - c is
a double), and their divisors d. Starting at the model's
coefficients, Newton's method on the signs, rows at a kink and branches of the loss that the current point suggests ends
at the optimum to all digits; singular systems are damped by 2^-150. Every point gives an upper bound on the optimum, so
that a mistake here can only hide a false bound, never invent one.
"""

from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from flint import arb, arb_mat, ctx

from admiss.linear.penalty import Penalty, penalty_weights
from formulations.log_link import LogLink
from formulations.losses import Absolute, Huber, Logistic, Quantile, Squared

PRECISION = 360
DAMPING = -150
NEWTON_STEPS = 60


class Program:
    """The program of a fitted model on its rows of positive weight."""

    def __init__(self, model, X, y, s, loss):
        design = model.design_
        u1, u2 = penalty_weights(
            design, X, s, kind=model.penalty_weights, adaptive_penalty=model.adaptive_penalty,
            standardise=model.scale,
        )  # fmt: skip
        alpha, lam = float(model.l1_ratio), float(model.lam)
        penalty = Penalty(alpha * lam, (1.0 - alpha) * lam, u1, u2)
        columns = design.adaptivity.columns(*_centred(model, X, s))
        columns = columns.toarray() if sp.issparse(columns) else columns
        if np.any(design.position < 0):
            columns = np.column_stack([columns, np.ones(len(X))])
        self.A, self.y, self.s, self.loss = columns[:, design.position], y, s, loss
        # units are powers of two, so that all digits are kept
        size = np.abs(self.A).max(axis=0)
        self.unit = np.exp2(np.round(np.log2(np.where(size > 0, size, 1.0))))
        self.A = self.A / self.unit
        with ctx.workprec(PRECISION):
            ratio = [arb(d) / arb(u) for d, u in zip(design.column_scale, self.unit, strict=True)]
            self.l1 = [arb(v) * r for v, r in zip(penalty.l1, ratio, strict=True)]
            self.l2 = [arb(v) * r * r for v, r in zip(penalty.l2, ratio, strict=True)]
            total = sum((arb(v) for v in s), arb(0))
            self.q = [arb(v) / total for v in s]
            self.rows = arb_mat(self.A.tolist()) if self.A.shape[1] else None

    def objective(self, w):
        """P(w) for arbs w in units of the columns."""
        z = self.predictions(w)
        risk = sum((q * self._loss(y, v) for q, y, v in zip(self.q, self.y, z, strict=True)), arb(0))
        parts = zip(self.l1, self.l2, w, strict=True)
        return risk + sum((a * abs(v) + b * v * v / 2 for a, b, v in parts), arb(0))

    def predictions(self, w):
        if self.rows is None:
            return [arb(0)] * len(self.y)
        return (self.rows * arb_mat(len(w), 1, w)).entries()

    def _loss(self, y, z):
        if isinstance(self.loss, LogLink):
            return self._half_deviance(arb(y), z)
        r = arb(y) - z
        if isinstance(self.loss, Squared):
            return r * r
        if isinstance(self.loss, Logistic):
            return (1 + (-arb(y) * z).exp()).log()
        if isinstance(self.loss, Absolute):
            return abs(r)
        if isinstance(self.loss, Quantile):
            tau = arb(self.loss.level)
            return tau * r if r.mid() > 0 else (tau - 1) * r
        delta = arb(self.loss.delta)
        return r * r if abs(r.mid()) <= delta else 2 * delta * abs(r) - delta * delta

    def _half_deviance(self, y, z):
        a, b = arb(self.loss.a), arb(self.loss.b)
        if y == 0:
            return (b * z).exp() / b
        if a == 0:
            return z.exp() - y + y * (y.log() - z)
        if b == 0:
            return y * (-z).exp() - 1 - y.log() + z
        mu = z.exp()
        return mu**b / b + y * mu ** (-a) / a - y**b / (a * b)

    def slopes(self, y, z, at_kink):
        """First and second derivative of the loss in z; 0 at a kink, whose slope is a multiplier."""
        if isinstance(self.loss, LogLink):
            a, b, z = arb(self.loss.a), arb(self.loss.b), z.mid()
            up, down = (b * z).exp().mid(), (arb(y) * (-a * z).exp()).mid()
            return up - down, b * up + a * down
        r = (arb(y) - z).mid()
        if isinstance(self.loss, Squared):
            return -2 * r, arb(2)
        if isinstance(self.loss, Logistic):
            e = 1 / (1 + (arb(y) * z.mid()).exp())
            return -arb(y) * e, e * (1 - e)
        if isinstance(self.loss, Huber):
            delta = arb(self.loss.delta)
            return (-2 * r, arb(2)) if abs(r) <= delta else ((-2 * delta if r > 0 else 2 * delta), arb(0))
        if at_kink:
            return arb(0), arb(0)
        high = arb(1) if isinstance(self.loss, Absolute) else arb(self.loss.level)
        low = arb(1) if isinstance(self.loss, Absolute) else 1 - arb(self.loss.level)
        return (-high if r > 0 else low), arb(0)


def _centred(model, X, s):
    """Features minus their means, after a check of the means; and their patterns."""
    part = X[:, ~np.isnan(X).all(axis=0)]
    M, centre = np.isnan(part), model.design_.centre
    if model.center and model.fit_intercept:
        share = np.where(M, 0.0, s[:, None]) / np.where(M, 0.0, s[:, None]).sum(axis=0)
        near = part - centre
        deviation = np.sqrt((share * np.where(M, 0.0, near) ** 2).sum(axis=0))
        off = np.abs((share * np.where(M, 0.0, near)).sum(axis=0))
        assert np.all(off <= 1e-9 * deviation + 1e-14 * np.abs(centre))
    else:
        assert not centre.any()
    return part - centre, M


def optimum_from_above(model, X, y, s, loss):
    """An upper bound on the optimum as a fraction, tight to many digits; and the objective of the model."""
    program = Program(model, X, y, s, loss)
    with ctx.workprec(PRECISION):
        w = [arb(float(v)) * arb(float(u)) for v, u in zip(model.coefficients_, program.unit, strict=True)]
        own = program.objective(w)
        best = own.upper()
        for point in _newton_points(program, w):
            value = program.objective(point).upper()
            if value.is_finite() and value < best:
                best = value
        return _fraction(best), _fraction(own.upper())


def _newton_points(program, w):
    """Points on the way to the optimum."""
    p, n = len(w), len(program.y)
    if p == 0:
        return
    smooth = program.loss.smooth
    z = program.predictions(w)
    spread = float(np.std(program.y)) or 1.0
    kinks = [] if smooth else [i for i in range(n) if abs(float((arb(program.y[i]) - z[i]).mid())) < 1e-7 * spread]
    active = [k for k in range(p) if float(w[k]) != 0.0 or (program.l1[k] == 0)]
    signs = [1 if float(w[k]) > 0 else -1 for k in range(p)]
    damping = arb((1, DAMPING))
    for _ in range(NEWTON_STEPS):
        z = program.predictions(w)
        slopes = [program.slopes(y, v, i in kinks) for i, (y, v) in enumerate(zip(program.y, z, strict=True))]
        first = arb_mat(n, 1, [q * a for q, (a, _) in zip(program.q, slopes, strict=True)])
        g = (program.rows.transpose() * first).entries()
        if not active:
            return
        m = len(active)
        sub = [[program.rows[i, k] for k in active] for i in range(n)]
        left = arb_mat(m, n, [sub[i][j] * (program.q[i] * slopes[i][1]) for j in range(m) for i in range(n)])
        H = left * arb_mat(sub)
        e = len(kinks)
        K, b = arb_mat(m + e, m + e), arb_mat(m + e, 1)
        for a, k in enumerate(active):
            for c in range(m):
                K[a, c] = H[a, c]
            K[a, a] = K[a, a] + program.l2[k] + damping
            b[a, 0] = -(g[k] + program.l2[k] * w[k] + program.l1[k] * signs[k])
            for c, i in enumerate(kinks):
                K[a, m + c] = K[m + c, a] = program.rows[i, k]
        for c, i in enumerate(kinks):
            K[m + c, m + c] = -damping
            b[m + c, 0] = arb(program.y[i]) - z[i]
        try:
            step = K.solve(b).entries()
        except ZeroDivisionError:
            return
        new = list(w)
        for a, k in enumerate(active):
            new[k] = (w[k] + step[a]).mid()
        flipped = [k for k in active if program.l1[k] > 0 and float(new[k]) * signs[k] < 0]
        for k in flipped:
            new[k] = arb(0)
        change = max(abs(float(v.mid())) for v in step[:m])
        w = new
        yield w
        if flipped:
            active = [k for k in active if k not in flipped]
        elif change < 1e-40:
            if not smooth:
                return
            entering = [k for k in range(p) if k not in active and abs(g[k]).mid() > program.l1[k].mid()]
            if not entering:
                return
            for k in entering:
                signs[k] = -1 if float(g[k]) > 0 else 1
            active = sorted([*active, *entering])


def _fraction(value):
    mantissa, exponent = (int(part) for part in value.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent
