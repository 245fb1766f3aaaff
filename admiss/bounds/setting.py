"""What is known of the truth, the noise and the missing values: the setting of Theorem 1, and the law of M in it."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property, wraps
from inspect import Parameter, Signature
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

import numpy as np

from admiss.bounds.counts import COUNTS, all_patterns, check_choice
from admiss.estimator.validation import is_number, positive_integer
from admiss.patterns import PatternTable
from formulations.arrays import FloatArray

P = ParamSpec("P")
R = TypeVar("R")


@runtime_checkable
class Estimated(Protocol):
    """A value with its standard error, as returned by ``estimate_bias``."""

    value: float
    standard_error: float


Bias = str | float | Estimated
BIASES = ("proved", "paper", "table", "moments")


@dataclass(frozen=True)
class MissingLaw:
    """A law of M: independent M_j, patterns with their probabilities, or, without either, the worst of all laws."""

    text: str
    # P(M_j = 1) of independent M_j.
    rates: FloatArray | None = None
    patterns: FloatArray | None = None
    probabilities: FloatArray | None = None

    def enumerated(self) -> tuple[FloatArray, FloatArray]:
        """All patterns of positive probability, and their probabilities; not for the worst of all laws."""
        if self.rates is None:
            assert self.patterns is not None
            assert self.probabilities is not None
            return self.patterns, self.probabilities
        free = np.flatnonzero((self.rates > 0) & (self.rates < 1))
        bits = all_patterns(len(free))
        patterns = np.tile(1.0 * (self.rates == 1), (len(bits), 1))
        patterns[:, free] = bits
        return patterns, np.where(bits == 1, self.rates[free], 1 - self.rates[free]).prod(axis=1)


@dataclass(frozen=True, eq=False)
class BoundSetting:
    """What the bounds of several classes have in common.

    Parameters
    ----------
    d : int
        Features.
    sigma2 : float
        Variance of the noise.
    L : float
        Bound on |f*|, at which predictions are truncated. For the proved bias it must hold for all x in a box that
        contains 0, which is stronger than a bound on the data if features are strongly correlated.
    c : float
        The constant of the theorem. It is unknown; 1 serves to compare classes.
    bias : {"proved", "paper", "table", "moments"}, float, Estimate, or a sequence of these
        b(F): the bound that is proved; the printed form, that of the appendix or that of Table 1, which are not bounds;
        the value by second moments, which needs ``moments`` and ``missing``, see ``moment_bias``; a number; or an
        estimate, 0 if negative. A sequence has one for each of several classes.
    constant : {"proved", "paper"} or float
        max{sigma^2, L^2}; max{sigma^2, L} as printed; or a number.
    count : {"effective", "table"}
        p(F), see ``coefficient_count``.
    missing : float, array, mechanism or None
        The law of M: a 0/1 matrix (its rows, equally likely), a pair of a mechanism and features, from which one draw
        is made, a probability or one for each feature (independent), or a ``CompletelyAtRandom``. The worst of all laws
        by default. A matrix gives the bias under the law of its rows. For the population this is an estimate, which
        tends to be too small at high orders: rare patterns with many missing features dominate the expectation.
        Probabilities are for M_k that are independent of each other and of X.
    adaptive_intercept : bool
        Whether the truth may have an intercept that depends on the pattern, as the fully adaptive class has, and as in
        the data of the paper's authors. Without, the bias vanishes from order d - 1 on, with one from order d on.
    moments : pair of mean and covariance, or Law, optional
        For ``bias="moments"``: of the features as they enter the model.
    beta : array of shape (d,), optional
        For ``bias="moments"``: slopes of the best linear predictor of y from the full features; by default the worst
        ones with Var(beta'X) = 1.

    Examples
    --------
    >>> from admiss.bounds import crossover, generalization_bound
    >>> setting = BoundSetting(d=5, sigma2=1.0, L=2.0, missing=0.01)
    >>> round(generalization_bound(setting, 10_000, "affine").total, 3)
    1.649
    >>> round(crossover(setting, "static", "affine"), 1)
    86.1
    """

    d: int
    sigma2: float
    L: float
    c: float = 1.0
    bias: Any = "proved"
    constant: str | float = "proved"
    count: str = "effective"
    missing: Any = None
    adaptive_intercept: bool = True
    moments: Any = None
    beta: Any = None

    def __post_init__(self) -> None:
        numbers = {
            "d": positive_integer("d", self.d),
            "sigma2": not_negative("sigma2", self.sigma2),
            "L": positive("L", self.L),
            "c": positive("c", self.c),
        }
        for name, number in numbers.items():
            object.__setattr__(self, name, number)
        check_choice("count", self.count, COUNTS)
        if isinstance(self.constant, str) and self.constant not in ("proved", "paper"):
            raise ValueError(f"constant must be 'proved', 'paper' or a positive number, not {self.constant!r}.")
        if not isinstance(self.constant, str):
            positive("constant", self.constant)
        for rule in self.bias if self._has_several_biases else [self.bias]:
            _check_bias(rule)

    @property
    def _has_several_biases(self) -> bool:
        return isinstance(self.bias, list | tuple | np.ndarray)

    @cached_property
    def law(self) -> MissingLaw:
        """The law of M."""
        return read_missing(self.missing, self.d)

    @property
    def truncation(self) -> float:
        """sigma^2 + 4 L^2, the bound by truncation alone."""
        return self.sigma2 + 4 * self.L * self.L

    def for_each(self, n_classes: int) -> list["BoundSetting"]:
        """The setting of each of several classes, with one b(F) each."""
        if not self._has_several_biases:
            return [self] * n_classes
        if len(self.bias) != n_classes:
            raise ValueError(
                f"bias has {len(self.bias)} entries for {n_classes} classes: give one for each, or one for all."
            )
        return [replace(self, bias=rule) for rule in self.bias]


def _check_bias(rule: Any) -> None:
    if isinstance(rule, str):
        if rule not in BIASES:
            raise ValueError(
                f"bias must be one of {', '.join(map(repr, BIASES))} or a non-negative number, not {rule!r}."
            )
    elif not isinstance(rule, Estimated):
        not_negative("bias", rule)


def takes_setting(*former: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function that takes a setting first be called as before, with the fields of the setting as parameters.

    ``former`` are the parameters that could be given by position, in their order.
    """
    positions = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in former]
    signature = Signature([*positions, Parameter("others", Parameter.VAR_KEYWORD)])
    names = [field.name for field in fields(BoundSetting)]

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **keywords: P.kwargs) -> R:
            if "setting" in keywords or (args and isinstance(args[0], BoundSetting)):
                return function(*args, **keywords)
            warnings.warn(
                f"From the next version on {function.__name__} needs a BoundSetting(d, sigma2, L, ..) as its first "
                "argument, in place of separate parameters.",
                FutureWarning,
                stacklevel=2,
            )
            arguments = signature.bind_partial(*args, **keywords).arguments
            arguments |= arguments.pop("others", {})
            setting = BoundSetting(**{name: arguments.pop(name) for name in names if name in arguments})
            return function(setting, **arguments)  # type: ignore[arg-type]

        return call

    return decorate


