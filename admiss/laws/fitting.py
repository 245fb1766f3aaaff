"""The law of the features by penalised maximum likelihood: EM over rows with missing values.

For standardised features, v | z ~ N(mu + B z, S) maximises

    sum_i s_i log p(v_obs,i | z_i)  -  1/2 [ k log det S + tr S^-1 k (I + B B') ],

the observed-data likelihood with k = ``prior`` added rows of uncorrelated features, which keep S regular if features
are linearly dependent or outnumber the rows. EM repeats

    E    v^ = E[v | v_obs, z],   C = sum of Cov[v | v_obs, z]                                   (``completion``)
    M    mu = mean of v^,   B = (v^ - mu)'z (z'z + k I)^-1,   S = (residuals'residuals + C + k (I + B B')) / (n + k)

with z centred. No step lowers the objective as long as S is regular, which k > 0 ensures; if features are linearly
dependent and k = 0, there is no maximum: k is at least 1e-10 of the rows. Weights are brought to unit size by a power
of two, and k with them, which does not change the law.

Rows are grouped by pattern: a step costs one Cholesky factor per pattern and one triangular solve per row. After two
steps, with differences r and r + v of the parameters, the extrapolation theta + 2 t r + t^2 v, t = |r| / |v|, is
accepted if it is a law and does not lower the objective (Varadhan and Roland 2008). What a law is used for are the
expected values: EM stops when a plain step moves those of the missing entries by at most ``MOVE`` standard deviations
of the features in root mean square, or after ``MOST_STEPS``. In wide tables, mu and S have not converged then.

In a censored law (``law.py``) the E step takes moments of truncated Gaussians. The side of a feature is that of its
predictions from the others when it is missing; limits are the extreme observed values. The E step is approximate, there
is no objective, and every extrapolation that is a law is accepted.

Little and Rubin, *Statistical Analysis with Missing Data*, chapter 11, have EM for Gaussian data.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from admiss.estimator.scaling import observed_moments, observed_scale, power_of_two
from admiss.estimator.validation import is_number
from admiss.laws.law import Law, expectations
from admiss.patterns import PatternTable
from formulations.arrays import FloatArray

LAWS = ("gaussian", "censored")
# Number of added rows of uncorrelated features.
DEFAULT_PRIOR = 0.1
# Standard deviations. Ten tables of 150 x 100 end after 30 to 60 steps in .25 s; stopping by the likelihood took 1,000
# steps in 8 s. A ridge on expected features loses .001 of R2 on average, and .011 at most, as its penalty is selected
# anew.
MOVE = 3e-3
# One of nine real tables, with 98 indicators, reaches this limit.
MOST_STEPS = 100

# The latest laws: models with the same training rows, such as those of a stack, need the same law in turn.
_LATEST: "OrderedDict[bytes, Law]" = OrderedDict()
_LOCK = Lock()


def check_law(law: Any, prior: Any) -> None:
    """Raise an error unless the law is known and the prior valid.

    Parameters
    ----------
    law : object
        The name to be checked: "gaussian" or "censored".
    prior : object
        The strength to be checked: a non-negative number.

    Examples
    --------
    >>> check_law("gaussian", 0.1)
    """
    if not isinstance(law, str) or law not in LAWS:
        raise ValueError(f"law must be one of {', '.join(map(repr, LAWS))}, not {law!r}.")
    if isinstance(prior, bool) or not is_number(prior):
        raise ValueError(f"prior must be a non-negative number of rows, not {prior!r}.")


def fit_law(X: FloatArray, weights: FloatArray, kind: str = "gaussian", prior: float = DEFAULT_PRIOR) -> Law:
    """Fit a law to rows with missing values by EM.

    Parameters
    ----------
    X : array of shape (n, d)
        Features, NaN where missing; each has observed values.
    weights : array of shape (n,)
        Positive weights of the rows.
    kind : {"gaussian", "censored"}
        A Gaussian law, or one in which missing values lie beyond the observed ones.
    prior : float
        Strength of the prior of the covariance, in rows.

    Returns
    -------
    Law

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [2.0, 4.1], [3.0, 5.9], [4.0, np.nan]])
    >>> law = fit_law(X, np.ones(4))
    >>> bool(7 < law.expect(X)[3, 1] < 9)
    True
    """
    unit = float(power_of_two(weights.max()))
    weights = weights / unit
    prior = float(np.clip(float(prior) / unit, 1e-10 * weights.sum(), 1e100 * weights.sum()))
    digest = blake2b(np.ascontiguousarray(X).tobytes())
    digest.update(np.ascontiguousarray(weights).tobytes())
    digest.update(repr((X.shape, prior)).encode())
    gaussian_law = _cached(digest.digest(), lambda: _gaussian(X, weights, prior))
    if kind == "gaussian" or not gaussian_law.missable.any():
        return gaussian_law if unit == 1.0 else replace(gaussian_law, history=gaussian_law.history * unit)
    digest.update(b"censored")
    return _cached(digest.digest(), lambda: _censored(X, weights, gaussian_law, prior))


def _cached(key: bytes, compute: Callable[[], Law]) -> Law:
    with _LOCK:
        law = _LATEST.get(key)
    if law is None:
        law = compute()
    for array in vars(law).values():
        array.setflags(write=False)  # it is shared
    with _LOCK:
        _LATEST[key] = law
        _LATEST.move_to_end(key)
        while len(_LATEST) > 16:
            _LATEST.popitem(last=False)
    return law


def _gaussian(X: FloatArray, weights: FloatArray, prior: float) -> Law:
    law = _start(X, weights)
    return _maximum(_Rows(law, X, weights, prior), law)


def _maximum(rows: "_Rows", law: Law) -> Law:
    """Steps of EM and extrapolations from a law, until the expected values rest."""
    censored = bool(law.side.any())  # the value of a step is then not that of the law
    first = rows.step(law)
    history = [first.value]
    while True:
        second = rows.step(first.following)
        history.append(second.value)
        if rows.move(first, second) <= MOVE or len(history) >= MOST_STEPS:
            return replace(second.law, history=np.array([] if censored else history))
        third = None
        further = _further(first.law, second.law, second.following)
        if further is not None:
            third = rows.step(further)
        if third is None or (third.value < second.value and not censored):
            third = rows.step(second.following)
        first = third
        history.append(first.value)


def _further(law: Law, once: Law, twice: Law) -> Law | None:
    """The extrapolation of two steps, if it goes beyond them and is a law."""
    r = once.parameters() - law.parameters()
    v = twice.parameters() - once.parameters() - r
    length = float(np.linalg.norm(v))
    stretch = float(np.linalg.norm(r)) / length if length > 0 else 1.0
    if stretch <= 1.0:
        return None
    further = law.with_parameters(law.parameters() + 2 * stretch * r + stretch**2 * v)
    return further if np.linalg.eigvalsh(further.S)[:1].min(initial=1.0) > 0 else None


def _start(X: FloatArray, weights: FloatArray) -> Law:
    """Uncorrelated features with their observed means and deviations."""
    location, deviation, size, _ = observed_moments(X, weights)
    missable = np.asarray(np.isnan(X).any(axis=0))
    v, z = int(missable.sum()), int((~missable).sum())
    return Law(
        location, observed_scale(deviation, size)[0], missable,
        np.zeros(v), np.zeros((v, z)), np.eye(v), np.eye(z), np.zeros(v), np.zeros(v), np.empty(0),
    )  # fmt: skip


class _Step(NamedTuple):
    """The objective and the completed rows at a law, and the law after a step of EM."""

    law: Law
    value: float
    completed: FloatArray
    following: Law


class _Rows:
    """The training rows, and the two steps of EM on them."""

    def __init__(self, law: Law, X: FloatArray, weights: FloatArray, prior: float) -> None:
        standard = law.standardise(X)
        self.z, self.V = standard[:, ~law.missable], standard[:, law.missable]
        self.M = np.isnan(self.V)
        self.table = PatternTable.of(self.M)
        self.weights = weights
        self.n = float(weights.sum())
        self.prior = prior
        gram = self.z.T @ (weights[:, None] * self.z) + prior * np.eye(self.z.shape[1])
        self.second_moment = gram / (self.n + prior)
        self.inverse = scipy.linalg.pinvh(gram)

    def step(self, law: Law) -> "_Step":
        completed, covariance, log_likelihood = self.expect(law)
        following = self.maximise(law, completed, covariance)
        return _Step(law, log_likelihood - self.penalty(law), completed, following)

    def expect(self, law: Law) -> tuple[FloatArray, FloatArray, float]:
        return expectations(self.V, law.mu + self.z @ law.B.T, self.weights, self.table, law)

    def move(self, first: "_Step", second: "_Step") -> float:
        """Root of the mean square by which expected values of missing entries differ."""
        squares = (second.completed - first.completed) ** 2
        missing = float(self.weights @ self.M.sum(axis=1)) or 1.0
        return float(np.sqrt(self.weights @ squares.sum(axis=1) / missing))

    def maximise(self, law: Law, completed: FloatArray, covariance: FloatArray) -> Law:
        mu = self.weights @ completed / self.n
        centred = completed - mu
        B = (self.weights[:, None] * centred).T @ self.z @ self.inverse
        residuals = centred - self.z @ B.T
        scatter = residuals.T @ (self.weights[:, None] * residuals) + covariance
        S = (scatter + self.prior * (np.eye(len(mu)) + B @ B.T)) / (self.n + self.prior)
        return replace(law, mu=mu, B=B, S=(S + S.T) / 2, second_moment=self.second_moment)

    def penalty(self, law: Law) -> float:
        if not len(law.mu):
            return 0.0
        scatter = np.eye(len(law.mu)) + law.B @ law.B.T
        try:
            inverse_trace = float(np.trace(np.linalg.solve(law.S, scatter)))
        except np.linalg.LinAlgError:  # the trace grows without bound as S becomes singular
            return np.inf
        return 0.5 * self.prior * (float(np.linalg.slogdet(law.S)[1]) + inverse_trace)


def _censored(X: FloatArray, weights: FloatArray, law: Law, prior: float) -> Law:
    rows = _Rows(law, X, weights, prior)
    side = _sides(law, X, weights)
    largest, smallest = np.nanmax(rows.V, axis=0, initial=-np.inf), np.nanmin(rows.V, axis=0, initial=np.inf)
    limit = np.where(side > 0, largest, smallest)
    return _maximum(rows, replace(law, side=side, limit=limit))


def _sides(law: Law, X: FloatArray, weights: FloatArray) -> FloatArray:
    """1 if a feature, as predicted from the others, is larger when missing than when observed, otherwise -1."""
    predicted, missing = _predictions(law, X), np.isnan(X[:, law.missable])
    side = np.ones(predicted.shape[1])
    for j, column in enumerate(predicted.T):
        rows = missing[:, j]
        if np.average(column[rows], weights=weights[rows]) < np.average(column[~rows], weights=weights[~rows]):
            side[j] = -1.0
    return side


def _predictions(law: Law, X: FloatArray) -> FloatArray:
    """E[v_j | z, the other observed v] of each standardised feature that can be missing, also where it is observed.

    There it is v_j - (K r)_j / K_jj with r = v_o - E[v_o | z] and K the inverse of S_oo.
    """
    completed = law.expect_standard(X)
    V = completed[:, law.missable]
    residual = V - law.mu - completed[:, ~law.missable] @ law.B.T
    predicted = V.copy()
    table = PatternTable.of(np.isnan(X[:, law.missable]))
    for code, pattern in enumerate(table.patterns):
        rows, o = np.flatnonzero(table.codes == code), np.flatnonzero(~pattern)
        K = scipy.linalg.pinvh(law.S[np.ix_(o, o)])
        at = np.ix_(rows, o)
        own = np.diag(K)
        # of a feature without variance its mean is predicted
        predicted[at] -= np.divide(residual[at] @ K, own, out=residual[at], where=own > 0.0)
    return predicted
