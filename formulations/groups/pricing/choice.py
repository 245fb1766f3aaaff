"""The possible groups of patterns and their costs, in all partitions or in a part of them.

Each pattern p has a quadratic Q_p and r_p rows. A group G is possible if it has at least r rows and none of the
forbidden pairs; it costs

    c_G  =  min over u of  Q_0(u) + sum_{p in G} Q_p(u)

with Q_0 the quadratic that every group pays once (the ridge per leaf, or 0).

*Parts of the set of partitions* (Ryan and Foster, 1981) require given pairs of patterns to be together or apart.
Patterns that are together form a class, which acts as one pattern with the sums of their quadratics and rows; patterns
that are apart are a forbidden pair. In a fractional solution z of the relaxation, the sum of z_G over the groups with
both patterns of some pair is strictly between 0 and 1: the pair for which it is nearest to 1/2 splits a part in two.
"""

from dataclasses import dataclass, field

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.groups.pricing.quadratics import least_value

# Pairs closer than this to being together, or apart, count as such.
INTEGRAL = 1e-6


@dataclass(frozen=True)
class GroupChoice:
    """The quadratics Q_p and Q_0, the rows r_p and r, and the matrix of forbidden pairs."""

    quadratics: FloatArray
    base: FloatArray
    rows: IntArray
    least_rows: int
    forbidden: BoolArray

    @property
    def patterns(self) -> int:
        return len(self.rows)

    def cost(self, member: BoolArray) -> float:
        """c_G of the members."""
        return float(least_value(self.base + self.quadratics[member].sum(axis=0), np.zeros_like(self.base)))


@dataclass(order=True)
class Part:
    """Partitions with patterns of one class together and the pairs ``apart`` not; none costs less than ``bound``."""

    bound: float
    number: int
    classes: IntArray = field(compare=False)
    apart: tuple[tuple[int, int], ...] = field(compare=False)


def choice_of_part(c: GroupChoice, part: Part) -> GroupChoice:
    """The groups of a part, with one pattern per class."""
    classes = part.classes
    n = int(classes.max()) + 1
    quadratics, rows = np.zeros((n, *c.base.shape)), np.zeros(n, dtype=np.int64)
    np.add.at(quadratics, classes, c.quadratics)
    np.add.at(rows, classes, c.rows)
    forbidden = np.zeros((n, n), dtype=bool)
    for p, q in part.apart:
        forbidden[classes[p], classes[q]] = forbidden[classes[q], classes[p]] = True
    return GroupChoice(quadratics, c.base, rows, c.least_rows, forbidden)


def groups_of_part(part: Part, known: dict[bytes, float]) -> tuple[BoolArray, FloatArray]:
    """The known groups that are possible in a part, in terms of its classes, and their costs."""
    P = len(part.classes)
    groups = np.frombuffer(b"".join(known), dtype=bool).reshape(-1, P)
    first = np.unique(part.classes, return_index=True)[1]
    merged = groups[:, first]
    possible = (merged[:, part.classes] == groups).all(axis=1)
    for p, q in part.apart:
        possible &= ~(groups[:, p] & groups[:, q])
    return np.ascontiguousarray(merged[possible]), np.array(list(known.values()))[possible]


def fractional_pair(groups: BoolArray, z: FloatArray) -> tuple[int, int] | None:
    """The two patterns for which being together is nearest to 1/2; None if z is integral."""
    together = (groups * z[:, None]).T @ groups
    fraction = np.triu(np.minimum(together, 1.0 - together), k=1)
    p, q = np.unravel_index(int(np.argmax(fraction)), fraction.shape)
    return (int(p), int(q)) if fraction[p, q] > INTEGRAL else None


def children(part: Part, pair: tuple[int, int], bound: float, number: int) -> list[Part]:
    """The part with the two classes together, and with them apart."""
    p, q = (int(np.flatnonzero(part.classes == k)[0]) for k in pair)
    merged = np.where(part.classes == pair[1], pair[0], part.classes)
    together = np.unique(merged, return_inverse=True)[1].astype(np.int64)
    return [Part(bound, number, together, part.apart), Part(bound, number + 1, part.classes, (*part.apart, (p, q)))]
