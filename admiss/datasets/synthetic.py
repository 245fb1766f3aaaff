"""Generated data (Appendix B.1 of the paper).

    X ~ N(0, B B' + epsilon I),  B in R^{d x r} with standard normal entries          (rank r up to epsilon)
    Y = f(X) + noise,  f on a random subset of k features,  Var(noise) = Var(f) / SNR

    linear   f(x) = b + w'x,                                       b ~ N(0, 1), w_j ~ U[-1, 1]
    nn       f(x) = b + sum_h v_h max{0, c_h + u_h'x},  h = 1..10,  b, c_h ~ N(0, 1), v_h and u_hj ~ U[-1, 1]

The best possible R2 with the full X is SNR / (1 + SNR). Variances and quantiles are those of the rows drawn, training
and test rows together.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from admiss.datasets.mechanisms import Mechanism, resolve_mechanism
from admiss.patterns import FloatArray

EPSILON = 1e-6
HIDDEN_NODES = 10
SIGNALS = ("linear", "nn")


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
        The R2 of the signal itself.
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
    """Training and test rows as the text of the paper describes them.

    Parameters
    ----------
    n, n_test : int
        Training and test rows.
    d, rank : int
        Features, and the rank of their covariance up to epsilon.
    signal : {"linear", "nn"}
    n_active : int
        Features that the signal uses.
    snr : float
        Var(f) / Var(noise).
    mechanism : {"mcar", "censoring"} or callable
        What makes values missing.
    missing_fraction : float
        Share of missing values of each feature.
    protocol : {"text"}
        The data as the text describes them.
    random_state : int, RandomState or None

    Examples
    --------
    >>> data = make_synthetic(n=100, mechanism="censoring", missing_fraction=0.5, random_state=0)
    >>> data.X_train.shape, round(data.ceiling, 3)
    ((100, 10), 0.667)
    """
    if protocol != "text":
        raise ValueError(f"Unknown protocol {protocol!r}: choose 'text'.")
    if signal not in SIGNALS:
        raise ValueError(f"Unknown signal {signal!r}: choose one of {', '.join(map(repr, SIGNALS))}.")
    if not 1 <= n_active <= d or min(n, n_test, rank) < 1 or not snr > 0:
        raise ValueError("make_synthetic needs n, n_test and rank of at least 1, 1 <= n_active <= d, and snr > 0.")
    remove = resolve_mechanism(mechanism, missing_fraction)
    rng = check_random_state(random_state)

    B = rng.normal(size=(d, rank))
    X = rng.normal(size=(n + n_test, rank)) @ B.T + np.sqrt(EPSILON) * rng.normal(size=(n + n_test, d))
    active = rng.permutation(d)[:n_active]
    f = _linear(X[:, active], rng) if signal == "linear" else _neural_network(X[:, active], rng)
    y = f + np.sqrt(f.var() / snr) * rng.normal(size=len(f))
    observed = np.where(remove(X, rng), np.nan, X)
    return SyntheticData(
        X_train=observed[:n], X_test=observed[n:],
        y_train=y[:n], y_test=y[n:],
        X_full_train=X[:n], X_full_test=X[n:],
        signal_train=f[:n], signal_test=f[n:],
        ceiling=snr / (1.0 + snr),
    )  # fmt: skip


def _linear(X: FloatArray, rng: np.random.RandomState) -> FloatArray:
    return rng.normal() + X @ rng.uniform(-1, 1, size=X.shape[1])


def _neural_network(X: FloatArray, rng: np.random.RandomState) -> FloatArray:
    hidden = np.maximum(0.0, rng.normal(size=HIDDEN_NODES) + X @ rng.uniform(-1, 1, size=(X.shape[1], HIDDEN_NODES)))
    return rng.normal() + hidden @ rng.uniform(-1, 1, size=HIDDEN_NODES)
