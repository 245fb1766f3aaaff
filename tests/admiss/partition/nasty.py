"""Random tables on which costs of leaves are hard to compute, each given by a seed.

``one_bad_box``: two columns are nearly collinear in one box only, and the target follows their difference there. Sums
of squares over all rows do not show it.

``nasty``: any mixture of duplicated, collinear, nearly collinear and constant columns, offsets and units of 1e6, ties,
weights over orders of magnitude, leaves with fewer rows than columns, exact fits, and limits that bind.

Features are centred and scaled, one of these, or none.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

RIDGES = (0.0, 1e-14, 1.0)
MORE_RIDGES = (0.0, 0.0, 1e-14, 1e-6, 1e-2, 1.0, 100.0)


@dataclass
class Table:
    """Data, settings of the model, and limits of the partition."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)


def one_bad_box(seed):
    """Collinearity 1e-4 to 1e-7 in one box, units 1 to 1e6, ridge 0, 1e-14 or 1; 4 to 8 patterns."""
    rng = np.random.default_rng([1, seed])
    n = int(rng.choice([60, 100, 200, 400]))
    a, b, z = rng.standard_normal((3, n))
    m2, m3, m4 = rng.random((3, n)) < 0.5
    nearness, unit = 10 ** -rng.uniform(4, 7), 10 ** rng.uniform(0, 6)
    y = np.where(m2, z, 0.3 * a + b) + np.where(m3, 0.5, -0.5)
    columns = [a, np.where(m2, a + nearness * z, b), np.where(m2, np.nan, a), np.where(m3, np.nan, b)]
    if seed % 3 == 2:
        columns.append(np.where(m4, np.nan, rng.standard_normal(n)))
    X, centred = unit * np.column_stack(columns), seed % 4 > 0
    if centred:  # to forty bits, so that a column still repeats another one after both are centred
        X = np.round(X * 2.0**40 / unit_of_two(unit)) * unit_of_two(unit) / 2.0**40
    return Table(
        X=X,
        y=y,
        settings={
            "ridge": float(rng.choice(RIDGES)),
            "leaf_model": str(rng.choice(["static", "static", "affine_intercept"])),
            "ridge_scale": str(rng.choice(["leaf", "leaf", "sample"])),
            "scale": seed % 5 == 4,
            "center": centred,
        },
        limits={"max_depth": int(rng.integers(1, 3)), "max_leaves": int(rng.integers(2, 5))},
    )


def unit_of_two(unit):
    return 2.0 ** np.round(np.log2(unit))


