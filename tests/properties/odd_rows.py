"""Random rows: sizes, scales, offsets, missing values, targets and weights, all drawn from one generator.

Tame rows are the usual ones: of any shape, with any missing values, and with sizes between 1e-3 and 1e6. In wild rows
each part is odd with some probability.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

EXTREMES = (0.0, 5e-324, 1e-320, 1e-300, 1e-160, 1e-119, 1e-60, 1e-12, 1e8, 1e15, 1e60, 1e119, 1e160, 1e300)
MILD = (1e-3, 0.1, 1.0, 1.0, 1.0, 30.0, 1e3)
WEIGHTS = ("none", "none", "none", "counts", "uniform", "some_zero")
PATTERNS = (
    "random", "random", "random", "rare", "none", "monotone", "blocks", "together", "late", "all", "one", "column",
)  # fmt: skip
# Rows, and rows of each class, of a table that must be fitted if it is tame.
ENOUGH_ROWS, ENOUGH_OF_A_CLASS = 12, 4


@dataclass(frozen=True)
class Rows:
    """A table with its target and weights; ``y`` are numbers, or codes of classes, ``test`` are rows to predict."""

    X: Any
    y: Any
    s: Any
    test: Any
    tame: bool

    def are_enough(self, classes: bool) -> bool:
        """Whether a model must fit them: enough rows (of each class) of positive weight, and enough observed values."""
        counts = np.unique(self.y, return_counts=True)[1]
        of_classes = not classes or (len(counts) > 1 and counts.min() >= ENOUGH_OF_A_CLASS)
        weighted = self.s is None or bool(np.all(self.s > 0))
        observed = float(np.mean(~np.isnan(self.X))) > 0.2
        return self.tame and len(self.y) >= ENOUGH_ROWS and of_classes and weighted and observed


def pick(rng: np.random.Generator, options: Any) -> Any:
    """One of the options, not converted to a numpy type."""
    return options[int(rng.integers(len(options)))]


def random_rows(seed: int, classes: bool, wild: bool) -> Rows:
    """The rows of a seed."""
    rng = np.random.default_rng([seed, classes, wild])
    n, d = _shape(rng, wild)
    n_test = int(rng.integers(1, 8)) if not odd(rng, wild, 0.05) else 0
    Z = _values(rng, n + n_test, d)
    M = _missing(rng, pick(rng, PATTERNS), n + n_test, d)
    M[n:] |= rng.uniform(size=(n_test, d)) < pick(rng, (0.0, 0.0, 0.3))  # patterns that training has not seen
    signal = np.where(M, 0.0, Z) @ rng.normal(size=d) + M @ rng.normal(size=d) + 0.3 * rng.normal(size=n + n_test)
    X = np.where(M, np.nan, _in_units(rng, Z, wild))
    if odd(rng, wild, 0.05) and X.size:
        X[tuple(rng.integers(size) for size in X.shape)] = pick(rng, (np.inf, -np.inf))
    y = _codes(rng, signal[:n], wild) if classes else _target(rng, signal[:n], wild)
    return Rows(X[:n], y, _weights(rng, pick(rng, WEIGHTS), n), X[n:], not wild)


def odd(rng: np.random.Generator, wild: bool, probability: float) -> bool:
    """Whether a part is odd; a number is drawn either way, so that other parts do not depend on it."""
    return bool(rng.uniform() < probability) and wild


def _shape(rng: np.random.Generator, wild: bool) -> tuple[int, int]:
    n = int(pick(rng, (rng.integers(1, 8), rng.integers(8, 20), rng.integers(12, 41), rng.integers(20, 41))))
    d = int(pick(rng, (1, 1, 2, 2, 3, 3, 4, 4, rng.integers(5, 9))))
    if odd(rng, wild, 0.06):
        n, d = pick(rng, ((0, d), (1, d), (n, 0), (0, 0), (2, 8), (1, 1)))
    return n, d


def _values(rng: np.random.Generator, n: int, d: int) -> Any:
    """Columns of about unit size, of many kinds."""
    Z = rng.normal(size=(n, d))
    if pick(rng, (True, False)):
        Z = Z @ rng.normal(size=(d, d))
    for j in range(d):
        kind = pick(rng, ("normal",) * 6 + ("whole", "binary", "constant", "heavy", "copy", "near", "zero"))
        if kind == "whole":
            Z[:, j] = np.round(3 * Z[:, j])
        elif kind == "binary":
            Z[:, j] = Z[:, j] > 0
        elif kind == "constant":
            Z[:, j] = 1.25
        elif kind == "zero":
            Z[:, j] = 0.0
        elif kind == "heavy":
            Z[:, j] = np.sinh(np.clip(3 * Z[:, j], -12, 12))
        elif kind == "copy" and j:
            Z[:, j] = Z[:, j - 1]
        elif kind == "near" and j:
            Z[:, j] = Z[:, 0] + 1e-7 * rng.normal(size=n)
    return Z


def _in_units(rng: np.random.Generator, Z: Any, wild: bool) -> Any:
    d = Z.shape[1]
    scale, offset = (
        np.array([pick(rng, MILD) for _ in range(d)]),
        np.array([pick(rng, (0, 0, 3, 50)) for _ in range(d)]),
    )
    extreme = np.array([pick(rng, EXTREMES) for _ in range(d)])
    far = np.array([pick(rng, (1e3, 1e6, 1e9, 1e15)) for _ in range(d)])
    kind = pick(rng, ("one", "all", "same")) if odd(rng, wild, 0.3) else None
    if kind == "one" and d:
        scale[0] = extreme[0]
    elif kind == "all":
        scale = extreme
    elif kind == "same" and d:
        scale[:] = extreme[0]
    if odd(rng, wild, 0.2):
        offset = np.where(rng.uniform(size=d) < 0.5, far, offset)
    return (Z + offset) * scale


def _missing(rng: np.random.Generator, kind: str, n: int, d: int) -> Any:
    M = rng.uniform(size=(n, d)) < pick(rng, (0.1, 0.3, 0.6))
    if kind == "rare":
        M &= rng.uniform(size=(n, d)) < 0.2
    elif kind == "none":
        M[:] = False
    elif kind == "monotone":
        M = np.arange(d) >= rng.integers(0, d + 1, size=n)[:, None]
    elif kind == "blocks" and d:
        M = np.repeat(rng.uniform(size=(n, (d + 1) // 2)) < 0.4, 2, axis=1)[:, :d]
    elif kind == "together" and d:
        M = np.repeat(M[:, :1], d, axis=1)
    elif kind == "late":
        M[: (2 * n) // 3] = False
    elif kind == "all":
        M[:] = True
    elif kind == "one":
        M[:] = True
        if M.size:
            M[rng.integers(n), rng.integers(d)] = False
    elif kind == "column" and d:
        M[:, rng.integers(d)] = True
    return M


def _target(rng: np.random.Generator, signal: Any, wild: bool) -> Any:
    kind = pick(rng, ("plain",) * 6 + ("constant", "two", "zero", "whole", "offset", "heavy"))
    y = signal.copy()
    if kind in ("constant", "zero"):
        y[:] = 2.5 if kind == "constant" else 0.0
    elif kind == "two":
        y = np.where(y > 0, 1.0, -1.0)
    elif kind == "whole":
        y = np.round(y)
    elif kind == "offset":
        y += 1e4
    elif kind == "heavy":
        y = np.sinh(np.clip(2 * y, -10, 10))
    unit = pick(rng, MILD)
    extreme, bad = pick(rng, EXTREMES), pick(rng, (np.nan, np.inf, -np.inf))
    if odd(rng, wild, 0.25):
        unit = extreme
    y = y * unit
    if odd(rng, wild, 0.06) and len(y):
        y[-1] = bad
    return y


def _codes(rng: np.random.Generator, signal: Any, wild: bool) -> Any:
    """Codes of classes by the ranks of the signal."""
    n = len(signal)
    ranks = np.argsort(np.argsort(signal))
    k = pick(rng, (2, 2, 2, 2, 3, 4))
    codes = ranks * k // max(1, n)
    kind = pick(rng, ("one", "single", "many", "rare", "noise")) if odd(rng, wild, 0.3) else None
    if kind == "one":
        codes[:] = 0
    elif kind == "single":
        codes = (ranks == n - 1).astype(int)
    elif kind == "many":
        codes = ranks
    elif kind == "rare":
        codes = (ranks >= n - 2).astype(int)
    elif kind == "noise":
        codes = rng.integers(k, size=n)
    return codes


def _weights(rng: np.random.Generator, kind: str, n: int) -> Any:
    base = rng.uniform(0.5, 2.0, size=n)
    made: dict[str, Any] = {
        "none": None,
        "counts": rng.integers(1, 4, size=n).astype(float),
        "uniform": base,
        "some_zero": np.where(rng.uniform(size=n) < 0.3, 0.0, base),
    }
    return made[kind]
