"""Generated data (Appendix B.1 of the paper).

    text      X ~ N(0, B B' + epsilon I),  B in R^{d x r} with standard normal entries         (rank r up to epsilon)
              Y = f(X) + noise,  f on a random subset of k features,  Var(noise) = Var(f) / SNR

    authors   as in their code: X ~ N(mu, B B' + epsilon I) with mu ~ N(0, I) and epsilon the machine epsilon; f applied
              to standardised X; ||noise|| = ||f|| / SNR with f not centred; for each feature a coin decides whether
              censoring hides its largest or its smallest values

Variances, norms and quantiles are those of the drawn rows, training and test rows together. For the exact
instances of the authors see ``paper_instance``.

Signals Y = f(X) + noise:

    linear   f(x) = b + w'x,                                        b ~ N(0, 1), w_j ~ U[-1, 1]
    nn       f(x) = b + sum_h v_h max{0, c_h + u_h'x},  h = 1..10,  b, c_h ~ N(0, 1), v_h and u_hj ~ U[-1, 1]
    tree     f(x) = value of the leaf of x in a random binary tree of depth 4, values ~ N(0, 1)

The paper names the tree without defining it. Here a node splits on a random feature among those that vary in it, at the
value of a random row among the middle half of its rows (x_j <= value goes left); a node in which no feature varies is a
leaf. With 5 features and a few hundred rows all 16 leaves contain rows, independently of the units of the features.

Noise is scaled relative to the drawn signal:

    text      Var(noise) = Var(f) / SNR                       the R2 of f is at most SNR / (1 + SNR)
    authors   ||noise|| = ||f|| / SNR, f not centred          the R2 of f is at most Var(f) / (Var(f) + ||noise||^2 / n)

``make_interacting`` draws data whose weights depend on an interaction of two indicators, which no single split reveals:

    X ~ N(0, I),   m_j ~ Bernoulli(fraction) independently,   parity = m_1 xor m_2
    y = sum_{j > 2} sign_j x_j (1 - m_j) + noise
    sign_j = 1 if the parity is 0; if it is 1, -1 for every second j

If fraction = 1/2, splitting on m_1 alone or on m_2 alone explains nothing, as both sides contain both parities, while
the tree that splits on both explains everything. A greedy search has no reason to start with them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from admiss.datasets.mechanisms.composed import resolve_mechanism
from admiss.datasets.mechanisms.single import Censoring, Mechanism, standardise
from formulations.arrays import BoolArray, FloatArray, IntArray

SIGNALS = ("linear", "nn", "tree")
PROTOCOLS = ("text", "authors")
EPSILON = {"text": 1e-6, "authors": float(np.finfo(float).eps)}


@dataclass(frozen=True)
class SyntheticData:
    """Training and test rows of a generated data set.

    Attributes
    ----------
    X_train, X_test : arrays of shape (n, d) and (n_test, d)
        Features, NaN where missing.
    y_train, y_test : arrays of shape (n,) and (n_test,)
        Targets.
    X_full_train, X_full_test : arrays
        Features before values were removed.
    signal_train, signal_test : arrays
        Targets without noise.
    ceiling : float
        The largest R2 that the signal can attain.
    """

    X_train: FloatArray
    X_test: FloatArray
    y_train: FloatArray
    y_test: FloatArray
    X_full_train: FloatArray
    X_full_test: FloatArray
    signal_train: FloatArray
    signal_test: FloatArray
    ceiling: float

    @property
    def M_train(self) -> BoolArray:
        """The missing values of the training rows."""
        return np.isnan(self.X_train)

    @property
    def M_test(self) -> BoolArray:
        """The missing values of the test rows."""
        return np.isnan(self.X_test)


def split_rows(
    train: Any, test: Any, *, X: FloatArray, X_full: FloatArray, y: FloatArray, signal: FloatArray
) -> dict[str, FloatArray]:
    """The array attributes of ``SyntheticData``, given the training and test rows."""
    arrays, parts = {"X": X, "X_full": X_full, "y": y, "signal": signal}, {"train": train, "test": test}
    return {f"{name}_{part}": array[rows] for name, array in arrays.items() for part, rows in parts.items()}


def make_synthetic(
    n: int = 1000,
    d: int = 10,
    rank: int = 5,
    signal: str = "linear",
    n_active: int = 5,
    snr: float = 2.0,
    mechanism: str | Mechanism = "mcar",
    missing_fraction: float = 0.3,
    n_test: int = 5000,
    protocol: str = "text",
    random_state: int | np.random.RandomState | None = None,
) -> SyntheticData:
    """Training and test rows as described in the paper, or as drawn by its authors.

    Parameters
    ----------
    n, n_test : int
        Training and test rows.
    d, rank : int
        Features, and the rank of their covariance up to epsilon.
    signal : {"linear", "nn", "tree"}
        See ``admiss.datasets.generated``.
    n_active : int
        Number of features used by the signal.
    snr : float
        Var(f) / Var(noise) under "text", ||f|| / ||noise|| under "authors".
    mechanism : {"mcar", "mar", "self_masking", "censoring", "blocks"} or callable
        Missingness mechanism, see ``admiss.datasets.mechanisms``.
    missing_fraction : float
        Share of missing values of each feature, for a mechanism given by name; with "mar" the first feature is never
        missing and determines the probabilities.
    protocol : {"text", "authors"}
        The data as described in the text, or as drawn by the authors' code.
    random_state : int, RandomState or None

    Examples
    --------
    >>> data = make_synthetic(n=100, mechanism="censoring", missing_fraction=0.5, random_state=0)
    >>> data.X_train.shape, round(data.ceiling, 3)
    ((100, 10), 0.667)
    """
    if protocol not in PROTOCOLS:
        raise ValueError(f"Unknown protocol {protocol!r}: choose one of {', '.join(map(repr, PROTOCOLS))}.")
    check_signal(signal, snr)
    for name, value in (("n", n), ("n_test", n_test), ("d", d), ("rank", rank)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value!r}.")
    if not 1 <= n_active <= d:
        raise ValueError(f"n_active must be from 1 to d = {d}, not {n_active!r}.")
    remove = resolve_mechanism(mechanism, missing_fraction)
    if protocol == "authors" and mechanism == "censoring":
        remove = Censoring(missing_fraction, side="coin")
    rng = check_random_state(random_state)

    B = rng.normal(size=(d, rank))
    mu = rng.normal(size=d) if protocol == "authors" else np.zeros(d)
    Z = rng.normal(size=(n + n_test, rank)) @ B.T
    X = mu + Z + np.sqrt(EPSILON[protocol]) * rng.normal(size=(n + n_test, d))
    active = rng.permutation(d)[:n_active]
    seen = X[:, active] if protocol == "text" else standardise(X[:, active])
    f = draw_signal(signal, seen, rng)
    y, ceiling = add_noise(f, snr, rng, protocol)
    observed = np.where(_checked(remove(X, rng), X), np.nan, X)
    parts = split_rows(slice(n), slice(n, None), X=observed, X_full=X, y=y, signal=f)
    return SyntheticData(**parts, ceiling=ceiling)


def _checked(M: object, X: FloatArray) -> BoolArray:
    """The result of a mechanism, checked to be a 0/1 matrix of the shape of X."""
    matrix = np.asarray(M)
    if matrix.shape != X.shape or not np.isin(matrix, (0, 1)).all():
        raise ValueError(f"The mechanism must return a 0/1 matrix of shape {X.shape}, not one of shape {matrix.shape}.")
    return matrix.astype(bool)


def make_interacting(
    n: int = 1000,
    d: int = 10,
    snr: float = 2.0,
    missing_fraction: float = 0.5,
    n_test: int = 5000,
    random_state: int | np.random.RandomState | None = None,
) -> SyntheticData:
    """Training and test rows whose weights depend on the parity of the first two indicators.

    Parameters
    ----------
    n, snr, n_test, random_state
        As in :func:`make_synthetic`.
    d : int
        Features, at least 4.
    missing_fraction : float
        Share of values that are missing completely at random.

    Examples
    --------
    >>> data = make_interacting(n=100, random_state=0)
    >>> data.X_train.shape
    (100, 10)
    """
    if d < 4 or min(n, n_test) < 1 or not snr > 0 or not 0 <= missing_fraction <= 1:
        raise ValueError("make_interacting needs d >= 4, n and n_test >= 1, snr > 0 and a missing fraction in [0, 1].")
    rng = check_random_state(random_state)
    X = rng.normal(size=(n + n_test, d))
    M = rng.uniform(size=X.shape) < missing_fraction
    parity = M[:, 0] ^ M[:, 1]
    flipped = np.arange(2, d) % 2 == 0
    signs = np.where(parity[:, None] & flipped, -1.0, 1.0)
    f = (signs * np.where(M, 0.0, X)[:, 2:]).sum(axis=1)
    y, ceiling = add_noise(f, snr, rng)
    parts = split_rows(slice(n), slice(n, None), X=np.where(M, np.nan, X), X_full=X, y=y, signal=f)
    return SyntheticData(**parts, ceiling=ceiling)


def check_signal(signal: str, snr: float) -> None:
    """Raise an error if the signal is unknown or snr is not positive."""
    if signal not in SIGNALS:
        raise ValueError(f"Unknown signal {signal!r}: choose one of {', '.join(map(repr, SIGNALS))}.")
    if not 0 < snr < np.inf:
        raise ValueError(f"snr must be a positive number, not {snr!r}.")


def draw_signal(signal: str, X: FloatArray, rng: np.random.RandomState) -> FloatArray:
    """The values of a random function of all features, on the rows of a full matrix.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(500, 5))
    >>> len(np.unique(draw_signal("tree", X, np.random.RandomState(0))))
    16
    """
    if signal == "linear":
        return _linear(X, rng)
    return _neural_network(X, rng) if signal == "nn" else _tree(X, np.arange(len(X)), 4, rng)


def add_noise(
    f: FloatArray, snr: float, rng: np.random.RandomState, protocol: str = "text"
) -> tuple[FloatArray, float]:
    """The target, and the largest R2 that f can attain.

    Examples
    --------
    >>> y, ceiling = add_noise(np.arange(100.0), 2.0, np.random.RandomState(0))
    >>> round(ceiling, 3)
    0.667
    """
    noise = rng.normal(size=len(f))
    if protocol == "text":
        return f + np.sqrt(f.var() / snr) * noise, snr / (1.0 + snr)
    noise *= np.linalg.norm(f) / (snr * np.linalg.norm(noise))
    spread = f.var() + float(np.mean(noise**2))
    return f + noise, float(f.var() / spread) if spread > 0 else 0.0


def _linear(X: FloatArray, rng: np.random.RandomState) -> FloatArray:
    return rng.normal() + X @ rng.uniform(-1, 1, size=X.shape[1])


def _neural_network(X: FloatArray, rng: np.random.RandomState) -> FloatArray:
    hidden = np.maximum(0.0, rng.normal(size=10) + X @ rng.uniform(-1, 1, size=(X.shape[1], 10)))
    return rng.normal() + hidden @ rng.uniform(-1, 1, size=10)


def _tree(X: FloatArray, rows: IntArray, depth: int, rng: np.random.RandomState) -> FloatArray:
    """The values of the rows of one node."""
    here = X[rows]
    varies = np.flatnonzero(here.max(axis=0) > here.min(axis=0)) if len(rows) else np.array([], dtype=int)
    if depth == 0 or len(varies) == 0:
        return np.full(len(rows), rng.normal())
    x = here[:, rng.choice(varies)]
    low, high = np.quantile(x, [0.25, 0.75], method="nearest")
    middle = x[(low <= x) & (x <= high) & (x < x.max())]
    # If more than three quarters of the rows have the largest value, all others go left.
    value = rng.choice(middle) if len(middle) else x[x < x.max()].max()
    f = np.empty(len(rows))
    for side in (x <= value, x > value):
        f[side] = _tree(X, rows[side], depth - 1, rng)
    return f
