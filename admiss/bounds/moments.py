"""The bias of a class by second moments, exact if M is independent of (X, y).

Let M be independent of (X, y) jointly, let X have mean mu and covariance C, as it enters the model, and let b be the
slopes of the best linear predictor of y from X. At a pattern with observed features o the best linear predictor leaves
b'R(m) b of b'X unexplained, with the residual covariance R(m) = C - C_:o C_oo^+ C_o:. The excess of the best member of
F over the best **pattern-wise linear** predictor is therefore

    b(F) = b'B b,     B = U - E R(M),

with U of ``design_moments``. It is the bias of the paper if E[Y | x_obs, m] is linear at each pattern: for Gaussian X
and linear E[Y | X], or under Assumption 2.1. For other truths it is the part of the bias that richer linear classes can
mend. The largest b'B b with Var(b'X) = b'C b = 1 is an eigenvalue, of T'B T with T T' = C^+.

The gain of a class over another, b'(U_F - U_F') b, needs no sum over patterns. E R(M) is a sum over 2^k of them, k the
number of features that may be missing, up to k = 15. Beyond that b'B b is a mean over drawn patterns, with its standard
error, of what the best member of F leaves unexplained at m minus b'R(m) b: all of these are non-negative, and small if
the bias is. R(m) is computed by conditioning on one observed feature after the other.

If M depends on X or y, the moments of the observed rows of a pattern are not those of X: nothing here is a statement
about such data.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from admiss.adaptivity import Adaptivity, FullyAdaptive
from admiss.bounds.counts import ClassLike, read_class
from admiss.bounds.design_moments import BATCH, design_of
from admiss.bounds.setting import MissingLaw, read_missing
from admiss.laws import Law
from formulations.arrays import FloatArray
from formulations.rounding import PIVOT_TOLERANCE as DEPENDENT

# Largest number of features with missing values whose patterns are all summed: 2^15 of them take .3 s.
ENUMERATED = 15
INDEPENDENCE = "no statement about data in which M depends on X or y"


@dataclass(frozen=True)
class MomentBias:
    """The excess of a class over the best pattern-wise linear predictor, by second moments.

    Attributes
    ----------
    value, standard_error : float
        The error is that of the mean over drawn patterns, 0 if all patterns are enumerated.
    beta : array of shape (d,)
        The slopes it is for.
    note : str
        Its meaning.
    """

    value: float
    standard_error: float
    beta: FloatArray
    note: str

    def __str__(self) -> str:
        error = f" ± {self.standard_error:.2g}" if self.standard_error else ""
        return f"{self.value:.4g}{error}, excess over the best linear predictor of each pattern: {self.note}"


def moment_bias(
    adaptivity: ClassLike,
    moments: Any,
    *,
    missing: Any,
    beta: Any = None,
    d: int | None = None,
    draws: int = 10_000,
    random_state: Any = 0,
) -> MomentBias:
    """The bias of a class over the best pattern-wise linear predictor, by second moments.

    Parameters
    ----------
    adaptivity : str, ("polynomial", t) or Adaptivity
        The class.
    moments : pair of mean and covariance, or Law
        Of the features as they enter the model; those of estimators of this package are centred, their mean is 0. A law
        fitted by :mod:`admiss.laws` stands for its centred features, and the result is labelled an estimate.
    missing : float, array or mechanism
        The law of M, see ``BoundSetting``. M must be independent of (X, y).
    beta : array of shape (d,), optional
        Slopes of the best linear predictor of y from X; by default those of the largest bias with Var(beta'X) = 1.
    d : int, optional
        Features, to be checked.
    draws : int
        Patterns drawn if more than 15 features can be missing.
    random_state : int, RandomState or None
        Seed of the draws.

    Examples
    --------
    >>> C = 0.5 ** np.abs(np.subtract.outer(range(10), range(10)))
    >>> for adaptivity in ("static", "affine", ("polynomial", 2)):
    ...     print(f"{moment_bias(adaptivity, (np.zeros(10), C), missing=0.3).value:.4f}")
    0.1060
    0.0042
    0.0002
    """
    features = read_moments(moments, d)
    law = _read_law(missing, len(features.mean))
    adaptivity = read_class(adaptivity, len(features.mean))
    rng = check_random_state(random_state)
    if type(adaptivity) is FullyAdaptive:
        slopes = features.slopes(beta, features.correlation)
        return MomentBias(0.0, 0.0, slopes / features.scale, _note(moments, beta))
    R, drawn = _pattern_wise(features.correlation, law, draws, rng)
    design = design_of(adaptivity, features.mean, features.correlation, law)
    B = design.unexplained(features.correlation) - R
    slopes = features.slopes(beta, B)
    value = float(slopes @ B @ slopes)
    error = 0.0
    if drawn is not None:
        patterns, residuals = drawn
        excess = design.unexplained_at(patterns, features.correlation, slopes)
        excess -= np.einsum("i,kij,j->k", slopes, residuals, slopes)
        value = float(excess.mean())
        error = float(excess.std(ddof=1) / np.sqrt(len(excess)))
    return MomentBias(value, error, slopes / features.scale, _note(moments, beta, error))


def moment_gain(poor: ClassLike, rich: ClassLike, moments: Any, *, missing: Any, beta: Any = None) -> float:
    """What the best member of a class gains over that of another in mean squared error, without a sum over patterns.

    Parameters
    ----------
    poor, rich : str, ("polynomial", t) or Adaptivity
        The classes; the gain is that of the second one, negative if the first one is better.
    moments, missing, beta
        As in ``moment_bias``; by default beta is that of the largest gain with Var(beta'X) = 1.

    Examples
    --------
    >>> C = 0.5 ** np.abs(np.subtract.outer(range(10), range(10)))
    >>> slopes = np.repeat([1.0, 0.0], 5)
    >>> round(moment_gain("static", "affine", (np.zeros(10), C), missing=0.3, beta=slopes), 4)
    0.3915
    """
    features = read_moments(moments)
    law = _read_law(missing, len(features.mean))
    U_poor, U_rich = (_risk(read_class(F, len(features.mean)), features, law) for F in (poor, rich))
    slopes = features.slopes(beta, U_poor - U_rich)
    return float(slopes @ (U_poor - U_rich) @ slopes)


def best_risk(adaptivity: Adaptivity, features: "Moments", law: MissingLaw, beta: FloatArray) -> float:
    """What the best member of a class leaves of beta'X unexplained."""
    slopes = features.slopes(beta, features.correlation)
    return float(slopes @ _risk(adaptivity, features, law) @ slopes)


def _risk(adaptivity: Adaptivity, features: "Moments", law: MissingLaw) -> FloatArray:
    """U of a class, E R(M) for the fully adaptive one."""
    if type(adaptivity) is FullyAdaptive:
        return _pattern_wise(features.correlation, law, 10_000, np.random.RandomState(0))[0]
    return design_of(adaptivity, features.mean, features.correlation, law).unexplained(features.correlation)


def _note(moments: Any, beta: Any, error: float = 0.0) -> str:
    """The meaning of a bias by second moments, in words."""
    source = "an estimate by second moments of a sample" if isinstance(moments, Law) else "by the given second moments"
    slopes = "the worst slopes with Var(beta'X) = 1" if beta is None else "the given slopes"
    drawn = f", patterns drawn with standard error {error:.2g}" if error else ""
    return f"{source}, {slopes}{drawn}; {INDEPENDENCE}"


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and correlation of features in units of their standard deviations."""

    mean: FloatArray
    correlation: FloatArray
    scale: FloatArray

    def slopes(self, beta: Any, B: FloatArray) -> FloatArray:
        """The given slopes, or those of unit variance that maximise b'B b, of standardised features."""
        if beta is None:
            values, vectors = np.linalg.eigh(self.correlation)
            varies = values > DEPENDENT * len(values)
            T = vectors[:, varies] / np.sqrt(values[varies])
            return np.asarray(T @ np.linalg.eigh(T.T @ B @ T)[1][:, -1]) if varies.any() else np.zeros(len(B))
        slopes = np.asarray(beta, dtype=float)
        if slopes.shape != self.mean.shape or not np.isfinite(slopes).all():
            raise ValueError(f"beta must be {len(self.mean)} finite slopes, one for each feature.")
        return slopes * self.scale


def read_moments(moments: Any, d: int | None = None) -> Moments:
    """The moments, validated, in units of the standard deviations."""
    if isinstance(moments, Law):
        moments = (moments.mean - moments.location, moments.covariance)
    if not isinstance(moments, tuple | list) or len(moments) != 2:
        raise ValueError("moments must be a pair of a mean and a covariance, or a law fitted by admiss.laws.")
    mean, covariance = (np.asarray(part, dtype=float) for part in moments)
    d = (len(mean) if mean.ndim else 0) if d is None else d
    if not d or mean.shape != (d,) or covariance.shape != (d, d):
        raise ValueError(
            f"moments have shapes {mean.shape} and {covariance.shape}: give a mean of {d or 'd'} features and their "
            "covariance."
        )
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        raise ValueError("moments must be finite numbers.")
    variances = np.diag(covariance)
    scale = np.sqrt(np.where(variances > 0, variances, 1.0))
    correlation = covariance / scale / scale[:, None]
    symmetric = np.abs(correlation - correlation.T).max() <= 1e-8
    if not symmetric or np.linalg.eigvalsh(correlation).min() < -1e-8 * d:
        raise ValueError("The covariance in moments must be symmetric and positive semidefinite.")
    return Moments(mean / scale, (correlation + correlation.T) / 2, scale)


def _read_law(missing: Any, d: int) -> MissingLaw:
    law = read_missing(missing, d)
    if law.rates is None and law.patterns is None:
        raise ValueError("The bias by second moments needs the law of M: give missing, for instance the missing rates.")
    return law


def _pattern_wise(
    C: FloatArray, law: MissingLaw, draws: int, rng: np.random.RandomState
) -> tuple[FloatArray, tuple[FloatArray, FloatArray] | None]:
    """E R(M); patterns and their R(m) if they were drawn."""
    if law.rates is not None and np.sum((law.rates > 0) & (law.rates < 1)) > ENUMERATED:
        rows = max(2, min(draws, 10**7 // C.size))  # residual covariances of at most 80 MB
        patterns = (rng.uniform(size=(rows, len(C))) < law.rates).astype(float)
        residuals = np.concatenate([_residuals(C, patterns[k : k + BATCH]) for k in range(0, rows, BATCH)])
        return residuals.mean(axis=0), (patterns, residuals)
    patterns, weights = law.enumerated()
    total = np.zeros(C.shape)
    for k in range(0, len(patterns), BATCH):
        total += np.tensordot(weights[k : k + BATCH], _residuals(C, patterns[k : k + BATCH]), axes=1)
    return total, None


def _residuals(C: FloatArray, patterns: FloatArray) -> FloatArray:
    """R(m) for each pattern."""
    R = np.tile(C, (len(patterns), 1, 1))
    for k in range(len(C)):
        observed = patterns[:, k] == 0
        used = observed & (R[:, k, k] > DEPENDENT * C[k, k])
        column = R[used, :, k]
        R[used] -= column[:, :, None] * (column / R[used, k, k][:, None])[:, None, :]
        R[observed, k, :] = 0.0
        R[observed, :, k] = 0.0
    return R
