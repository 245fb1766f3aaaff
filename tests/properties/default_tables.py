"""Tables as strangers bring them: each kind is drawn anew from a seed.

``TABLES[name](seed)`` is a :class:`Table`: features with NaN where missing, a target (numbers, or labels of classes),
and weights if the rows have them. :func:`customers` is a file as somebody exports it, with text, dates and an ID.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Table:
    X: np.ndarray
    y: np.ndarray
    task: str = "regression"
    weights: np.ndarray | None = None


@dataclass(frozen=True)
class _Linear:
    """A linear target of features of low rank, and the entries that will be missing."""

    rng: np.random.Generator
    X: np.ndarray
    y: np.ndarray
    M: np.ndarray


def _linear(seed: int, n: int = 400, d: int = 8, missing: float = 0.25) -> _Linear:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, d)) + 0.5 * rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    return _Linear(rng, X, y, rng.random((n, d)) < missing)


def _hide(X: np.ndarray, M: np.ndarray) -> np.ndarray:
    return np.where(M, np.nan, X)


def natural_units(seed: int) -> Table:
    """Units from 1e-4 to 1e6."""
    t = _linear(seed)
    return Table(_hide(t.X * 10.0 ** t.rng.integers(-4, 7, 8), t.M), t.y)


def offsets(seed: int) -> Table:
    """Means of up to a thousand standard deviations, as a year has."""
    t = _linear(seed)
    return Table(_hide(t.X + t.rng.choice([0, 10, 200, 1000], 8), t.M), t.y)


def target_far_from_zero(seed: int) -> Table:
    t = _linear(seed)
    return Table(_hide(t.X, t.M), t.y + 1e6)


def tiny_target(seed: int) -> Table:
    """A target in units of 1e-9, with an offset."""
    t = _linear(seed)
    return Table(_hide(t.X, t.M), 1e-9 * (t.y + 20))


def huge_target(seed: int) -> Table:
    """A target in units of 1e9."""
    t = _linear(seed)
    return Table(_hide(t.X, t.M), 1e9 * t.y)


def heavy_tails(seed: int) -> Table:
    """Squared Student t with 2 degrees of freedom as a factor, and a log-normal column."""
    t = _linear(seed)
    X = t.X.copy()
    X[:, :4] *= t.rng.standard_t(2, (len(X), 1)) ** 2
    X[:, 7] = np.exp(2 * X[:, 7])
    return Table(_hide(X, t.M), t.y)


def few_rows(seed: int) -> Table:
    """Thirty rows."""
    t = _linear(seed, n=30, d=6)
    return Table(_hide(t.X, t.M), t.y)


def wide(seed: int) -> Table:
    """150 x 300."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 300))
    return Table(_hide(X, rng.random(X.shape) < 0.1), 2 * X[:, 0] + X[:, 1] + rng.normal(size=150))


def one_hot(seed: int) -> Table:
    """150 levels as columns of 0 and 1 beside six numbers."""
    t = _linear(seed, n=600, d=6)
    level = t.rng.integers(0, 150, 600)
    X = np.column_stack([_hide(t.X, t.M), np.eye(150)[level]])
    return Table(X, t.y + t.rng.normal(size=150)[level])


def constants_and_copies(seed: int) -> Table:
    """Constant, duplicated, all-missing and nearly constant columns."""
    t = _linear(seed)
    Z, n = _hide(t.X, t.M), len(t.X)
    return Table(np.column_stack([Z, np.ones(n), Z[:, 0], np.full(n, np.nan), np.arange(n) == 3]), t.y)


def indicators_alone(seed: int) -> Table:
    """Only the missingness pattern predicts."""
    t = _linear(seed)
    return Table(_hide(t.X, t.M), t.M @ t.rng.normal(size=8) * 2 + t.rng.normal(size=len(t.X)))


def censored(seed: int) -> Table:
    """Large values are missing."""
    t = _linear(seed)
    return Table(_hide(t.X, t.X > np.quantile(t.X, 0.7, axis=0)), t.y)


def blocks(seed: int) -> Table:
    """Pairs of columns are missing together."""
    t = _linear(seed)
    return Table(_hide(t.X, np.repeat(t.rng.random((len(t.X), 4)) < 0.3, 2, axis=1)), t.y)


def nearly_complete(seed: int) -> Table:
    """One value in a hundred is missing."""
    t = _linear(seed, missing=0.01)
    return Table(_hide(t.X, t.M), t.y)


def mostly_missing(seed: int) -> Table:
    """Four values in five are missing."""
    t = _linear(seed, n=800, missing=0.8)
    return Table(_hide(t.X, t.M), t.y)


def rarely_measured(seed: int) -> Table:
    """The most informative column is missing in nine rows of ten."""
    t = _linear(seed)
    extra = t.rng.normal(size=len(t.X))
    hidden = np.column_stack([t.M, t.rng.random(len(t.X)) < 0.9])
    return Table(_hide(np.column_stack([t.X, 50 + 10 * extra]), hidden), t.y + 4 * extra)


def non_linear(seed: int) -> Table:
    """A step and a product."""
    t = _linear(seed)
    return Table(
        _hide(t.X, t.M), 2 * (t.X[:, 0] > 0) + t.X[:, 1] * t.X[:, 2] + 0.5 * t.rng.normal(size=len(t.X))
    )  # fmt: skip


