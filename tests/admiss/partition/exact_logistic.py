"""Leaf costs of the logistic loss, enclosed between a primal and a dual value in ball arithmetic.

    F(b, w) = sum_i s_i log(1 + exp(-y_i z_i)) + sum_k r_k w_k^2,      z_i = b + w'a_i,  y_i in {-1, 1},  r_k > 0

Newton's method gives (b, w). With p_i = 1 / (1 + exp(y_i z_i)), one of them corrected so that sum_i s_i y_i p_i = 0,

    - sum_i s_i (p_i log p_i + (1 - p_i) log(1 - p_i)) - sum_k (sum_i s_i y_i p_i a_ik)^2 / 4 r_k  <=  c  <=  F(b, w).

A leaf with a single class costs 0: the infimum, which is not attained.
"""

import numpy as np
from flint import arb, arb_mat, ctx, fmpq

from tests.admiss.partition.exact_leaves import LeafRows, fraction

# Bits of balls.
WORKING_BITS = 350
# Newton's method stops if a step promises less than this share of the cost; no step is shorter than that share.
PROMISE, SHORTEST = arb(2) ** -200, arb(2) ** -60


class LogisticLeaves(LeafRows):
    """Costs of the logistic loss; ``y`` holds labels, one target per class if there are more than two."""

    def __init__(self, M, A, y, s, ridge, ridge_scale):
        super().__init__(M, A, np.unique(y, return_inverse=True)[1], s, ridge, ridge_scale)
        classes = range(int(self.y.max()) + 1)
        self.targets = [np.where(self.y == c, 1, -1) for c in (classes if len(classes) > 2 else [1])]

    def size_of_costs(self):
        return sum((fraction(s) for s in self.s), fmpq(0))

    def enclosed(self, mask):
        with ctx.workprec(WORKING_BITS):
            rows, unit = self.rows_of(mask), arb(2) ** self.shift
            ends = [LogisticLeaf(self, rows, target[rows]).enclosure() for target in self.targets]
            low, high = (sum(side, arb(0)) * unit for side in zip(*ends, strict=True))
            return max(0, int(low.lower().floor().unique_fmpz())), int(high.upper().ceil().unique_fmpz())


class LogisticLeaf:
    """One leaf and one target."""

    def __init__(self, leaves, rows, y):
        self.y = [int(sign) for sign in y]
        self.s = [arb(weight) for weight in leaves.s[rows].tolist()]
        self.Z = arb_mat([[1.0, *row] for row in leaves.A[rows].tolist()])
        self.n, self.k = self.Z.nrows(), self.Z.ncols()
        self.r = [arb(ridge) * (sum(self.s) if leaves.per_sample else 1) for ridge in leaves.ridges.tolist()]
        self.weighted = arb_mat([[self.s[i] * self.Z[i, j] for i in range(self.n)] for j in range(self.k)])

    def enclosure(self):
        """Dual and primal value, as balls."""
        if len(set(self.y)) == 1:
            return arb(0), arb(0)
        beta = self.minimise()
        s, y, p = self.s, self.y, self.probabilities(beta)
        free = max(range(self.n), key=lambda i: float(s[i] * p[i] * (1 - p[i])))
        p[free] = -y[free] * sum((s[i] * y[i] * p[i] for i in range(self.n) if i != free), arb(0)) / s[free]
        v = self.weighted * arb_mat([[y[i] * p[i]] for i in range(self.n)])
        entropy = -sum((s[i] * (q * q.log() + (1 - q) * (1 - q).log()) for i, q in enumerate(p)), arb(0))
        shrunk = sum((v[j, 0] * v[j, 0] / (4 * self.r[j - 1]) for j in range(1, self.k)), arb(0))
        return entropy - shrunk, self.value(beta)

    def value(self, beta):
        """F."""
        z = self.Z * beta
        loss = sum((self.s[i] * (1 + (-self.y[i] * z[i, 0]).exp()).log() for i in range(self.n)), arb(0))
        return loss + sum((self.r[j - 1] * beta[j, 0] * beta[j, 0] for j in range(1, self.k)), arb(0))

    def probabilities(self, beta):
        """p_i, without a radius."""
        z = self.Z * beta
        return [(1 / (1 + (self.y[i] * z[i, 0]).exp())).mid() for i in range(self.n)]

    def minimise(self):
        """The minimiser to about 100 bits, by Newton's method with step halving."""
        beta = arb_mat(self.k, 1)
        while True:
            p, best = self.probabilities(beta), self.value(beta).mid()
            g = self.weighted * arb_mat([[-self.y[i] * p[i]] for i in range(self.n)])
            curvature = [[p[i] * (1 - p[i]) * self.Z[i, j] for j in range(self.k)] for i in range(self.n)]
            H = self.weighted * arb_mat(curvature)
            for j in range(1, self.k):
                g[j, 0] += 2 * self.r[j - 1] * beta[j, 0]
                H[j, j] += 2 * self.r[j - 1]
            step = H.solve(g)
            decrement, share = (g.transpose() * step)[0, 0].mid(), arb(1)
            if decrement < PROMISE * best:
                return beta
            while True:
                shorter = arb_mat([[(beta[j, 0] - share * step[j, 0]).mid()] for j in range(self.k)])
                if self.value(shorter).mid() <= best - share * decrement / 10000:
                    break
                share /= 2
                assert share > SHORTEST, "Newton's method stalls"
            beta = shorter
