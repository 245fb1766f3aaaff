"""Groups of small reduced cost by adding and dropping single patterns.

From a group G, the one pattern whose change lowers

    c_G - sum_{p in G} pi_p

the most goes in or out, until no change lowers it. Groups keep their rows and stay without forbidden pairs; a start
with too few rows takes patterns in until it has enough. Starts are the groups of the relaxation's basis, which is where
the reduced cost is 0, and random groups. This proves nothing, but finds most of the columns that
:mod:`formulations.groups.pricing.branch_and_bound` would.
"""

from collections.abc import Callable

import numpy as np

from formulations.arrays import BoolArray, FloatArray
from formulations.groups.pricing.choice import GroupChoice
from formulations.groups.pricing.quadratics import add_quadratic, least_value, set_quadratic
from formulations.jit import compiled

# Random starts, and the smallest and largest share of the patterns that is in one.
RANDOM_STARTS, SHARES = 60, (0.1, 0.6)
# A change counts if it lowers the value by this share of it.
LOWER = 1e-12


def price_by_exchange(
    c: GroupChoice,
    prices: FloatArray,
    threshold: float,
    basis: BoolArray,
    rng: np.random.Generator,
    stop: Callable[[], bool],
) -> BoolArray:
    """Groups whose cost less prices is below ``threshold``, each once; the search ends early when ``stop()`` holds."""
    shares = rng.uniform(*SHARES, size=(RANDOM_STARTS, 1))
    starts = np.concatenate([basis, rng.random((RANDOM_STARTS, c.patterns)) < shares])
    found = []
    for member in starts:
        if improve_group(c.quadratics, c.base, prices, c.rows, c.least_rows, c.forbidden, member) < threshold:
            found.append(member)
        if stop():
            break
    return np.unique(found, axis=0) if found else np.zeros((0, c.patterns), dtype=bool)


@compiled
def improve_group(quadratics, base, prices, rows, least_rows, forbidden, member):  # type: ignore[no-untyped-def]
    """Add or drop one pattern at a time, the best first, in place, as long as the reduced cost falls; returns it."""
    P, order = quadratics.shape[0], quadratics.shape[1]
    matrix, trial, L = base.copy(), np.empty((order, order)), np.zeros((order, order))
    paid, count = 0.0, 0
    against = np.zeros(P, np.int64)  # members that a pattern must not be with
    for p in range(P):
        member[p] = member[p] and against[p] == 0
        if member[p]:
            add_quadratic(matrix, quadratics[p], 1.0)
            paid += prices[p]
            count += rows[p]
            for q in range(P):
                against[q] += forbidden[p, q]
    value = least_value(matrix, L) - paid if count >= least_rows else np.inf
    while True:
        chosen, best = -1, value - LOWER * abs(value) if value < np.inf else np.inf
        for p in range(P):
            sign = -1 if member[p] else 1
            # Too few rows yet: patterns may only come in.
            enough = count + sign * rows[p] >= least_rows or (value == np.inf and not member[p])
            if enough and (member[p] or against[p] == 0):
                set_quadratic(trial, matrix)
                add_quadratic(trial, quadratics[p], sign)
                changed = least_value(trial, L) - paid - sign * prices[p]
                if changed < best:
                    chosen, best = p, changed
        if chosen < 0:
            return value
        sign = -1 if member[chosen] else 1
        member[chosen] = not member[chosen]
        paid += sign * prices[chosen]
        count += sign * rows[chosen]
        add_quadratic(matrix, quadratics[chosen], sign)
        for q in range(P):
            against[q] += sign * forbidden[chosen, q]
        value = best if count >= least_rows else np.inf
