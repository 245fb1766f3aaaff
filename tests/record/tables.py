"""Small tables with what makes fits differ: weights, offsets, collinear columns, few and many patterns."""

from typing import NamedTuple

import numpy as np

NEW_ROWS = 12


class Rows(NamedTuple):
    """Training rows with weights, and rows to predict whose patterns are partly new."""

    X: np.ndarray
    y: np.ndarray
    s: np.ndarray
    X_new: np.ndarray

    @property
    def labels(self) -> np.ndarray:
        """Two class labels."""
        return np.where(self.y > np.median(self.y), "high", "low")

    @property
    def three_labels(self) -> np.ndarray:
        """Three class labels."""
        return np.digitize(self.y, np.quantile(self.y, [0.3, 0.7]))


def _table(seed: int, n: int = 150, d: int = 4, missing: float = 0.3) -> Rows:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n + NEW_ROWS, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)).round(6)
    M = rng.random(X.shape) < missing
    y = X @ np.linspace(1.0, -1.0, d) + M @ np.linspace(1.5, 0.5, d) + 2.0 * M[:, 0] * M[:, 1] + rng.normal(size=len(X))
    X[M] = np.nan
    y = y.round(6)  # products are not the same on all processors
    return Rows(X[:n], y[:n], np.ones(n), X[n:])


def _weighted() -> Rows:
    rows = _table(1)
    return rows._replace(s=np.random.default_rng(2).integers(0, 4, len(rows.y)).astype(float))


def _offset() -> Rows:
    rows = _table(3)
    shift = np.array([1e5, -1e4, 0.0, 30.0])
    return rows._replace(X=rows.X + shift, X_new=rows.X_new + shift, y=rows.y + 1e4)


def _collinear() -> Rows:
    rows = _table(4)
    noise = np.random.default_rng(5)

    def with_copy(X: np.ndarray) -> np.ndarray:
        copy = X[:, 0] + 1e-5 * noise.normal(size=len(X))
        return np.column_stack([X, copy])

    return rows._replace(X=with_copy(rows.X), X_new=with_copy(rows.X_new))


def _one_hot() -> Rows:
    rows = _table(6, d=2)
    rng = np.random.default_rng(7)

    def with_levels(X: np.ndarray) -> np.ndarray:
        return np.column_stack([X, np.eye(3)[rng.integers(0, 3, len(X))]])

    return rows._replace(X=with_levels(rows.X), X_new=with_levels(rows.X_new))


TABLES = {
    "plain": _table(0),
    "weighted": _weighted(),
    "offset": _offset(),
    "collinear": _collinear(),
    "one-hot": _one_hot(),
    "many patterns": _table(8, n=200, d=9, missing=0.5),
    "few patterns": _table(9, n=1200, d=3, missing=0.05),
}
