"""Theorem 1: a bound on the risk of truncated least squares over an adaptivity class, and classes ranked by it.

Let the noise have variance sigma^2 and the truth be fully adaptive, with |f*| <= L for all x in a box that contains 0
(for b(F); the rest needs it on the data only, as in Assumption 2.1). The least squares estimate f_n over the class F
from n rows, truncated at +-L, has

    E[(Y - T_L f_n)^2] <= sigma^2 + 8 b(F) + c max{sigma^2, L^2} (1 + log n) / n p(F)

with a universal constant c > 0 (Gyorfi, Kohler, Krzyzak and Walk 2002, Theorem 11.3), b(F) of ``bias`` and p(F) of
``counts``. The paper prints max{sigma^2, L}, which is not what its source says, and not in the units of Y^2.

* c is universal but unknown. With c = 1 the numbers compare classes with each other; they do not certify a risk.
* The theorem is about least squares without a penalty. It does not apply to models with lambda > 0.
* The largest b(F) over all truths with this L is between the two sides in ``bias``. Where the lower one is L^2 / 2
  or more, 8 b(F) alone reaches 4 L^2 for some truth: no bound of this form from L and the law of M can be of use.
* Truncation alone bounds the risk by sigma^2 + 4 L^2, since f* and T_L f_n are both in [-L, L]. A larger bound is
  vacuous.

The estimation part is a product of possibly huge (p) and tiny (1/n) numbers; it is computed in logarithms.

*Crossovers.* The bounds of two classes differ in b(F) and p(F) only. With p the larger count, q the smaller one and
kappa the factor c max{sigma^2, L^2}, the richer class has the smaller bound if

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

from admiss.bounds.bias import AS_PRINTED, ESTIMATED, GIVEN, bias_of, exp_or_inf
from admiss.bounds.counts import ClassLike, class_name, coefficient_count, hierarchy, read_class
from admiss.bounds.moments import INDEPENDENCE, moment_gain
from admiss.bounds.setting import BoundSetting, takes_setting
from admiss.terminal.table import Table

# Largest order of the polynomials compared by default.
LARGEST_ORDER = 10


@dataclass(frozen=True)
class Bound:
    """The bound of Theorem 1 and its parts: ``noise + bias + estimation = total``.

    Attributes
    ----------
    name : str
        Name of the class.
    n, d : number
        Rows and features.
    noise : float
        sigma^2.
    bias : float
        8 b(F).
    estimation : float
        c max{sigma^2, L^2} (1 + log n) / n p(F).
    total : float
        Their sum.
    vacuous : bool
        Whether the total is above sigma^2 + 4 L^2, the bound by truncation alone.
    p : int
        Number of coefficients p(F).
    L, c : float
        Bound on |f*|, and the constant of the theorem.
    bias_rule, constant_rule, count : str
        The sources of b(F), the factor and p(F), in words.
    lower_bias : float or None
        For the proved bias: some truth with this L and this law of M has an 8 b(F) of at least this much. None if
        unknown.
    """

    name: str
    n: float
    d: int
    noise: float
    bias: float
    estimation: float
    total: float
    vacuous: bool
    p: int
    L: float
    c: float
    bias_rule: str
    constant_rule: str
    count: str
    lower_bias: float | None = None

    @property
    def b(self) -> float:
        """b(F), without its factor 8."""
        return self.bias / 8

    @property
    def caveat(self) -> str:
        """Why it is not a bound even for the right c: an ingredient is as printed, given, estimated or too low."""
        rules = f"{self.bias_rule}, {self.constant_rule}"
        if AS_PRINTED in rules:
            return AS_PRINTED
        if INDEPENDENCE in rules:
            return "b(F) by second moments, M independent of (X, y), not a bound"
        if GIVEN in rules or ESTIMATED in rules:
            return "given numbers or an estimate, not a bound"
        return "counted without the intercept, not a bound" if self.count == "table" else ""

    @property
    def is_bound(self) -> bool:
        """Whether Theorem 1 proves it, up to the constant c."""
        return not self.caveat

    @property
    def unknowable(self) -> bool:
        """Whether some truth with this L and this law of M has an 8 b(F) of 4 L^2 or more, as by truncation alone."""
        return self.lower_bias is not None and self.lower_bias >= 4 * self.L * self.L

    @property
    def _sides(self) -> str:
        """The two sides of the largest bias, in words."""
        assert self.lower_bias is not None
        if self.unknowable:
            return (
                f"the bias cannot be known from L and p: truths with this L have a bias part from 0 to at least "
                f"{self.lower_bias:.6g}"
            )
        return f"the largest bias part of all truths with this L is between {self.lower_bias:.6g} and {self.bias:.6g}"

    def __str__(self) -> str:
        truncation = f"truncation alone gives {self.noise + 4 * self.L * self.L:.6g}"
        rows = {
            "class": f"{self.name}, p(F) = {short(self.p)} ({self.count} count), d = {self.d}, n = {short(self.n)}",
            "noise": f"{self.noise:.6g}",
            "bias": f"{self.bias:.6g} ({self.bias_rule})",
            **({"two-sided": self._sides} if self.lower_bias is not None and self.bias > 0 else {}),
            "estimation": f"{self.estimation:.6g} ({self.constant_rule}; c = {self.c:g})",
            "total": f"{self.total:.6g}{f' ({self.caveat})' if self.caveat else ''}",
            "vacuous": f"{'yes' if self.vacuous else 'no'}: {truncation}",
            "note": "c is universal but unknown: this compares classes and does not certify a risk",
            "": "about least squares without a penalty, truncated at +-L; |f*| <= L on a box of x that contains 0",
        }
        return "\n".join(f"{name:<11} {value}" for name, value in rows.items())


@takes_setting("n", "d", "adaptivity", "sigma2", "L", "c", "bias", "constant", "count", "missing")
def generalization_bound(setting: BoundSetting, n: float, adaptivity: ClassLike) -> Bound:
    """The bound of Theorem 1 for a class.

    Parameters
    ----------
    setting : BoundSetting
        Features, noise, L, the law of M, and where b(F), p(F) and the factor come from. With the proved bias the
        largest bias of all truths is printed from both sides.
    n : float
        Rows, at least 1.
    adaptivity : str, ("polynomial", t) or Adaptivity
        The class.

    Examples
    --------
    >>> print(generalization_bound(BoundSetting(d=5, sigma2=1.0, L=2.0, missing=0.01), 10_000, "affine"))
    class       affine, p(F) = 31 (effective count), d = 5, n = 10000
    noise       1
    bias        0.522079 (proved, law of M: independent of each other and of X, as given)
    two-sided   the largest bias part of all truths with this L is between 0.463236 and 0.522079
    estimation  0.126608 (factor max{sigma^2, L^2} = 4, proved; c = 1)
    total       1.64869
    vacuous     no: truncation alone gives 17
    note        c is universal but unknown: this compares classes and does not certify a risk
                about least squares without a penalty, truncated at +-L; |f*| <= L on a box of x that contains 0
    """
    log_n = _log_rows(n)
    adaptivity = read_class(adaptivity, setting.d)
    p = coefficient_count(adaptivity, setting.d, setting.count, n)
    b = bias_of(setting, adaptivity)
    factor, constant_rule = estimation_factor(setting)
    estimation = exp_or_inf(math.log(setting.c) + math.log(factor) + math.log1p(log_n) - log_n + math.log(p))
    total = setting.sigma2 + 8 * b.value + estimation
    return Bound(
        name=class_name(adaptivity),
        n=n,
        d=setting.d,
        noise=setting.sigma2,
        bias=8 * b.value,
        estimation=estimation,
        total=total,
        vacuous=total > setting.truncation,
        p=p,
        L=setting.L,
        c=setting.c,
        bias_rule=b.source,
        constant_rule=constant_rule,
        count=setting.count,
        lower_bias=None if b.lower is None else 8 * b.lower,
    )


def _log_rows(n: Any) -> float:
    """The logarithm of a number of rows, which may be larger than any float."""
    if not isinstance(n, int | float | np.integer | np.floating) or isinstance(n, bool) or not 1 <= n < math.inf:
        raise ValueError(f"n must be a finite number of rows, at least 1, not {n!r}.")
    return math.log(n)


def estimation_factor(setting: BoundSetting) -> tuple[float, str]:
    """The factor of the estimation part, and its source in words."""
    if setting.constant == "proved":
        factor = max(setting.sigma2, setting.L * setting.L)
        return factor, f"factor max{{sigma^2, L^2}} = {factor:g}, proved"
    if setting.constant == "paper":
        factor = max(setting.sigma2, setting.L)
        return factor, f"factor max{{sigma^2, L}} = {factor:g}, {AS_PRINTED}"
    return float(setting.constant), f"factor {GIVEN}"


def short(number: float) -> str:
    """A number as text, in scientific notation if large; integers may exceed the largest float.

    Examples
    --------
    >>> short(111), short(2**2000), short(1e300)
    ('111', '1.15e+602', '1e+300')
    """
    if number < 10**9 or isinstance(number, float):
        return f"{number:.10g}"
    exponent = math.floor(math.log10(number))
    return f"{10 ** (math.log10(number) - exponent):.2f}e+{exponent}"


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
