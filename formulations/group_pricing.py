"""The group of patterns with the smallest reduced cost, by branch and bound.

Sets and data
    p in P      patterns, each with a convex quadratic Q_p(u) >= 0 of the coefficients u
    Q_0(u)      a quadratic that every group pays once (the ridge per leaf, or 0)
    pi_p        the price of pattern p
    r_p, r      rows of pattern p, and the rows that a group needs
Variables
    G subset of P,  u
Objective
    min  Q_0(u) + sum_{p in G} (Q_p(u) - pi_p)
Constraints
    sum_{p in G} r_p >= r   (or G = P)

*Bound.* At a node the patterns F are in, some are out, and R are free. Write Q_F = Q_0 + sum_{p in F} Q_p. For shares
theta_p >= 0 with sum 1 and shifts nu_p with sum 0, over p in R, every completion of F costs at least

    - sum_{p in F} pi_p  +  sum_{p in R} min{ min_u theta_p Q_F + nu_p'u,  min_u theta_p Q_F + nu_p'u + Q_p - pi_p }

because each free pattern may choose its own u. This Lagrangian bound is concave in (theta, nu) and is raised by steps
along a supergradient: nu pulls the minimisers of the patterns together, theta gives most of Q_F to the patterns whose
minimisers lie apart. Work is done in coordinates v with Q_F(u) = c_F + |v|^2.

*Fixing.* Where one of the two minima of a pattern lifts the bound over the threshold, the pattern takes the other.

*Children* inherit: if p leaves R, its share of Q_F (with Q_p, if it goes in) is given to the others in proportion to
their own shares. The sum of minima is at most the minimum of a sum, so that the bound of a child starts no lower.

A quadratic is a symmetric matrix M of order K + 1:  Q(u) = (-u, 1) M (-u, 1)'.
"""

import numpy as np

from formulations.compiled import compiled

# A pivot below this share of its diagonal entry counts as 0: the direction has no curvature.
PIVOT_TOLERANCE = 1e-11
FREE, IN, OUT = 0, 1, 2