def nasty(seed, most_features=6, most_patterns=64):
    """Any mixture of difficulties, with at most so many features and patterns."""
    rng = np.random.default_rng([2, seed])

    def happens(share):
        return rng.random() < share

    d, n = int(rng.integers(2, most_features + 1)), int(20 * 20 ** rng.random())
    M = _patterns(rng, n, d, most_patterns)
    X = rng.integers(-3, 4, size=(n, d)).astype(float) if happens(0.3) else rng.standard_normal((n, d))
    for _ in range(int(rng.integers(0, 3))):
        _spoil_columns(rng, X, M)
    y = _target(rng, X, M)
    if happens(0.25):
        _repeat_a_pattern(rng, X, M, y)
    if happens(0.2):
        X[:, rng.integers(d)] += 1e6
    if happens(0.3):
        X *= 10.0 ** rng.integers(-6, 7, size=d)
    return Table(
        X=np.where(M, np.nan, X),
        y=y,
        weights=_weights(rng, n),
        settings={
            "ridge": float(rng.choice(MORE_RIDGES)),
            "leaf_model": str(rng.choice(["static", "affine_intercept"])),
            "ridge_scale": str(rng.choice(["leaf", "sample"])),
            "scale": bool(happens(0.3)),
            "center": bool(seed % 3),
        },
        limits={
            "max_depth": int(rng.integers(1, 4)),
            "max_leaves": int(rng.integers(2, 5)) if happens(0.5) else None,
            "min_rows": [None, 1, 2, 5, max(1, n // 4)][int(rng.integers(5))],
        },
    )


def nasty_and_small(seed, loss, ridge=None):
    """The same for other losses: few features and rows, and labels for the logistic loss."""
    table, rng = nasty(seed, most_features=3, most_patterns=8), np.random.default_rng([3, seed])
    used = rng.permutation(len(table.y))[:40]
    X, y, weights = table.X[used], table.y[used], None if table.weights is None else table.weights[used]
    if loss == "logistic":
        y = np.digitize(y, np.quantile(y, [0.5] if seed % 3 else [0.3, 0.7])).astype(float)
        if len(np.unique(y)) == 1:
            y[: len(y) // 2] += 1.0
        weights = None if weights is None else np.maximum(weights, 1e-2)  # no class is left out
        ridge = float(rng.choice([1e-2, 1.0, 100.0]))
    settings = {**table.settings, "loss": loss} | ({} if ridge is None else {"ridge": ridge})
    limits = {**table.limits, "max_depth": min(table.limits["max_depth"], 2), "min_rows": int(rng.choice([3, 5, 8]))}
    return Table(X, y, weights, settings, limits)


def _patterns(rng, n, d, most):
    """Missing entries: few distinct patterns of unequal frequency; sometimes two features are missing together."""
    count = min(int(rng.integers(2, most + 1)), 1 << d)
    listed = (rng.choice(1 << d, count, replace=False)[:, None] >> np.arange(d) & 1).astype(bool)
    if rng.random() < 0.2:
        i, j = rng.choice(d, 2, replace=False)
        listed[:, j] = listed[:, i]
    share = rng.dirichlet(np.full(len(listed), 2.0))
    return listed[rng.choice(len(listed), n, p=share)]


def _spoil_columns(rng, X, M):
    """One column becomes a duplicate, a combination, nearly a duplicate (everywhere or in one box), or a constant."""
    n, d = X.shape
    i, j, k = (int(feature) for feature in rng.integers(d, size=3))
    nearness = 10 ** -rng.uniform(4, 9)
    kind = int(rng.integers(6))
    if kind == 0:
        X[:, j] = X[:, i]
    elif kind == 1:
        X[:, j] = 3.0 * X[:, i] + X[:, k]
    elif kind == 2:
        X[:, j] = X[:, i] + nearness * rng.standard_normal(n)
    elif kind == 3:
        X[:, j] = np.where(M[:, k], X[:, i] + nearness * rng.standard_normal(n), X[:, j])
    elif kind == 4:
        X[:, j] = rng.choice([0.0, 5.0, 1e6])
    else:
        X[:, j] = X[0, j] + nearness * X[:, j]


def _target(rng, X, M):
    """A linear target whose coefficients depend on the pattern; exact with small integers, or with noise."""
    n, d = X.shape
    exact = rng.random() < 0.15
    w = rng.integers(-2, 3, size=(3, d)).astype(float) if exact else rng.standard_normal((3, d))
    if not exact and rng.random() < 0.3:
        w[0] *= 10 ** rng.uniform(0, 6)  # the target follows small differences between columns
    used = np.where(M, 0.0, X)
    y = used @ w[0] + M[:, int(rng.integers(d))] * (used @ w[1] + 1.0) + M @ w[2]
    if not exact:
        y += 10 ** rng.uniform(-6, 0) * rng.standard_normal(n)
    if rng.random() < 0.1:
        y = y + 1e6
    return y * 10.0 ** rng.integers(-6, 7) if rng.random() < 0.1 else y


def _repeat_a_pattern(rng, X, M, y):
    """The rows of one pattern get the data of another one, so that partitions tie."""
    patterns, codes = np.unique(M, axis=0, return_inverse=True)
    if len(patterns) < 2:
        return
    first, second = (np.flatnonzero(codes.ravel() == p) for p in rng.choice(len(patterns), 2, replace=False))
    source = first[np.arange(len(second)) % len(first)]
    X[second], y[second] = X[source], y[source]


def _weights(rng, n):
    """None, integers from 0 to 3, or weights over eight orders of magnitude."""
    kind = int(rng.integers(4))
    if kind < 2:
        return None
    return rng.integers(0, 4, size=n).astype(float) if kind == 2 else 10 ** rng.uniform(-4, 4, size=n)
