"""Compiled pivots of the parametric simplex method in ``parametric``, whose notation they use.

A state is (members, inverse, residuals, sides): the rows B of the basis, Phi_B^-1, the residuals of all rows, and for
each row 1 if eta = 1 - a, 0 if eta = -a, ``BASIC`` in the basis. Calibration rows that share their basis values share
the entry ``codes`` in the distinct ``rows``: what is the same for all of them is computed once.
"""

import numpy as np

from formulations.jit import compiled

# Distance in u, or violation of a bound of eta, that counts as 0.
EVENT_TOLERANCE = 1e-9
# Entries of a pivot column, relative to rows and columns of size 1, that count as 0.
PIVOT_TOLERANCE = 1e-9
# Pivots per column of the basis before Bland's rule, and before the method gives up.
BLAND_AFTER, MOST_PIVOTS = 20, 500
# Outcomes of a pattern.
FOUND, INFEASIBLE, GIVEN_UP = 0, 1, 2
BASIC = 2


@compiled
def first_basis(rows, codes, order):  # type: ignore[no-untyped-def]
    """The first K independent rows in the given order, and the inverse of their matrix."""
    K = rows.shape[1]
    members, inverse = np.empty(K, np.int64), np.zeros((K, K))
    reduced, pivot_of = np.zeros((K, K)), np.empty(K, np.int64)  # eliminated rows and their leading columns
    tried = np.zeros(len(rows), np.bool_)
    found, row = 0, np.empty(K)
    for i in order:
        if found == K:
            break
        if tried[codes[i]]:
            continue
        tried[codes[i]] = True
        for c in range(K):
            row[c] = rows[codes[i], c]
        for b in range(found):
            factor = row[pivot_of[b]]
            for c in range(K):
                row[c] -= factor * reduced[b, c]
        lead = 0
        for c in range(K):
            if abs(row[c]) > abs(row[lead]):
                lead = c
        if abs(row[lead]) <= PIVOT_TOLERANCE:
            continue
        for c in range(K):
            reduced[found, c] = row[c] / row[lead]
        pivot_of[found] = lead
        members[found] = i
        found += 1
    _invert(rows, codes, members, inverse)
    return members, inverse


@compiled
def _invert(rows, codes, members, inverse):  # type: ignore[no-untyped-def]
    """Fill in Phi_B^-1 by Gauss-Jordan elimination with partial pivoting."""
    K = len(members)
    work = np.empty((K, K))
    for b in range(K):
        for c in range(K):
            work[b, c] = rows[codes[members[b]], c]
            inverse[b, c] = 1.0 if b == c else 0.0
    for c in range(K):
        best = c
        for b in range(c + 1, K):
            if abs(work[b, c]) > abs(work[best, c]):
                best = b
        if best != c:
            for k in range(K):
                work[c, k], work[best, k] = work[best, k], work[c, k]
                inverse[c, k], inverse[best, k] = inverse[best, k], inverse[c, k]
        pivot = work[c, c]
        for k in range(K):
            work[c, k] /= pivot
            inverse[c, k] /= pivot
        for b in range(K):
            factor = work[b, c]
            if b != c and factor != 0.0:
                for k in range(K):
                    work[b, k] -= factor * work[c, k]
                    inverse[b, k] -= factor * inverse[c, k]


@compiled
def _load(rows, codes, a, sides, load):  # type: ignore[no-untyped-def]
    """Fill in the sum of phi_i eta_i over the rows outside the basis."""
    load[:] = 0.0
    for i in range(len(codes)):
        if sides[i] != BASIC:
            for k in range(len(load)):
                load[k] += (sides[i] - a) * rows[codes[i], k]


@compiled
def _basic_values(inverse, load, phi, u, eta):  # type: ignore[no-untyped-def]
    """Fill in eta_B = -Phi_B^-T (u phi + load)."""
    for b in range(len(eta)):
        total = 0.0
        for k in range(len(eta)):
            total += inverse[k, b] * (u * phi[k] + load[k])
        eta[b] = -total


