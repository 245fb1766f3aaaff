"""Comparison of adaptivity classes on your own data.

All classes see the same folds. In each fold everything that a class learns (its basis, the scale of the features, its
penalty) is learned by cross-validation inside the training rows; the held-out rows are used once, for R2. R2 is
therefore that of the whole procedure, search included, and not of the best cell of a grid. The search is short, for
speed: ridge, 20 lambdas, three adaptive penalties, 5 folds.

The bound is that of Theorem 1 (:mod:`admiss.bounds`) at c = 1, with the observed patterns as the law of M:

    sigma^2 + 8 b(F) + max{sigma^2, L^2} (1 + log n) / n p(F).

It holds for least squares in the class, without penalty and truncated at +-L, and serves to compare classes. It does
not certify a risk: c is unknown, and sigma^2 and L are estimates unless given. Without a formula, p(F) of a class is
counted over all patterns, up to 8 features. The bias b(F) is that of the largest degree up to which all polynomials of
the pattern are among the weights and the intercept, declared by the attribute ``degree`` or found; it is unknown for a
class with a structure or with its own columns.
"""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.utils import check_random_state

from admiss.adaptivity import Adaptivity, Polynomial, resolve_adaptivity
from admiss.estimator.cross_validation import make_folds
from admiss.estimator.notices import silence, warn_never_observed
from admiss.estimator.validation import feature_names, read_features, read_regression_target
from admiss.finite.cv import FiniteRegressorCV
from admiss.linear.cv import FINITE, AdaptiveRegressorCV
from admiss.linear.design import fit_design
from admiss.linear.estimators import AdaptiveRegressor
from admiss.terminal.progress import progress
from admiss.terminal.table import Table
from formulations.arrays import FloatArray
from formulations.certificate import SolverError

Entry = str | Adaptivity | FiniteRegressorCV


def compare_classes(
    X: Any,
    y: Any,
    classes: Iterable[Entry] = ("static", "affine_intercept", "affine"),
    *,
    cv: Any = 5,
    random_state: Any = None,
    lams: Sequence[float] = (0.1, 1.0, 10.0, 100.0),
    sigma2: float | None = None,
    L: float | None = None,
) -> Table:
    """Cross-validated R2, coefficients, seconds, p(F) and bound of adaptivity classes, one row per class.

    Parameters
    ----------
    X : array or data frame of shape (n, d)
        Features, NaN (None, NA, null) if missing.
    y : array of shape (n,)
        Target, numbers.
    classes : list of str, Adaptivity or FiniteRegressorCV
        Names, objects of your own classes, or "finite".
    cv : int, splitter or iterable of (train, test)
        Folds on which R2 is measured; a number makes folds stratified by pattern.
    random_state : int, RandomState or None
        Seed of the folds.
    lams : sequence of float
        Candidates for the penalty of classes with a structure on W, fitted by cvxpy and selected by 3 folds inside the
        training rows; their other parameters are as given.
    sigma2 : float, optional
        Variance of the noise for the bound; that of :func:`admiss.bounds.estimate_noise` by default.
    L : float, optional
        Bound on |f*| for the bound; the largest |y| by default.

    Returns
    -------
    Table
        ``class``
            The name or the object.
        ``R2``, ``R2_se``
            Mean over the folds, and its standard error as if folds were independent, which is rather too small.
        ``below_best``, ``below_best_se``
            Mean over the folds of the R2 of the best class minus that of this one, and its standard error, which is
            smaller since the folds are the same.
        ``coefficients``
            Number of coefficients other than 0 in the model of all rows, intercept included.
        ``seconds``
            CPU time of search and fit on all rows.
        ``p(F)``
            Dimension of the class on d features, any of which can be missing. NaN for "finite", which is not a linear
            space since its partition depends on the data, and if it needs all patterns of more than 8 features.
        ``bound``
            See above. NaN if p(F) is, or if the bias is unknown (for a class with a structure or with its own columns,
            and above 8 features for a class without an attribute ``degree``), or if sigma^2 cannot be estimated because
            too few rows share a pattern.
        ``vacuous``
            "yes" if the bound is above sigma^2 + 4 L^2, which truncation alone ensures; "-" if there is no bound.

    Examples
    --------
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=300, d=4, rank=3, n_active=3, mechanism="censoring", random_state=0)
    >>> table = compare_classes(data.X_train, data.y_train, ["static", "affine_intercept"], random_state=0)
    >>> [str(name) for name in table["class"]], [int(p) for p in table["p(F)"]], bool(table["R2"][1] > table["R2"][0])
    (['static', 'affine_intercept'], [5, 9], True)
    """
    from admiss.bounds.setting import not_negative, positive  # here to keep the import of admiss fast

    reader = BaseEstimator()
    rows = read_features(reader, X, reset=True)
    target = _read_target(y, len(rows))
    observed = ~np.isnan(rows).all(axis=0)
    if not observed.any():
        raise ValueError("X has no observed value: there is nothing to compare classes on.")
    warn_never_observed(feature_names(reader), np.flatnonzero(~observed))
    rows = rows[:, observed]
    entries = _read_entries(classes)
    grid = _read_lams(lams)
    if sigma2 is not None:
        not_negative("sigma2", sigma2)
    largest = float(np.abs(target).max()) if L is None else positive("L", L)
    rng = check_random_state(random_state)
    seed = int(rng.randint(2**31 - 1))
    folds = make_folds(rows, target, None, np.ones(len(rows)), cv, seed)
    if np.ptp(target) == 0:
        raise ValueError(f"y is {target[0]:g} in every row, and R2 needs a target that varies: give another y.")
    if any(len(test) < 2 or np.ptp(target[test]) == 0 for _, test in folds):
        raise ValueError("R2 needs at least two different values of y in each fold: use fewer folds.")

    for name, entry in entries:
        _check_design(name, entry, rows)

    noise = _noise_or_none(rows, target, seed) if sigma2 is None else not_negative("sigma2", sigma2)
    theory = []
    for name, entry in entries:
        with _named(name):
            theory.append(_theory_of(entry, rows, noise, largest))
    p, bound, vacuous = zip(*theory, strict=True)

    work = [(k, f) for k in range(len(entries)) for f in range(len(folds))]
    R2 = np.empty((len(entries), len(folds)))
    for k, f in progress(work, len(work), "comparing classes: fits"):
        (name, entry), (train, test) = entries[k], folds[f]
        model = _searched(name, entry, rows[train], target[train], grid, seed)
        with silence(), _named(name):
            R2[k, f] = r2_score(target[test], model.predict(rows[test]))
    sizes, seconds = np.empty((2, len(entries)))
    for k, (name, entry) in enumerate(progress(entries, len(entries), "comparing classes: models of all rows")):
        start = time.process_time()
        model = _searched(name, entry, rows, target, grid, seed)
        seconds[k] = time.process_time() - start
        with _named(name):
            sizes[k] = np.count_nonzero(model.best_estimator_.coef_table()["coefficient"])
    below = R2[R2.mean(axis=1).argmax()] - R2
    return Table(
        **{"class": [name for name, _ in entries], "R2": R2.mean(axis=1), "R2_se": _standard_error(R2)},
        below_best=below.mean(axis=1),
        below_best_se=_standard_error(below),
        coefficients=sizes.astype(int),
        seconds=seconds,
        **{"p(F)": p, "bound": bound, "vacuous": vacuous},
    )


