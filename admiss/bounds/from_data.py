"""Classes ranked for given rows, before any of them is fitted, by second moments.

EM fits one Gaussian law to features and target (:mod:`admiss.laws`). Its moments give the slopes beta of y, the
variance s^2 that X leaves, and, with the missing rates, the risk of the best member of each class

    R(F) = s^2 + beta'U beta                                                            (``design_moments``).

A ridge regression whose penalty is chosen by cross-validation has a larger risk, by less than the R(F) p / n of least
squares. The ranking is by

    R(F) (1 + c p / n),     p the number of columns of F on the rows,

with one measured constant, c = .3: among 0, .1, .., 1.5 it gave the best mean R2 of the first class on simulated laws
(the calibration half of the study ``recommendation``). It is no bound, and its total is no prediction of the risk.

M must be independent of (X, y). If a value is missing because of what it is, or because of y, the gain of adaptive
weights is larger than stated here, and only a fit can show it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from admiss.adaptivity import Adaptivity, FullyAdaptive, Polynomial
from admiss.bounds.counts import ClassLike, class_name, hierarchy, polynomial_degrees, read_class
from admiss.bounds.moments import INDEPENDENCE, best_risk, read_moments
from admiss.bounds.setting import MissingLaw, not_negative
from admiss.estimator.validation import read_features, read_regression_target
from admiss.laws import fit_law
from admiss.patterns import PatternTable
from admiss.terminal.table import Table
from formulations.arrays import FloatArray

# The measured constant of the estimation term.
MEASURED = 0.3


@dataclass(frozen=True)
class RankedClass:
    """A class with its expected risk.

    Attributes
    ----------
    name : str
    adaptivity : Adaptivity
        The class, as an argument of the estimators.
    columns : int
        Its number of columns on the rows.
    risk : float
        Mean squared error of its best member, by second moments.
    estimation : float
        c risk columns / n.
    total : float
        Their sum, by which classes are ranked.
    """

    name: str
    adaptivity: Adaptivity
    columns: int
    risk: float
    estimation: float
    total: float


@dataclass(frozen=True)
class DataRecommendation:
    """Classes ranked for given rows, the best one first.

    Attributes
    ----------
    ranking : tuple of RankedClass
        Each class with its estimated excess risk.
    variance : float
        Var(y).
    c : float
        The constant of the estimation term.
    """

    ranking: tuple[RankedClass, ...]
    variance: float
    c: float

    @property
    def best(self) -> RankedClass:
        """The first class."""
        return self.ranking[0]

    @property
    def table(self) -> Table:
        """The ranking as a table; R2 is that of the best member of each class."""
        columns: dict[str, list[Any]] = {"class": [ranked.name for ranked in self.ranking]}
        for name in ("columns", "risk", "estimation", "total"):
            columns[name] = [getattr(ranked, name) for ranked in self.ranking]
        columns["r2_of_best"] = [1 - ranked.risk / (self.variance or 1.0) for ranked in self.ranking]
        return Table(**columns)

    def __str__(self) -> str:
        return (
            f"{self.table!r}\nrecommended: {self.best.name}; an estimate by second moments of the rows, "
            f"estimation term with the measured constant c = {self.c:g}\n{INDEPENDENCE}"
        )


def recommend_from_data(
    X: Any, y: Any, classes: Sequence[ClassLike] | None = None, *, c: float = MEASURED
) -> DataRecommendation:
    """Rank classes for given rows by their second moments, without a fit of any of them.

    Parameters
    ----------
    X : array or data frame of shape (n, d)
        Features, NaN where missing, completely at random: M must be independent of (X, y).
    y : array of shape (n,)
        Target.
    classes : sequence of classes, optional
        Static, affine intercept, affine, the orders 2 and 3 and fully adaptive by default, as far as they have at most
        four columns per row, and at most 2,000.
    c : float
        Constant of the estimation term. The default was measured with ridge regressions whose penalty is chosen by
        cross-validation, as in ``AdaptiveRegressorCV``; for least squares it is 1.

    Returns
    -------
    DataRecommendation
        ``best.adaptivity`` is an argument of the estimators.

    Examples
    --------
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=1000, missing_fraction=0.3, random_state=0)
    >>> recommendation = recommend_from_data(data.X_train, data.y_train)
    >>> recommendation.best.name
    'affine'
    """
    c = not_negative("c", c)
    reader = BaseEstimator()
    X = read_features(reader, X, reset=True)
    y = read_regression_target(reader, y, len(X))
    n, d = X.shape
    seen = ~np.isnan(X).all(axis=0)
    candidates = _default_classes(X) if classes is None else [read_class(F, d) for F in classes]
    if not seen.any():
        raise ValueError("X has no observed value: there is nothing to rank classes by.")
    if not candidates:
        raise ValueError("There is no class to recommend: give at least one.")
    mean, covariance, beta, noise, variance = _moments(X[:, seen], y)
    features = read_moments((mean, covariance))
    law = MissingLaw("estimated from the rows", rates=np.isnan(X[:, seen]).mean(axis=0))
    ranking = []
    for adaptivity in candidates:
        p = _columns(adaptivity, X)
        risk = noise + max(0.0, best_risk(adaptivity, features, law, beta))
        estimation = c * risk * p / n
        ranking.append(RankedClass(class_name(adaptivity), adaptivity, p, risk, estimation, risk + estimation))
    ranking.sort(key=lambda ranked: (ranked.total, ranked.columns))
    return DataRecommendation(tuple(ranking), variance, c)


def _moments(X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float, float]:
    """Mean and covariance of centred features, slopes of y, the variance that they leave, and Var(y), by EM."""
    n, d = X.shape
    law = fit_law(np.column_stack([X, y]), np.ones(n))
    joint = law.standard_covariance
    slopes = np.linalg.lstsq(joint[:d, :d], joint[:d, d], rcond=1e-10)[0]
    # the law has fitted d slopes and a mean
    left = max(0.0, float(joint[d, d] - joint[d, :d] @ slopes)) * n / max(1, n - d - 1)
    unit = float(law.scale[d])
    mean = law.mean - law.location
    return (
        mean[:d],
        law.covariance[:d, :d],
        slopes * unit / law.scale[:d],
        min(left, float(joint[d, d])) * unit**2,
        float(joint[d, d]) * unit**2,
    )


def _default_classes(X: FloatArray) -> list[Adaptivity]:
    n, d = X.shape
    static, *richer = hierarchy(d, min(d, 3))
    return [static, *(F for F in richer if _columns(F, X) <= min(4 * n, 2000))]


def _columns(adaptivity: Adaptivity, X: FloatArray) -> int:
    """The number of columns of a class on the rows."""
    M = np.isnan(X)
    if type(adaptivity) is FullyAdaptive:
        return int((1 + np.sum(~PatternTable.of(M).patterns, axis=1)).sum())
    degrees = polynomial_degrees(adaptivity, X.shape[1])
    if degrees is None:
        return int(adaptivity.fit(X, M).mask(X.shape[1]).sum())
    d, missable = X.shape[1], int(M.any(axis=0).sum())
    # an affine intercept beside static weights adds a column for each feature that can be missing
    return Polynomial(degrees[0]).n_columns(d, missable) + (missable if degrees[1] > degrees[0] else 0)
