"""Theorem 1: a bound on the risk of truncated least squares over an adaptivity class.

Let the noise have variance sigma^2 and the truth be fully adaptive, with |f*| <= L for all x in a box that contains 0
(for b(F); the rest needs it on the data only, as in Assumption 2.1). The least squares estimate f_n over the class F
from n rows, truncated at +-L, has

    E[(Y - T_L f_n)^2] <= sigma^2 + 8 b(F) + c max{sigma^2, L^2} (1 + log n) / n p(F)

with a universal constant c > 0 (Gyorfi, Kohler, Krzyzak and Walk 2002, Theorem 11.3), b(F) of ``bias`` and p(F) of
``counts``. The paper prints max{sigma^2, L}, which is not what its source says, and not in the units of Y^2.

* c is universal but unknown. With c = 1 the numbers compare classes with each other; they do not certify a risk.
* The theorem is about least squares without a penalty. It does not apply to models with lambda > 0.
* Truncation alone bounds the risk by sigma^2 + 4 L^2, since f* and T_L f_n are both in [-L, L]. A larger bound is
  vacuous.

The estimation part is a product of possibly huge (p) and tiny (1/n) numbers; it is computed in logarithms.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from admiss.bounds.bias import Bias, Estimated, bias_bound, exp_or_inf, not_negative, positive
from admiss.bounds.missing_law import read_missing
from admiss.bounds.counts import ClassLike, class_name, coefficient_count, read_class

CONSTANTS = ("proved", "paper")
AS_PRINTED = "as printed, not a bound"
GIVEN, ESTIMATED = "given as a number", "an estimate"


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

    @property
    def b(self) -> float:
        """b(F), without its factor 8."""
        return self.bias / 8

    @property
    def caveat(self) -> str:
        """Why it is not a bound even for the right c: an ingredient is as printed, given, estimated or too low."""
        rules = (self.bias_rule, self.constant_rule)
        if any(AS_PRINTED in rule for rule in rules):
            return AS_PRINTED
        if any(GIVEN in rule or ESTIMATED in rule for rule in rules):
            return "given numbers or an estimate, not a bound"
        return "counted without the intercept, not a bound" if self.count == "table" else ""

    @property
    def is_bound(self) -> bool:
        """Whether Theorem 1 proves it, up to the constant c."""
        return not self.caveat

    def __str__(self) -> str:
        truncation = f"truncation alone gives {self.noise + 4 * self.L * self.L:.6g}"
        rows = {
            "class": f"{self.name}, p(F) = {short(self.p)} ({self.count} count), d = {self.d}, n = {short(self.n)}",
            "noise": f"{self.noise:.6g}",
            "bias": f"{self.bias:.6g} ({self.bias_rule})",
            "estimation": f"{self.estimation:.6g} ({self.constant_rule}; c = {self.c:g})",
            "total": f"{self.total:.6g}{f' ({self.caveat})' if self.caveat else ''}",
            "vacuous": f"{'yes' if self.vacuous else 'no'}: {truncation}",
            "note": "c is universal but unknown: this compares classes and does not certify a risk",
            "": "about least squares without a penalty, truncated at +-L; |f*| <= L on a box of x that contains 0",
        }
        return "\n".join(f"{name:<11} {value}" for name, value in rows.items())


def generalization_bound(
    n: float,
    d: int,
    adaptivity: ClassLike,
    sigma2: float,
    L: float,
    c: float = 1.0,
    bias: Bias = "proved",
    constant: str | float = "proved",
    count: str = "effective",
    missing: Any = None,
) -> Bound:
    """The bound of Theorem 1 for a class.

    Parameters
    ----------
    n : float
        Rows, at least 1.
    d : int
        Features.
    adaptivity : str, ("polynomial", t) or Adaptivity
        The class.
    sigma2 : float
        Variance of the noise.
    L : float
        Bound on |f*|, at which predictions are truncated. For the proved bias it must hold for all x in a box that
        contains 0, which is stronger than a bound on the data if features are strongly correlated.
    c : float
        The constant of the theorem. It is unknown; 1 serves to compare classes.
    bias : {"proved", "paper"}, float or Estimate
        b(F), see ``bias_bound``.
    constant : {"proved", "paper"} or float
        max{sigma^2, L^2}; max{sigma^2, L} as printed; or a number.
    count : {"effective", "table"}
        p(F), see ``coefficient_count``.
    missing : optional
        The law of M, see ``bias_bound``; the worst case by default.

    Examples
    --------
    >>> print(generalization_bound(10_000, 5, "affine", sigma2=1.0, L=2.0, missing=0.01))
    class       affine, p(F) = 31 (effective count), d = 5, n = 10000
    noise       1
    bias        0.623402 (proved, law of M: independent, with the given probabilities)
    estimation  0.126608 (factor max{sigma^2, L^2} = 4, proved; c = 1)
    total       1.75001
    vacuous     no: truncation alone gives 17
    note        c is universal but unknown: this compares classes and does not certify a risk
                about least squares without a penalty, truncated at +-L; |f*| <= L on a box of x that contains 0
    """
    log_n = log_rows(n)
    adaptivity = read_class(adaptivity, d)
    noise, L, c = not_negative("sigma2", sigma2), positive("L", L), positive("c", c)
    factor, constant_rule = read_constant(constant, noise, L)
    p = coefficient_count(adaptivity, d, count)
    b = bias_bound(adaptivity, d, L, bias=bias, missing=missing)
    estimation = exp_or_inf(math.log(c) + math.log(factor) + math.log1p(log_n) - log_n + math.log(p))
    total = noise + 8 * b + estimation
    return Bound(
        name=class_name(adaptivity),
        n=n,
        d=int(d),
        noise=noise,
        bias=8 * b,
        estimation=estimation,
        total=total,
        vacuous=total > noise + 4 * L * L,
        p=p,
        L=L,
        c=c,
        bias_rule=_bias_rule(bias, missing, int(d)),
        constant_rule=constant_rule,
        count=count,
    )


def log_rows(n: Any) -> float:
    """The logarithm of a number of rows, which may be larger than any float."""
    if not isinstance(n, int | float | np.integer | np.floating) or isinstance(n, bool) or not 1 <= n < math.inf:
        raise ValueError(f"n must be a finite number of rows, at least 1, not {n!r}.")
    return math.log(n)


def read_constant(constant: str | float, sigma2: float, L: float) -> tuple[float, str]:
    """The factor of the estimation part, and its source in words."""
    if isinstance(constant, str) and constant in CONSTANTS:
        largest, text = (L * L, "L^2") if constant == "proved" else (L, "L")
        factor = max(sigma2, largest)
        rule = "proved" if constant == "proved" else AS_PRINTED
        return factor, f"factor max{{sigma^2, {text}}} = {factor:g}, {rule}"
    if isinstance(constant, str):
        raise ValueError(f"constant must be 'proved', 'paper' or a positive number, not {constant!r}.")
    return positive("constant", constant), f"factor {GIVEN}"


def _bias_rule(bias: Bias, missing: Any, d: int) -> str:
    if isinstance(bias, Estimated):
        return f"{ESTIMATED}, standard error {8 * bias.standard_error:.2g}"
    if bias == "proved":
        return f"proved, law of M: {read_missing(missing, d).text}"
    return AS_PRINTED if bias == "paper" else GIVEN


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