@compiled
def _directions(rows, inverse, b, sign, slopes):  # type: ignore[no-untyped-def]
    """Fill in the change of the residual of each distinct row as that of the b-th row of the basis moves by sign."""
    for p in range(len(rows)):
        total = 0.0
        for k in range(rows.shape[1]):
            total += rows[p, k] * inverse[k, b]
        slopes[p] = sign * total


@compiled
def _exchange(rows, codes, a, state, load, b, sign, entering, step, slopes):  # type: ignore[no-untyped-def]
    """Replace the b-th row of the basis, which goes to its upper (sign 1) or lower bound (sign -1)."""
    members, inverse, residuals, sides = state
    K, leaving = len(members), members[b]
    for i in range(len(residuals)):
        residuals[i] += step * slopes[codes[i]]
    residuals[leaving], residuals[entering] = sign * step, 0.0
    side = 1 if sign > 0 else 0
    for k in range(K):
        load[k] += (side - a) * rows[codes[leaving], k] - (sides[entering] - a) * rows[codes[entering], k]
    sides[leaving], sides[entering], members[b] = side, BASIC, entering
    pivot = sign * slopes[codes[entering]]
    for k in range(K):
        inverse[k, b] /= pivot
    for c in range(K):
        if c != b:
            factor = 0.0
            for k in range(K):
                factor += rows[codes[entering], k] * inverse[k, c]
            for k in range(K):
                inverse[k, c] -= factor * inverse[k, b]


@compiled
def dual_simplex(rows, codes, a, members, inverse, residuals, sides):  # type: ignore[no-untyped-def]
    """Make a state optimal at u = 0; returns the number of pivots, negative if there is no optimal basis."""
    n, K = len(codes), rows.shape[1]
    sides[members] = BASIC
    load, eta, nothing, slopes = np.zeros(K), np.empty(K), np.zeros(K), np.empty(len(rows))
    _load(rows, codes, a, sides, load)
    steps, candidates = np.empty(n), np.empty(n, np.int64)
    for pivots in range(MOST_PIVOTS * K):
        bland = pivots > BLAND_AFTER * K
        _basic_values(inverse, load, nothing, 0.0, eta)
        b, excess = -1, EVENT_TOLERANCE
        for c in range(K):
            over = max(eta[c] - (1.0 - a), -a - eta[c])
            if over > EVENT_TOLERANCE and (b < 0 or (members[c] < members[b] if bland else over > excess)):
                b, excess = c, over
        if b < 0:
            return pivots
        sign = 1.0 if eta[b] > 0.5 - a else -1.0
        _directions(rows, inverse, b, sign, slopes)
        found = 0
        for i in range(n):
            slope = slopes[codes[i]]
            if (sides[i] == 1 and slope < -PIVOT_TOLERANCE) or (sides[i] == 0 and slope > PIVOT_TOLERANCE):
                steps[found], candidates[found] = max(0.0, -residuals[i] / slope), i
                found += 1
        if found == 0:
            return -pivots - 1
        order = np.argsort(steps[:found], kind="mergesort")  # stable: ties in the order of the rows
        last = 0
        while not bland and last + 1 < found:  # a row that is passed changes its side, and the excess falls
            i = candidates[order[last]]
            excess -= abs(slopes[codes[i]])
            if excess <= 0.0:
                break
            sides[i] = 1 - sides[i]
            for k in range(K):
                load[k] += (2 * sides[i] - 1) * rows[codes[i], k]
            last += 1
        entering, step = candidates[order[last]], steps[order[last]]
        _exchange(rows, codes, a, (members, inverse, residuals, sides), load, b, sign, entering, step, slopes)
    return -MOST_PIVOTS * K


