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

from scipy.special import lambertw

from admiss.bounds.bias import bias_of
from admiss.bounds.counts import ClassLike, coefficient_count, hierarchy, read_class
from admiss.bounds.moments import moment_gain
from admiss.bounds.setting import BoundSetting, takes_setting
from admiss.bounds.theorem import Bound, estimation_factor, generalization_bound
from admiss.terminal.table import Table

# Largest order of the polynomials compared by default.
LARGEST_ORDER = 10


@takes_setting("a", "b", "d", "sigma2", "L", "c")
def crossover(setting: BoundSetting, a: ClassLike, b: ClassLike) -> float | None:
    """The sample size above which the richer of two classes has the smaller bound.

    Parameters
    ----------
    setting : BoundSetting
        As in ``generalization_bound``; its ``bias`` may be a pair. With the moments and slopes of y, the gain of one
        class over the other is exact, without a sum over patterns.
    a, b : str, ("polynomial", t) or Adaptivity
        The classes, in any order.

    Returns
    -------
    float or None
        1.0 if it always has, None if it never has, infinity if n exceeds the largest float.

    Examples
    --------
    >>> round(crossover(BoundSetting(d=5, sigma2=1.0, L=2.0, missing=0.01), "static", "affine"), 1)
    86.1
    >>> print(crossover(BoundSetting(d=5, sigma2=1.0, L=2.0), "static", "affine"))
    None
    """
    classes = [read_class(a, setting.d), read_class(b, setting.d)]
    counts = [coefficient_count(adaptivity, setting.d, setting.count) for adaptivity in classes]
    if isinstance(setting.bias, str) and setting.bias == "moments" and setting.beta is not None:
        # only the difference matters
        gain = moment_gain(classes[0], classes[1], setting.moments, missing=setting.missing, beta=setting.beta)
        biases = [max(0.0, gain), max(0.0, -gain)]
    else:
        biases = [bias_of(own, F).value for own, F in zip(setting.for_each(2), classes, strict=True)]
    (q, b_q), (p, b_p) = sorted(zip(counts, biases, strict=True), key=lambda pair: (pair[0], -pair[1]))
    if not b_q > b_p:
        return None
    if p == q or b_q == math.inf:
        return 1.0
    log_kappa = math.log(setting.c) + math.log(estimation_factor(setting)[0])
    log_r = math.log(8.0) + math.log(b_q - b_p) - log_kappa - math.log(p - q)
    if log_r >= 0.0:
        return 1.0
    if log_r < -703.0:  # n = u / r with u > 700 exceeds the largest float
        return math.inf
    r = math.exp(log_r)
    return float(-lambertw(-r / math.e, -1).real / r)


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


@takes_setting("n", "d", "sigma2", "L", "classes", "c")
def recommend(setting: BoundSetting, n: float, classes: Sequence[ClassLike] | None = None) -> Recommendation:
    """Classes ranked by their bounds at n rows.

    Parameters
    ----------
    setting : BoundSetting
        As in ``generalization_bound``; its ``bias`` may have one entry for each of ``classes``, for instance as
        returned by ``estimate_bias``.
    n : float
        Rows, at least 1.
    classes : sequence of classes, optional
        Static, affine intercept, affine, the orders 2 to 10 (at most d) and fully adaptive by default.

    Examples
    --------
    >>> print(recommend(BoundSetting(d=3, sigma2=1.0, L=1.0, missing=0.05), 10_000))
    class              p  noise      bias  estimation    total  vacuous
    order 3           20      1         0   0.0204207  1.02042  False
    fully adaptive    20      1         0   0.0204207  1.02042  False
    order 2           19      1  0.054872   0.0193996  1.07427  False
    affine            13      1  0.921272   0.0132734  1.93455  False
    static             4      1   5.48127  0.00408414  6.48536  True
    affine intercept   7      1   5.48127  0.00714724  6.48842  True
    smallest bound: order 3, c = 1; c is unknown, so this ranks classes and does not certify
    """
    candidates = hierarchy(setting.d, min(setting.d, LARGEST_ORDER)) if classes is None else list(classes)
    if not candidates:
        raise ValueError("There is no class to recommend: give at least one.")
    bounds = [
        generalization_bound(own, n, F) for own, F in zip(setting.for_each(len(candidates)), candidates, strict=True)
    ]
    return Recommendation(tuple(sorted(bounds, key=lambda bound: (bound.total, bound.p))))