def noise_only(seed: int) -> Table:
    """Nothing predicts."""
    t = _linear(seed)
    return Table(_hide(t.X, t.M), t.rng.normal(size=len(t.X)))


def integers(seed: int) -> Table:
    """Counts and ordinals."""
    t = _linear(seed)
    return Table(_hide(np.round(3 * t.X) + t.rng.poisson(20, t.X.shape), t.M), np.round(t.y))


def weighted_rows(seed: int) -> Table:
    """Weights between 0.1 and 10; rows of large weight have another intercept."""
    t = _linear(seed)
    weights = 10.0 ** t.rng.uniform(-1, 1, len(t.X))
    return Table(_hide(t.X + 30, t.M), t.y + 2 * (weights > 1), weights=weights)


def two_classes(seed: int) -> Table:
    """Balanced labels, offsets."""
    t = _linear(seed)
    return Table(_hide(t.X + 100, t.M), np.where(t.y > np.median(t.y), "yes", "no"), "classification")


def rare_class(seed: int) -> Table:
    """Three rows in a hundred."""
    t = _linear(seed, n=1000)
    return Table(_hide(t.X, t.M), (t.y > np.quantile(t.y, 0.97)).astype(int), "classification")


def four_classes(seed: int) -> Table:
    """Unequal shares, natural units."""
    t = _linear(seed)
    labels = np.array(list("ABCD"))[np.digitize(t.y, np.quantile(t.y, [0.6, 0.9, 0.97]))]
    return Table(_hide(t.X * 10.0 ** t.rng.integers(-3, 4, 8), t.M), labels, "classification")


def separable(seed: int) -> Table:
    """Classes that a line separates."""
    t = _linear(seed, missing=0.1)
    return Table(_hide(t.X, t.M), (t.X[:, 0] > 0).astype(int), "classification")


def few_rows_of_classes(seed: int) -> Table:
    """Forty rows of two classes."""
    t = _linear(seed, n=40, d=6)
    return Table(_hide(t.X, t.M), (t.y > np.median(t.y)).astype(int), "classification")


def one_hot_classes(seed: int) -> Table:
    """150 levels as columns of 0 and 1 beside six numbers, two classes."""
    t = one_hot(seed)
    return Table(t.X, (t.y > np.median(t.y)).astype(int), "classification")


def weighted_classes(seed: int) -> Table:
    """Weights between 0.1 and 10, two classes."""
    t = weighted_rows(seed)
    return Table(t.X, (t.y > np.median(t.y)).astype(int), "classification", t.weights)


_KINDS: tuple[Callable[[int], Table], ...] = (
    natural_units, offsets, target_far_from_zero, tiny_target, huge_target, heavy_tails, few_rows, wide, one_hot,
    constants_and_copies, indicators_alone, censored, blocks, nearly_complete, mostly_missing, rarely_measured,
    non_linear, noise_only, integers, weighted_rows, two_classes, rare_class, four_classes, separable,
    few_rows_of_classes, one_hot_classes, weighted_classes,
)  # fmt: skip
TABLES = {kind.__name__: kind for kind in _KINDS}


def customers(seed: int, target: str, n: int = 600) -> Any:
    """A data frame of 26 columns and a target: a year, an income, '?' and 'NA', a constant, a copy, an ID, a date, ..

    The target is "y", a number near 2000, or "churn", yes or no.
    """
    rng = np.random.default_rng(seed)
    d = pd.DataFrame(
        {
            "customer_id": np.arange(100000, 100000 + n),
            "signup": pd.date_range("2015-01-01", periods=n, freq="17h").astype(str),
            "year": rng.integers(1990, 2024, n).astype(float),
            "region": rng.choice(["North", "South", "East", "West", "?"], n, p=[0.4, 0.2, 0.2, 0.1, 0.1]),
            "plan": rng.choice(["basic", "pro", "NA", "enterprise"], n, p=[0.6, 0.25, 0.1, 0.05]),
            "income": np.exp(rng.normal(10, 1.5, n)),
            "age": rng.normal(45, 12, n).round(),
            "bp": rng.normal(130, 15, n),
            "const": 1.0,
            **{f"z{j}": rng.standard_t(2, n) for j in range(16)},
            "zip": rng.choice([f"Z{k:03d}" for k in range(150)], n),
        }
    )
    signal = 2000 + 0.5 * (d.year - 2000) + 0.1 * d.bp - 0.05 * d.age + 0.8 * np.log(d.income)
    signal += d.z0.clip(-3, 3) + (d.plan == "pro") * 2
    y = signal + rng.normal(0, 2, n)
    d.loc[rng.random(n) < 0.6 * (d.income > d.income.median()), "income"] = np.nan
    for name in ("age", "bp", "year", "z0", "z1", "z2"):
        d.loc[rng.random(n) < 0.25, name] = np.nan
    d["bp_copy"] = d.bp
    if target == "y":
        return d.assign(y=y)
    p = 1 / (1 + np.exp(-(signal - signal.mean() - 4)))
    return d.assign(churn=np.where(rng.random(n) < p, "yes", "no"))
