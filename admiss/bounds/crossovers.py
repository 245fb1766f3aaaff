"""Sample sizes at which the class with the smaller bound changes, and rankings of classes.

The bounds of two classes differ in b(F) and p(F) only. With p the larger count, q the smaller one and kappa the factor
c max{sigma^2, L^2}, the richer class has the smaller bound if

    (1 + log n) / n <= r,     r = 8 (b_q - b_p) / (kappa (p - q)).

The left side decreases from 1 at n = 1 to 0. So the richer class never wins if r <= 0, always if r >= 1, and otherwise
for all n above the root: with u = 1 + log n >= 1 the equation reads -u e^(-u) = -r / e, and

    u = -W_(-1)(-r / e),     n = u / r

with the branch W_(-1) <= -1 of Lambert's function, since -u <= -1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import lambertw

from admiss.adaptivity import Adaptivity
from admiss.bounds.bias import Bias, bias_bound, not_negative, positive
from admiss.bounds.counts import ClassLike, coefficient_count, read_class
from admiss.bounds.moments import moment_gain
from admiss.bounds.theorem import Bound, generalization_bound, read_constant
from admiss.terminal.table import Table

# Largest order of the polynomials compared by default.
LARGEST_ORDER = 10

# b(F) as a rule, a number or an estimate, or one of these for each class.
Biases = Bias | Sequence[Bias]


def crossover(
    a: ClassLike,
    b: ClassLike,
    d: int,
    sigma2: float,
    L: float,
    c: float = 1.0,
    *,
    bias: Biases = "proved",
    constant: str | float = "proved",
    count: str = "effective",
    missing: Any = None,
    adaptive_intercept: bool = True,
    moments: Any = None,
    beta: Any = None,
) -> float | None:
    """The sample size above which the richer of two classes has the smaller bound.

    Parameters
    ----------
    a, b : str, ("polynomial", t) or Adaptivity
        The classes, in any order.
    bias : {"proved", "paper", "moments"}, float, or a pair of these
        b(F), one for both or one for each; see ``bias_bound``. With the moments and slopes of y, the gain of one class
        over the other is exact, without a sum over patterns.
    d, sigma2, L, c, constant, count, missing, adaptive_intercept, moments, beta
        As in ``generalization_bound``.

    Returns
    -------
    float or None
        1.0 if it always has, None if it never has, infinity if n exceeds the largest float.

    Examples
    --------
    >>> round(crossover("static", "affine", 5, sigma2=1.0, L=2.0, missing=0.01), 1)
    86.1
    >>> print(crossover("static", "affine", 5, sigma2=1.0, L=2.0))
    None
    """
    factor = read_constant(constant, not_negative("sigma2", sigma2), positive("L", L))[0]
    log_kappa = math.log(positive("c", c)) + math.log(factor)
    classes = [read_class(a, d), read_class(b, d)]
    counts = [coefficient_count(adaptivity, d, count) for adaptivity in classes]
    if bias == "moments" and beta is not None:
        # only the difference matters
        gain = moment_gain(classes[0], classes[1], moments, missing=missing, beta=beta)
        biases = [max(0.0, gain), max(0.0, -gain)]
    else:
        biases = [
            bias_bound(adaptivity, d, L, bias=rule, missing=missing, adaptive_intercept=adaptive_intercept,
                       moments=moments, beta=beta)
            for adaptivity, rule in zip(classes, one_for_each(bias, 2), strict=True)
        ]  # fmt: skip
    (q, b_q), (p, b_p) = sorted(zip(counts, biases, strict=True), key=lambda pair: (pair[0], -pair[1]))
    if not b_q > b_p:
        return None
    if p == q or b_q == math.inf:
        return 1.0
    log_r = math.log(8.0) + math.log(b_q - b_p) - log_kappa - math.log(p - q)
    if log_r >= 0.0:
        return 1.0
    if log_r < -703.0:  # n = u / r with u > 700 exceeds the largest float
        return math.inf
    r = math.exp(log_r)
    return float(-lambertw(-r / math.e, -1).real / r)


def one_for_each(bias: Biases, classes: int) -> list[Bias]:
    """A bias for each class, given one for all of them or a sequence."""
    if isinstance(bias, list | tuple | np.ndarray):
        if len(bias) != classes:
            raise ValueError(f"bias has {len(bias)} entries for {classes} classes: give one for each, or one for all.")
        return list(bias)
    return [bias] * classes  # type: ignore[list-item]


@dataclass(frozen=True)
class Recommendation:
    """The bounds of several classes, smallest first.

    Attributes
    ----------
    ranking : tuple of Bound
        The bound of each class.
    """

    ranking: tuple[Bound, ...]

    @property
    def best(self) -> Bound:
        """The smallest bound."""
        return self.ranking[0]

    @property
    def table(self) -> Table:
        """The ranking as a table."""
        columns: dict[str, list[Any]] = {
            "class": [bound.name for bound in self.ranking],
            "p": [float(bound.p) if bound.p < 2**1023 else math.inf for bound in self.ranking],
        }
        for name in ("noise", "bias", "estimation", "total", "vacuous"):
            columns[name] = [getattr(bound, name) for bound in self.ranking]
        return Table(**columns)

    def __str__(self) -> str:
        best = self.best
        verdict = (
            f"smallest bound: {best.name}, c = {best.c:g}; c is unknown, so this ranks classes and does not certify"
        )
        caveats = sorted({bound.caveat for bound in self.ranking} - {""})
        if caveats:
            verdict += f"\n{'; '.join(caveats)}"
        if best.unknowable:
            verdict += "\nthe bias of the best class cannot be known from L and p"
        if best.vacuous:
            verdict += "\nall bounds are above the one by truncation alone: they say nothing at this n"
        return f"{self.table!r}\n{verdict}"


def recommend(
    n: float,
    d: int,
    sigma2: float,
    L: float,
    classes: Sequence[ClassLike] | None = None,
    c: float = 1.0,
    *,
    bias: Biases = "proved",
    constant: str | float = "proved",
    count: str = "effective",
    missing: Any = None,
    adaptive_intercept: bool = True,
    moments: Any = None,
    beta: Any = None,
) -> Recommendation:
    """Classes ranked by their bounds at n rows.

    Parameters
    ----------
    classes : sequence of classes, optional
        Static, affine intercept, affine, the orders 2 to 10 (at most d) and fully adaptive by default.
    bias : {"proved", "paper", "moments"}, float, or a sequence of these
        b(F), one for all or one for each of ``classes``, for instance as returned by ``estimate_bias``.
    n, d, sigma2, L, c, constant, count, missing, adaptive_intercept, moments, beta
        As in ``generalization_bound``.

    Examples
    --------
    >>> print(recommend(10_000, 3, sigma2=1.0, L=1.0, missing=0.05))
    class              p  noise      bias  estimation    total  vacuous
    order 3           20      1         0   0.0204207  1.02042  False
    fully adaptive    20      1         0   0.0204207  1.02042  False
    order 2           19      1  0.054872   0.0193996  1.07427  False
    affine            13      1  0.921272   0.0132734  1.93455  False
    static             4      1   5.48127  0.00408414  6.48536  True
    affine intercept   7      1   5.48127  0.00714724  6.48842  True
    smallest bound: order 3, c = 1; c is unknown, so this ranks classes and does not certify
    """
    candidates = default_classes(d) if classes is None else [read_class(adaptivity, d) for adaptivity in classes]
    if not candidates:
        raise ValueError("There is no class to recommend: give at least one.")
    bounds = [
        generalization_bound(n, d, adaptivity, sigma2, L, c, rule, constant, count, missing,
                             adaptive_intercept=adaptive_intercept, moments=moments, beta=beta)
        for adaptivity, rule in zip(candidates, one_for_each(bias, len(candidates)), strict=True)
    ]  # fmt: skip
    return Recommendation(tuple(sorted(bounds, key=lambda bound: (bound.total, bound.p))))


def default_classes(d: int) -> list[Adaptivity]:
    """The hierarchy of the paper on d features, poorest first."""
    orders: list[ClassLike] = [("polynomial", t) for t in range(2, min(d, LARGEST_ORDER) + 1)]
    names: list[ClassLike] = ["static", "affine_intercept", "affine", *orders, "fully_adaptive"]
    return [read_class(name, d) for name in names]