def _read_target(y: Any, n: int) -> FloatArray:
    try:
        return read_regression_target(BaseEstimator(), y, n)
    except (TypeError, ValueError) as error:
        raise ValueError(f"compare_classes is for regression, and y must be {n} numbers: {error}") from error


def _read_entries(classes: Iterable[Entry]) -> list[tuple[str, Adaptivity | FiniteRegressorCV]]:
    """Each class with its name in the table."""
    if isinstance(classes, str | Adaptivity | FiniteRegressorCV):
        raise ValueError(f"classes must be a list, [{classes!r}].")
    if not isinstance(classes, Iterable):
        raise ValueError(f"classes must be a list of names and objects such as ['static', Affine()], not {classes!r}.")
    entries: list[tuple[str, Adaptivity | FiniteRegressorCV]] = []
    for item in classes:
        if isinstance(item, FiniteRegressorCV) or (isinstance(item, str) and item == FINITE):
            entries.append((item, FiniteRegressorCV()) if isinstance(item, str) else (repr(item), item))
        elif isinstance(item, type) and issubclass(item, Adaptivity):
            raise ValueError(f"classes takes objects and names, not the class itself: write {item.__name__}().")
        elif isinstance(item, BaseEstimator) and not isinstance(item, Adaptivity):
            raise ValueError(
                f"classes takes adaptivity classes only, and {item!r} is an estimator: use cross_val_score for it."
            )
        else:
            entries.append((item if isinstance(item, str) else repr(item), resolve_adaptivity(item)))
    if not entries:
        raise ValueError("classes is empty: name at least one.")
    return entries


def _read_lams(lams: Sequence[float]) -> list[float]:
    try:
        values = np.asarray(lams, dtype=float)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or not len(values) or not np.all((values > 0) & np.isfinite(values)):
        raise ValueError(f"lams must be a list of positive numbers, not {lams!r}.")
    return [float(lam) for lam in values]


