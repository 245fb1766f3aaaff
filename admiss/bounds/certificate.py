"""Bounds on the risk of fitted models from held-out rows, of which no law is assumed.

Let the n held-out rows be independent draws of the law of new rows, used neither to fit nor to choose the models or the
cap B > 0. For models f_1 .. f_K, with probability at least 1 - delta over the held-out rows,

    E min(l(y, f_k), B) <= B U_k    for all k at once,

with U_k the bound on the mean of v_i = min(l(y_i, f_k), B) / B in [0, 1] by betting at alpha = delta / K: given
everything that models and cap were made of, the v_i are independent with mean E v, so that each bound fails with
probability at most alpha (proof below), and by the union bound any of the K with probability at most delta.
The order of rows is drawn once, without looking at them. The smallest of several orders is not a certificate.

The risk is **capped**: losses beyond B count as B, and no finite sample bounds what they add without a further
assumption. The cut in the sample is reported beside the bound.

By missing feature. Given the number of rows in which feature j is missing, these rows are independent draws of the law
of new rows with feature j missing, and likewise where it is observed. For J features this makes 2 J K more statements,
with alpha = (delta / 2) / (2 J K) each, and (delta / 2) / K for the statements about all rows: everything holds at once
with probability 1 - delta. All J features count, including those that turn out to be never missing in the sample: their
number is fixed in advance, whereas the number of features with missing values depends on the rows.

*The mean of bounded variables.* Let v_1, .., v_n in [0, 1] be independent draws of a law with mean mu, in a fixed
order, and 0 < alpha < 1.

Betting (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2024). Against the
hypothesis mu >= m a gambler with wealth 1 stakes lambda_i(m) on v_i < m, knowing v_1 .. v_(i-1):

    W_k(m) = prod_{i <= k} (1 + lambda_i(m) (m - v_i)),    lambda_i(m) = min(l_i, 3/4 / (1 - m)),
    l_i = sqrt(2 log(1/alpha) / (n s_i)),    s_i = (1/4 + sum_{j < i} (v_j - mu_j)^2) / i,
    mu_j = (1/2 + v_1 + .. + v_j) / (j + 1).

The bound is U = inf {m in [0, 1): W_k(m) >= 1/alpha for some k <= n}, or 1 if there is no such m.

* Valid: P(mu <= U) >= 1 - alpha. Factors are at least 1/4, because v_i <= 1, and l_i is a function of the past, so
  E[W_k(mu) | past] = W_(k-1)(mu): a non-negative martingale that starts at 1. By Ville's inequality it reaches 1/alpha
  with probability at most alpha; if it does not, mu is not in the set, which by the next point is all of (U, 1).
* Monotone: every factor is positive and non-decreasing in m, hence so is W_k(m), and bisection finds U. For a constant
  l >= 0, 1 + l (m - v) is non-decreasing; so is 1 + 3/4 (m - v) / (1 - m), with derivative 3/4 (1 - v) / (1 - m)^2.
  The factor is the smaller of the two where m >= v, and the larger one where m < v; both are 1 at m = v.
* The choice of l_i: log W_n(m) is about l (m - mu) n - l^2 n s / 2 with the variance s, which first reaches
  log(1/alpha) at m = mu + sqrt(2 s log(1/alpha) / n), for the l above. It only affects how close U is to mu. So does
  3/4, the largest part of the wealth that can be lost at once.

Empirical Bernstein (Maurer and Pontil, "Empirical Bernstein bounds and sample variance penalization", 2009, Theorem 4),
with the sample variance V, also with probability at least 1 - alpha:

    mu <= mean(v) + sqrt(2 V log(2/alpha) / n) + 7 log(2/alpha) / (3 (n - 1)).

The smaller of the two holds with probability 1 - 2 alpha only.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Any

import numpy as np

from admiss.bounds.held_out_losses import (
    largest_loss,
    read_cap,
    read_groups,
    read_loss,
    read_models,
    relative_losses,
)
from admiss.bounds.setting import read_share
from admiss.estimator.validation import read_random_state
from admiss.terminal.table import Table
from formulations.arrays import FloatArray

FORMULAS = {"squared": "(y - f)^2", "zero_one": "1(y != f)", "brier": "Brier loss"}
ALL_ROWS = "all"
ASSUMPTION = "assumes i.i.d. rows of the law of new rows, used neither to fit or choose the models nor to set the cap"


@dataclass(frozen=True)
class CertifiedRisk:
    """The certificate of a model, for all rows or those in which a feature is missing or observed.

    Attributes
    ----------
    model : str
        Its name.
    rows : str
        "all", or a feature followed by "missing" or "observed".
    n : int
        Number of these rows.
    bound : float
        The certificate: the capped risk is at most this; the cap itself if the rows are too few.
    bernstein : float
        The same by empirical Bernstein, at the same level, for comparison.
    capped_mean, mean : float
        Mean loss in the sample, capped and as it is.
    n_capped : int
        Number of rows with a loss above the cap.
    """

    model: str
    rows: str
    n: int
    bound: float
    bernstein: float
    capped_mean: float
    mean: float
    n_capped: int

    @property
    def cut_off(self) -> float:
        """The share of the mean loss in the sample that the cap cuts off."""
        return 1 - self.capped_mean / self.mean if self.n_capped else 0.0


@dataclass(frozen=True, repr=False)
class RiskCertificate:
    """Bounds on the capped risk of models; all of them hold at once with probability 1 - delta.

    Attributes
    ----------
    risks : tuple of CertifiedRisk
        For each model; of all rows first.
    loss : str
        The loss.
    cap : float
        B, above which losses count as B.
    delta : float
        Probability that some bound fails.
    n : int
        Held-out rows.
    n_statements : int
        Statements that the bounds account for.
    capped : bool
        Whether the loss can exceed the cap.
    """

    risks: tuple[CertifiedRisk, ...]
    loss: str
    cap: float
    delta: float
    n: int
    n_statements: int
    capped: bool

    @property
    def bounds(self) -> dict[str, float]:
        """The bound of each model for all rows."""
        return {risk.model: risk.bound for risk in self.risks if risk.rows == ALL_ROWS}

    @property
    def table(self) -> Table:
        """All statements as a table."""
        names = ("model", "rows", "n", "bound", "bernstein", "capped_mean", "mean", "n_capped", "cut_off")
        return Table(**{name: [getattr(risk, name) for risk in self.risks] for name in names})

    def __repr__(self) -> str:
        what = f"min({FORMULAS[self.loss]}, {self.cap:.6g})" if self.capped else FORMULAS[self.loss]
        holds = f"all {len(self.risks)} bounds hold at once" if len(self.risks) > 1 else "the bound holds"
        lines = [
            f"{'capped ' * self.capped}risk E {what} on new rows: {holds} with probability {1 - self.delta:.6g}",
            repr(self._printed()),
        ]
        if self.capped:
            lines.append("capped: larger losses count as the cap, and what they add to the risk is not bounded")
        if self.n_statements > len(self.bounds):
            lines.append(f"corrected for {self.n_statements:,} statements, including groups that are empty or all rows")
        if any(risk.bound == self.cap for risk in self.risks):
            lines.append(f"a bound of {self.cap:.6g} says nothing: too few rows, or too large losses")
        lines.append(ASSUMPTION)
        return "\n".join(lines)

    def _printed(self) -> Table:
        """The table as printed: in words, and without columns that say nothing."""
        columns: dict[str, list[Any]] = {"model": [risk.model for risk in self.risks]}
        if len(self.risks) > len(self.bounds):
            columns["rows"] = [risk.rows for risk in self.risks]
        columns |= {
            "n": [risk.n for risk in self.risks],
            "at most": [min(_rounded_up(risk.bound), self.cap) for risk in self.risks],
            "Bernstein": [min(_rounded_up(risk.bernstein), self.cap) for risk in self.risks],
            "in sample": [float(f"{risk.capped_mean:.4g}") for risk in self.risks],
        }
        if self.capped:
            columns["cut off by the cap in the sample"] = [
                f"{100 * risk.cut_off:.3g} % of the mean, {risk.n_capped:,} row{'s' * (risk.n_capped != 1)}"
                for risk in self.risks
            ]
        return Table(**columns)


def _rounded_up(bound: float) -> float:
    """A bound as printed, with four digits.

    Examples
    --------
    >>> _rounded_up(1.23401), _rounded_up(1.234)
    (1.235, 1.234)
    """
    return float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(bound)))


def risk_certificate(
    models: Any,
    X_held_out: Any,
    y_held_out: Any,
    *,
    cap: float | None = None,
    delta: float = 0.05,
    loss: str = "auto",
    by_missing: bool | Iterable[str | int] = False,
    random_state: Any = 0,
) -> RiskCertificate:
    """Certify the capped risk of fitted models from rows that they have not seen.

    Parameters
    ----------
    models : estimator, list of estimators, or dict of them by name
        Fitted models. The bounds hold for all of them at once, so that the best one may be chosen by its bound.
    X_held_out : array or data frame of shape (n, d)
        Independent rows of the law of new rows, used neither to fit or choose the models nor to choose the cap. There
        are no weights: all rows are drawn from the same law.
    y_held_out : array of shape (n,)
        Their targets.
    cap : float
        B, one positive number for all models, fixed before the held-out rows are seen; ``cap_from_training`` suggests
        one. Optional for "zero_one" and "brier", which are bounded.
    delta : float
        Probability that some bound fails.
    loss : {"auto", "squared", "zero_one", "brier"}
        By default 0-1 for classifiers and squared for regressors.
    by_missing : bool or list of features
        Also certify the rows in which a feature is missing, and those in which it is observed, for all features or
        those given by name or number. Costs half of delta.
    random_state : int, RandomState or None
        Seed of the order of rows. Repeating the call and taking the smallest bound is not a certificate.

    Returns
    -------
    RiskCertificate
        With ``bounds`` by model and ``table``; it prints what it says, and under which assumption.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(700, 2))
    >>> y = X @ [1, 2] + rng.normal(size=700)
    >>> model = LinearRegression().fit(X[:200], y[:200])
    >>> print(risk_certificate({"linear": model}, X[200:], y[200:], cap=9.0))
    capped risk E min((y - f)^2, 9) on new rows: the bound holds with probability 0.95
    model     n  at most  Bernstein  in sample  cut off by the cap in the sample
    linear  500    1.272      1.426      1.098  0.134 % of the mean, 1 row
    capped: larger losses count as the cap, and what they add to the risk is not bounded
    assumes i.i.d. rows of the law of new rows, used neither to fit or choose the models nor to set the cap
    """
    delta = read_share("delta", delta)
    named = read_models(models)
    loss = read_loss(loss, named)
    B = read_cap(cap, loss, named)
    n = len(X_held_out)
    order = read_random_state(random_state).permutation(n)
    features, missing = read_groups(X_held_out, by_missing)
    losses = relative_losses(named, X_held_out, y_held_out, n, loss, B)
    K, groups = len(named), 2 * len(features)
    alpha = delta / (2 if groups else 1) / K
    risks = [_certify(name, ALL_ROWS, losses[name][order], B, alpha) for name in named]
    for feature, mask in zip(features, missing.T, strict=True):
        for state, rows in (("missing", mask), ("observed", ~mask)):
            if 0 < rows.sum() < n:
                ordered = order[rows[order]]
                group = f"{feature} {state}"
                risks += [_certify(name, group, losses[name][ordered], B, alpha / groups) for name in named]
    return RiskCertificate(
        risks=tuple(risks),
        loss=loss,
        cap=B,
        delta=delta,
        n=n,
        n_statements=K * (1 + groups),
        capped=B < largest_loss(loss, named),
    )


def _certify(model: str, rows: str, u: FloatArray, B: float, alpha: float) -> CertifiedRisk:
    """The certificate from losses u in units of the cap, in the order of betting."""
    v = np.minimum(u, 1.0)
    with np.errstate(over="ignore"):
        mean = B * float(u.mean())
    return CertifiedRisk(
        model=model,
        rows=rows,
        n=len(v),
        bound=B * betting_bound(v, alpha),
        bernstein=B * bernstein_bound(v, alpha),
        capped_mean=B * float(v.mean()),
        mean=mean,
        n_capped=int(np.sum(u > 1)),
    )


def betting_bound(v: FloatArray, alpha: float) -> float:
    """A number that the mean of the law of v, with values in [0, 1], exceeds with probability at most alpha.

    Examples
    --------
    >>> v = np.random.default_rng(0).uniform(size=300)
    >>> round(betting_bound(v, 0.05), 3), round(bernstein_bound(v, 0.05), 3)
    (0.577, 0.616)
    >>> round(betting_bound(np.zeros(300), 0.05), 3), betting_bound(np.zeros(1), 0.05)
    (0.013, 1.0)
    """
    stakes = predictable_stakes(v, alpha)
    low, high = 0.0, 1.0
    # the upper end of the bisection is returned
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if is_rejected(middle, v, stakes, alpha):
            high = middle
        else:
            low = middle
    return high


def predictable_stakes(v: FloatArray, alpha: float) -> FloatArray:
    """l_1 .. l_n of the module docstring: l_i depends on v_1 .. v_(i-1), on n and on alpha."""
    n = len(v)
    times = np.arange(1, n + 1)
    means = (0.5 + np.cumsum(v)) / (times + 1)
    sums = 0.25 + np.cumsum((v - means) ** 2)
    variances = np.append(0.25, sums[:-1]) / times
    return np.asarray(np.sqrt(2 * math.log(1 / alpha) / (n * variances)))


def is_rejected(m: float, v: FloatArray, stakes: FloatArray, alpha: float) -> bool:
    """Whether the wealth against a mean of m or more reaches 1 / alpha, beyond doubt by rounding."""
    gains = np.log1p(np.minimum(stakes, 0.75 / (1 - m)) * (m - v))
    rounding = len(v) * np.finfo(float).eps * np.abs(gains).sum()
    return bool(np.cumsum(gains).max() >= math.log(1 / alpha) + rounding)


def bernstein_bound(v: FloatArray, alpha: float) -> float:
    """The bound of Maurer and Pontil, at most 1."""
    n = len(v)
    if n == 1:
        return 1.0
    log = math.log(2 / alpha)
    return float(min(1.0, v.mean() + math.sqrt(2 * v.var(ddof=1) * log / n) + 7 * log / (3 * (n - 1))))