def read_missing(missing: Any, d: int) -> MissingLaw:
    """The law given by the argument ``missing``.

    Examples
    --------
    >>> read_missing(0.25, 2).rates.tolist()
    [0.25, 0.25]
    >>> read_missing([[0, 1], [0, 1], [0, 0], [1, 1]], 2).probabilities.tolist()
    [0.25, 0.5, 0.25]
    """
    if missing is None:
        return MissingLaw("the worst of all laws")
    missing = getattr(missing, "independent_rates", missing)
    if isinstance(missing, tuple) and len(missing) == 2 and callable(missing[0]):
        mechanism, X = missing
        missing = mechanism(X, np.random.RandomState(0))
    elif callable(missing):
        raise ValueError("A mechanism needs features to act on: use missing=(mechanism, X).")
    try:
        values = np.asarray(missing, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"missing must be a 0/1 matrix, probabilities or a mechanism, not {missing!r}.") from error
    if values.ndim == 0:
        values = np.full(d, float(values))
    if values.ndim > 2 or values.shape[-1] != d or values.size == 0:
        raise ValueError(f"missing has shape {values.shape}: give rows of {d} features, or {d} probabilities.")
    if values.ndim == 1:
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError("The probabilities in missing must be between 0 and 1.")
        return MissingLaw("independent of each other and of X, as given", rates=values)
    if not np.isin(values, (0.0, 1.0)).all():
        raise ValueError("missing must be a matrix of 0 and 1, such as isnan(X).")
    table = PatternTable.of(values)
    text = f"that of the {len(values)} rows, an estimate for others"
    patterns = np.asarray(table.patterns, dtype=float)
    return MissingLaw(text, patterns=patterns, probabilities=table.weights / len(values))


def positive(name: str, value: Any) -> float:
    """A positive number whose square neither vanishes nor overflows."""
    if isinstance(value, bool) or not is_number(value, 1e150) or value < 1e-150:
        raise ValueError(f"{name} must be a positive number (between 1e-150 and 1e150), not {value!r}.")
    return float(value)


def not_negative(name: str, value: Any) -> float:
    """A finite non-negative number."""
    if isinstance(value, bool) or not is_number(value):
        raise ValueError(f"{name} must be a finite non-negative number, not {value!r}.")
    return float(value)


def read_share(name: str, value: Any) -> float:
    """A number between 0 and 1."""
    if isinstance(value, bool) or not is_number(value, 1.0) or value in (0, 1):
        raise ValueError(f"{name} must be a number between 0 and 1, not {value!r}.")
    return float(value)