@compiled
def walk(rows, codes, scores, a, start, phis, us, values, outcomes, violations):  # type: ignore[no-untyped-def]
    """Move u from 0 to its end for each pattern; fills in the last three arguments and returns the number of pivots."""
    K = rows.shape[1]
    members0, inverse0, residuals0, sides0 = start
    load0, eta, moves = np.zeros(K), np.empty(K), np.empty(K)
    slopes, nothing = np.empty(len(rows)), np.zeros(K)
    _load(rows, codes, a, sides0, load0)
    total = 0
    for p in range(len(phis)):
        state = (members0.copy(), inverse0.copy(), residuals0.copy(), sides0.copy())
        load, phi = load0.copy(), phis[p]
        sense, end, u = 1.0 if us[p] > 0 else -1.0, abs(us[p]), 0.0
        outcomes[p] = GIVEN_UP
        for pivots in range(MOST_PIVOTS * K):
            bland = pivots > BLAND_AFTER * K
            _basic_values(state[1], load, phi, sense * u, eta)
            _basic_values(state[1], nothing, phi, sense, moves)
            b, reach = _first_event(a, state[0], eta, moves, bland)
            if u + reach >= end - EVENT_TOLERANCE:
                outcomes[p] = FOUND
                middle = sense * (u + min(reach, end - u) / 2)
                values[p], violations[p] = _checked(rows, codes, scores, a, state, phi, middle)
                break
            sign = 1.0 if moves[b] > 0 else -1.0
            _directions(rows, state[1], b, sign, slopes)
            entering, step = _first_residual(codes, state[2], state[3], slopes, bland)
            if entering < 0:
                outcomes[p] = INFEASIBLE
                break
            _exchange(rows, codes, a, state, load, b, sign, entering, step, slopes)
            u += reach
            total += 1
    return total


@compiled
def _first_event(a, members, eta, moves, bland):  # type: ignore[no-untyped-def]
    """The position in the basis that is first at its bound, and how far u moves until then."""
    first, reach = -1, np.inf
    for c in range(len(eta)):
        if abs(moves[c]) > PIVOT_TOLERANCE:
            bound = 1.0 - a if moves[c] > 0 else -a
            distance = max(0.0, (bound - eta[c]) / moves[c])
            tied = first >= 0 and abs(distance - reach) <= EVENT_TOLERANCE
            preferred = first >= 0 and (members[c] < members[first] if bland else abs(moves[c]) > abs(moves[first]))
            if (tied and preferred) or (not tied and distance < reach):
                first = c
            reach = min(reach, distance)
    return first, reach


@compiled
def _first_residual(codes, residuals, sides, slopes, bland):  # type: ignore[no-untyped-def]
    """The row outside the basis whose residual is first 0, and the step until then; row -1 if there is none."""
    entering, step = -1, np.inf
    for i in range(len(codes)):
        slope = slopes[codes[i]]
        if (sides[i] == 1 and slope < -PIVOT_TOLERANCE) or (sides[i] == 0 and slope > PIVOT_TOLERANCE):
            distance = max(0.0, -residuals[i] / slope)
            larger = distance == step and not bland and abs(slope) > abs(slopes[codes[entering]])
            if distance < step or larger:
                entering, step = i, distance
    return entering, step


@compiled
def _checked(rows, codes, scores, a, state, phi, u):  # type: ignore[no-untyped-def]
    """The threshold of a basis, computed anew, and the largest violation of the conditions of optimality at u."""
    members, inverse, _, sides = state
    K = len(members)
    _invert(rows, codes, members, inverse)
    beta, load, eta, value = np.zeros(K), np.zeros(K), np.empty(K), 0.0
    for k in range(K):
        for b in range(K):
            beta[k] += inverse[k, b] * scores[members[b]]
        value += phi[k] * beta[k]
    violation = 0.0
    for i in range(len(codes)):
        if sides[i] != BASIC:
            residual = scores[i]
            for k in range(K):
                residual -= rows[codes[i], k] * beta[k]
            violation = max(violation, -residual if sides[i] == 1 else residual)
    _load(rows, codes, a, sides, load)
    _basic_values(inverse, load, phi, u, eta)
    for b in range(K):
        violation = max(violation, eta[b] - (1.0 - a), -a - eta[b])
    return value, violation if np.isfinite(value) else np.inf