def _check_design(name: str, entry: Adaptivity | FiniteRegressorCV, X: FloatArray) -> None:
    """Raise the error of a class that cannot be fitted before others are."""
    with _named(name):
        if isinstance(entry, Adaptivity):
            fit_design(X, np.ones(len(X)), entry)
        else:
            AdaptiveRegressorCV(entry)._read_grid()


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Add the class to the message of an error, and the type of an error that is not raised by admiss."""
    try:
        yield
    except (ValueError, SolverError) as error:
        kind = SolverError if isinstance(error, SolverError) else ValueError
        raise kind(f"{name}: {error}") from error
    except Exception as error:
        what = f"{name} raised {type(error).__name__} ({error})"
        raise ValueError(f"{what}: check_adaptivity of admiss.testing finds the cause.") from error


def _standard_error(by_fold: FloatArray) -> FloatArray:
    if by_fold.shape[1] == 1:
        return np.full(len(by_fold), np.nan)
    return np.asarray(by_fold.std(axis=1, ddof=1) / math.sqrt(by_fold.shape[1]))


def _searched(
    name: str, entry: Adaptivity | FiniteRegressorCV, X: FloatArray, y: FloatArray, lams: list[float], seed: int
) -> Any:
    """The model of a class on some rows, selected inside them by a short search, see the head of this module."""
    folds = min(5, len(y))
    if isinstance(entry, Adaptivity) and entry.has_structure():
        inner = make_folds(X, y, None, np.ones(len(y)), min(3, folds), seed)
        search: Any = GridSearchCV(
            AdaptiveRegressor(entry, l1_ratio=0.0),
            {"lam": lams},
            scoring="neg_mean_squared_error",
            cv=inner,
            error_score="raise",
        )
    else:
        search = AdaptiveRegressorCV(entry, l1_ratios=[0.0], n_lambdas=20, stop_early=True, cv=folds, random_state=seed)
    with silence(), _named(name):  # warnings about single features would be repeated in each fold
        return search.fit(X, y)


def _noise_or_none(X: FloatArray, y: FloatArray, seed: int) -> float | None:
    """The variance of the noise, or None if too few rows share a pattern."""
    from admiss.bounds import estimate_noise

    try:
        with silence():
            return estimate_noise(X, y, random_state=seed).value
    except ValueError:
        return None


def _theory_of(entry: Any, X: FloatArray, noise: float | None, L: float) -> tuple[float, float, str]:
    """p(F), the bound of Theorem 1 and whether it is vacuous; NaN and "-" if undefined.

    Parameters
    ----------
    entry : Adaptivity or estimator
        The models of an estimator, for instance of one that finds a partition, do not form a linear space.
    X : array of shape (n, d)
        Rows, whose patterns are the law of M.
    noise : float or None
        sigma^2, if known.
    L : float
        Bound on |f*|.
    """
    from admiss.bounds import BoundSetting, generalization_bound

    n, d = X.shape
    if not isinstance(entry, Adaptivity):
        return math.nan, math.nan, "-"
    if isinstance(entry, Polynomial) and entry.degree > d:
        entry = Polynomial(d)  # the same space
    p, bias = _count(entry, d, n), _bias(entry, X, L)
    if noise is None or math.isnan(p + bias):
        return p, math.nan, "-"
    bound = generalization_bound(BoundSetting(d, noise, L, bias=bias), n, entry)
    return p, bound.total, "yes" if bound.vacuous else "no"


def _count(adaptivity: Adaptivity, d: int, n: int) -> float:
    """p(F), infinite beyond the largest float, NaN if it needs all patterns of too many features."""
    from admiss.bounds import coefficient_count
    from admiss.bounds.counts import ALL_PATTERNS

    try:
        p = coefficient_count(adaptivity, d, n=n)
    except ValueError:
        if d <= ALL_PATTERNS:
            raise
        return math.nan
    return float(p) if p < 2**1023 else math.inf


def _bias(adaptivity: Adaptivity, X: FloatArray, L: float) -> float:
    """b(F) under the law of the observed patterns, NaN if unknown; an undeclared degree is found."""
    from admiss.bounds import bias_bound
    from admiss.bounds.bias import declared_degree
    from admiss.bounds.counts import ALL_PATTERNS, contains_polynomials, polynomial_degrees

    d, M = X.shape[1], np.isnan(X)
    if adaptivity.has_structure() or type(adaptivity).columns is not Adaptivity.columns:
        return math.nan
    if polynomial_degrees(adaptivity, d) is not None or declared_degree(adaptivity) is not None:
        return bias_bound(adaptivity, d, L, missing=M)
    if d > ALL_PATTERNS:
        return math.nan
    contained = [t for t in range(d + 1) if contains_polynomials(adaptivity, d, t, intercept=True)]
    # f = 0 is in every class: the bias is at most L^2, even if constant weights are not in the class
    return bias_bound(("polynomial", max(contained)), d, L, missing=M) if contained else L * L