@compiled
def least_value(M, L):  # type: ignore[no-untyped-def]
    """min over u of the quadratic M; L is workspace."""
    order = M.shape[0]
    for i in range(order):
        for j in range(i):
            total = M[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total * L[j, j]
        total = M[i, i]
        for k in range(i):
            total -= L[i, k] * L[i, k]
        if i == order - 1:
            return max(total, 0.0)
        # The diagonal of L holds reciprocals, and 0 where a direction has no curvature.
        L[i, i] = 1.0 / np.sqrt(total) if total > PIVOT_TOLERANCE * M[i, i] else 0.0
    return 0.0


@compiled
def _factor(H, L, curved, K):  # type: ignore[no-untyped-def]
    """L L' = H + 1 on the diagonal of directions without curvature; the diagonal of L holds reciprocals."""
    for i in range(K):
        for j in range(i):
            total = H[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total * L[j, j] * curved[j]
        total = H[i, i]
        for k in range(i):
            total -= L[i, k] * L[i, k]
        if total > PIVOT_TOLERANCE * H[i, i]:
            L[i, i], curved[i] = 1.0 / np.sqrt(total), 1.0
        else:
            L[i, i], curved[i] = 1.0, 0.0


@compiled
def _forward(L, x, K):  # type: ignore[no-untyped-def]
    for i in range(K):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total * L[i, i]


@compiled
def _backward(L, x, K):  # type: ignore[no-untyped-def]
    for i in range(K - 1, -1, -1):
        x[i] *= L[i, i]
        value = x[i]
        for k in range(i):
            x[k] -= L[i, k] * value


@compiled
def _whiten(M, L, center, K, A, b, work):  # type: ignore[no-untyped-def]
    """The quadratic M around ``center`` in coordinates v = L'(u - center): v'A v - 2 b'v + the value returned."""
    value = M[K, K]
    for i in range(K):
        total = 0.0
        for j in range(K):
            total += M[i, j] * center[j]
        b[i] = M[i, K] - total
        value -= (M[i, K] + b[i]) * center[i]
    _forward(L, b, K)
    # Rows of L^-1 M (lower part of the result suffices), then the same from the right.
    for i in range(K):
        for j in range(K):
            work[i, j] = M[i, j]
        for k in range(i):
            factor = L[i, k]
            for j in range(K):
                work[i, j] -= factor * work[k, j]
        scale = L[i, i]
        for j in range(K):
            work[i, j] *= scale
    for i in range(K):
        for j in range(i + 1):
            total = work[i, j]
            for k in range(j):
                total -= A[i, k] * L[j, k]
            A[i, j] = total * L[j, j]
    return value


@compiled
def _minimum_with(A, b, s, theta, curved, K, L, v):  # type: ignore[no-untyped-def]
    """min over v of theta |v|^2 - 2 s'v + v'A v - 2 b'v, its minimiser in v; |v|^2 over curved directions only."""
    value = 0.0
    for i in range(K):
        total = b[i] + s[i]
        for j in range(i):
            entry = A[i, j]
            for k in range(j):
                entry -= L[i, k] * L[j, k]
            entry *= L[j, j]
            L[i, j] = entry
            total -= entry * v[j]
        diagonal = A[i, i] + theta * curved[i]
        pivot = diagonal
        for k in range(i):
            pivot -= L[i, k] * L[i, k]
        L[i, i] = 1.0 / np.sqrt(pivot) if pivot > PIVOT_TOLERANCE * diagonal else 0.0
        v[i] = total * L[i, i]
        value -= v[i] * v[i]
    _backward(L, v, K)
    return value


@compiled
def bound_node(quadratics, base, prices, threshold, steps, width, status, theta, nu, low, work):  # type: ignore[no-untyped-def]
    """Raise the bound of a node; ``theta``, ``nu`` become the best multipliers, and ``status`` has what they fix.

    ``low[p]`` receives the bound of the node with pattern p out and in.
    """
    P, K = quadratics.shape[0], quadratics.shape[1] - 1
    A, b, offset, s, v, best_theta, best_s, matrix, L, L2, curved, center, mean, apart, free, sub_A, sub_b, sub_offset, sub_v, sB = work
    matrix[:] = base
    paid = 0.0
    count = 0
    for p in range(P):
        if status[p] == IN:
            matrix += quadratics[p]
            paid += prices[p]
        elif status[p] == FREE:
            free[count] = p
            count += 1
    _factor(matrix, L, curved, K)
    fixed_cost = matrix[K, K]
    for i in range(K):
        center[i] = matrix[K, i]
    _forward(L, center, K)
    for i in range(K):
        center[i] *= curved[i]
        fixed_cost -= center[i] * center[i]
    _backward(L, center, K)
    fixed_cost = max(fixed_cost, 0.0) - paid
    if count == 0:
        return fixed_cost
    dimension = 0.0
    for i in range(K):
        dimension += curved[i]
    share = 0.0
    for f in range(count):
        share += theta[free[f]]
    mean[:] = 0.0
    for f in range(count):
        p = free[f]
        offset[p] = _whiten(quadratics[p], L, center, K, A[p], b[p], matrix) - prices[p]
        for i in range(K):
            s[p, i] = -0.5 * nu[p, i]
        _forward(L, s[p], K)
        for i in range(K):
            s[p, i] *= curved[i]
            mean[i] += s[p, i]
        theta[p] /= share
    for f in range(count):
        p = free[f]
        for i in range(K):
            s[p, i] -= theta[p] * mean[i]
    best = -np.inf
    blocks = (count + width - 1) // width
    for step in range(steps + 1):
        total = fixed_cost
        mean[:] = 0.0
        for block in range(blocks):
            first = block * width
            size = min(width, count - first)
            tB = 0.0
            sB[:] = 0.0
            for f in range(first, first + size):
                p = free[f]
                tB += theta[p]
                for i in range(K):
                    sB[i] += s[p, i]
                low[p, 0] = np.inf
                low[p, 1] = np.inf
            lowest = np.inf
            for mask in range(1 << size):
                allowed = True
                last = -1
                for f in range(size):
                    p = free[first + f]
                    if mask >> f & 1:
                        last = f
                        if status[p] == OUT:
                            allowed = False
                    elif status[p] == IN:
                        allowed = False
                if mask == 0:
                    sub_A[block, 0] = 0.0
                    sub_b[block, 0] = 0.0
                    sub_offset[block, 0] = 0.0
                    value = 0.0
                    for i in range(K):
                        value -= sB[i] * sB[i]
                        sub_v[i] = sB[i] / tB
                    value /= tB
                else:
                    p = free[first + last]
                    rest = mask ^ (1 << last)
                    if step == 0:
                        for i in range(K):
                            for j in range(i + 1):
                                sub_A[block, mask, i, j] = sub_A[block, rest, i, j] + A[p, i, j]
                            sub_b[block, mask, i] = sub_b[block, rest, i] + b[p, i]
                        sub_offset[block, mask] = sub_offset[block, rest] + offset[p]
                    if not allowed:
                        continue
                    value = sub_offset[block, mask] + _minimum_with(sub_A[block, mask], sub_b[block, mask], sB, tB, curved, K, L2, sub_v)
                if not allowed:
                    continue
                for f in range(size):
                    p = free[first + f]
                    side = mask >> f & 1
                    if value < low[p, side]:
                        low[p, side] = value
                if value < lowest:
                    lowest = value
                    for i in range(K):
                        v[block, i] = sub_v[i]
            total += lowest
            for i in range(K):
                mean[i] += tB * v[block, i] * curved[i]
        if total > best:
            best = total
            for f in range(count):
                p = free[f]
                best_theta[p] = theta[p]
                for i in range(K):
                    best_s[p, i] = s[p, i]
        if total >= threshold:
            return total
        for f in range(count):
            p = free[f]
            if status[p] == FREE and total + abs(low[p, 0] - low[p, 1]) >= threshold:
                status[p] = IN if low[p, 1] < low[p, 0] else OUT
        if step == steps or dimension == 0.0:
            break
        # Supergradient in the metric of the shares, with Polyak's step towards the threshold.
        spread = 0.0
        for block in range(blocks):
            apart[block] = 0.0
            for i in range(K):
                distance = (v[block, i] - mean[i]) * curved[i]
                apart[block] += distance * distance
        for f in range(count):
            spread += theta[free[f]] * apart[f // width]
        variance = 0.0
        for f in range(count):
            variance += theta[free[f]] * (apart[f // width] - spread) ** 2
        if not spread > 0.0:
            break
        length = min(1.0, (threshold - total) / (2.0 * spread + variance / spread))
        change = 0.0
        for block in range(blocks):
            apart[block] = min(1.0, max(-0.5, length * (apart[block] - spread) / spread))
        for f in range(count):
            change += theta[free[f]] * apart[f // width]
        for f in range(count):
            p = free[f]
            more = theta[p] * (apart[f // width] - change)
            for i in range(K):
                s[p, i] += curved[i] * (length * theta[p] * (mean[i] - v[f // width, i]) + more * mean[i])
            theta[p] += more
    for f in range(count):
        p = free[f]
        theta[p] = best_theta[p]
        for i in range(K):
            # nu = -2 L s; the diagonal of L holds reciprocals.
            total = best_s[p, i] / L[i, i]
            for k in range(i):
                total += L[i, k] * best_s[p, k]
            nu[p, i] = -2.0 * total
    return best


@compiled
def search_tree(quadratics, base, prices, rows, least_rows, threshold, steps, budget, mode, width, pool, counters, found):  # type: ignore[no-untyped-def]
    """Process up to ``budget`` nodes, lowest bound first; groups below the threshold go to ``found``.

    ``counters`` holds the numbers of open nodes, of groups found, and of nodes processed. The slots of open nodes are a
    heap in the front of ``heap``; the slots behind them are unused.
    """
    P, K = quadratics.shape[0], quadratics.shape[1] - 1
    bounds, states, shares, shifts, heap = pool
    work = (
        np.empty((P, K, K)), np.empty((P, K)), np.empty(P), np.empty((P, K)), np.empty((P, K)), np.empty(P),
        np.empty((P, K)), np.empty((K + 1, K + 1)), np.empty((K, K)), np.empty((K, K)), np.empty(K), np.empty(K),
        np.empty(K), np.empty(P), np.empty(P, np.int64),
        np.zeros((P, 16, K, K)), np.zeros((P, 16, K)), np.zeros((P, 16)), np.empty(K), np.empty(K),
    )  # fmt: skip
    low = np.empty((P, 2))
    before, status, theta, nu = np.empty(P, np.int8), np.empty(P, np.int8), np.empty(P), np.empty((P, K))
    for _ in range(budget):
        if counters[0] == 0 or counters[0] + 1 >= len(bounds) or counters[1] == len(found):
            break
        slot = _pop(heap, bounds, counters[0])
        counters[0] -= 1
        counters[2] += 1
        bound = bounds[slot]
        status[:] = states[slot]
        theta[:] = shares[slot]
        nu[:] = shifts[slot]
        if not _keep_rows(status, rows, least_rows):
            continue
        before[:] = status
        bound = max(bound, bound_node(quadratics, base, prices, threshold, steps, width, status, theta, nu, low, work))
        if bound >= threshold or not _keep_rows(status, rows, least_rows):
            continue
        chosen = _branching_pattern(quadratics, status, low, work, mode)
        if chosen < 0:
            # Everything is fixed, and the bound of a node without free patterns is its reduced cost.
            bound = bound_node(quadratics, base, prices, threshold, 0, width, status, theta, nu, low, work)
            if bound < threshold:
                found[counters[1]] = status == IN
                counters[1] += 1
            continue
        for side in (OUT, IN):
            target = heap[counters[0]]
            states[target] = status
            states[target, chosen] = side
            _inherit(before, states[target], theta, nu, shares[target], shifts[target])
            bounds[target] = bound
            _push(heap, bounds, counters[0])
            counters[0] += 1


@compiled
def _keep_rows(status, rows, least_rows):  # type: ignore[no-untyped-def]
    """Fix the patterns without which a group has too few rows; False where it has too few with all of them."""
    possible = 0
    for p in range(len(status)):
        if status[p] != OUT:
            possible += rows[p]
    if possible < least_rows:
        return False
    for p in range(len(status)):
        if status[p] == FREE and possible - rows[p] < least_rows:
            status[p] = IN
    return True


@compiled
def _branching_pattern(quadratics, status, low, work, mode):  # type: ignore[no-untyped-def]
    chosen, largest = -1, -np.inf
    nothing_in = True
    for p in range(len(status)):
        if status[p] == IN:
            nothing_in = False
    for p in range(len(status)):
        if status[p] == FREE:
            if nothing_in:
                score = 0.0
                for i in range(quadratics.shape[1] - 1):
                    score += np.log(quadratics[p, i, i])
                if mode >= 10:
                    score = -low[p, 1]
            elif mode % 10 == 0:
                score = abs(low[p, 0] - low[p, 1])
            elif mode % 10 == 1:
                score = -abs(low[p, 0] - low[p, 1])
            else:
                score = -low[p, 1] + low[p, 0]
            if score > largest:
                chosen, largest = p, score
    return chosen


@compiled
def _inherit(before, status, theta, nu, child_theta, child_nu):  # type: ignore[no-untyped-def]
    """Give the shares of the patterns that are no longer free to those that still are."""
    P, K = nu.shape
    kept = 0.0
    for p in range(P):
        if status[p] == FREE:
            kept += theta[p]
    for p in range(P):
        if status[p] == FREE:
            child_theta[p] = theta[p] / kept
            child_nu[p] = nu[p]
    for q in range(P):
        if before[q] == FREE and status[q] != FREE:
            for p in range(P):
                if status[p] == FREE:
                    for i in range(K):
                        child_nu[p, i] += child_theta[p] * nu[q, i]


@compiled
def _push(heap, bounds, size):  # type: ignore[no-untyped-def]
    """Take the slot at ``heap[size]`` into the heap."""
    i = size
    while i > 0 and bounds[heap[i]] < bounds[heap[(i - 1) // 2]]:
        heap[i], heap[(i - 1) // 2] = heap[(i - 1) // 2], heap[i]
        i = (i - 1) // 2


@compiled
def _pop(heap, bounds, size):  # type: ignore[no-untyped-def]
    """The slot with the lowest bound, moved behind the heap."""
    first = heap[0]
    heap[0], heap[size - 1] = heap[size - 1], first
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size - 1:
            return first
        if child + 1 < size - 1 and bounds[heap[child + 1]] < bounds[heap[child]]:
            child += 1
        if bounds[heap[i]] <= bounds[heap[child]]:
            return first
        heap[i], heap[child] = heap[child], heap[i]
        i = child


@compiled
def improve_group(quadratics, base, prices, rows, least_rows, member):  # type: ignore[no-untyped-def]
    """Add or drop one pattern at a time, the best first, as long as the reduced cost falls; returns it."""
    P, order = quadratics.shape[0], quadratics.shape[1]
    matrix, trial, L = base.copy(), np.empty((order, order)), np.zeros((order, order))
    paid, count = 0.0, 0
    for p in range(P):
        if member[p]:
            matrix += quadratics[p]
            paid += prices[p]
            count += rows[p]
    value = least_value(matrix, L) - paid if count >= least_rows else np.inf
    while True:
        chosen, best = -1, value - 1e-12 * abs(value) if value < np.inf else np.inf
        for p in range(P):
            sign = -1.0 if member[p] else 1.0
            if count + sign * rows[p] >= least_rows or (value == np.inf and not member[p]):
                for i in range(order):
                    for j in range(i + 1):
                        trial[i, j] = matrix[i, j] + sign * quadratics[p, i, j]
                changed = least_value(trial, L) - paid - sign * prices[p]
                if changed < best:
                    chosen, best = p, changed
        if chosen < 0:
            return value
        sign = -1.0 if member[chosen] else 1.0
        member[chosen] = not member[chosen]
        paid += sign * prices[chosen]
        count += np.int64(sign) * rows[chosen]
        matrix += sign * quadratics[chosen]
        value = best if count >= least_rows else np.inf


@compiled
def improve_partition(quadratics, base, rows, least_rows, labels, groups):  # type: ignore[no-untyped-def]
    """Move one pattern at a time to its best group as long as the total cost falls; returns it.

    The groups of ``labels`` that are not empty have enough rows, and keep them.
    """
    P, order = quadratics.shape[0], quadratics.shape[1]
    matrices, costs = np.zeros((groups, order, order)), np.zeros(groups)
    counts, sizes = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    trial, L = np.empty((order, order)), np.zeros((order, order))
    for g in range(groups):
        matrices[g] = base
    for p in range(P):
        matrices[labels[p]] += quadratics[p]
        counts[labels[p]] += rows[p]
        sizes[labels[p]] += 1
    for g in range(groups):
        costs[g] = least_value(matrices[g], L) if sizes[g] > 0 else 0.0
    still = 0
    p = -1
    while still < P:
        p = (p + 1) % P
        still += 1
        source = labels[p]
        if sizes[source] > 1 and counts[source] - rows[p] < least_rows:
            continue
        trial[:] = matrices[source] - quadratics[p]
        left = least_value(trial, L) if sizes[source] > 1 else 0.0
        target, lowest, joined = -1, -1e-10 * costs[source], 0.0
        for g in range(groups):
            if g != source and counts[g] + rows[p] >= least_rows:
                trial[:] = matrices[g] + quadratics[p]
                cost = least_value(trial, L)
                change = left + cost - costs[source] - costs[g]
                if change < lowest:
                    target, lowest, joined = g, change, cost
        if target >= 0:
            matrices[source] -= quadratics[p]
            matrices[target] += quadratics[p]
            counts[source] -= rows[p]
            counts[target] += rows[p]
            sizes[source] -= 1
            sizes[target] += 1
            costs[source], costs[target] = left, joined
            labels[p] = target
            still = 0
    return costs.sum()
