"""Signals Y = f(X) + noise of generated data (Appendix B.1 of the paper).

    linear   f(x) = b + w'x,                                        b ~ N(0, 1), w_j ~ U[-1, 1]
    nn       f(x) = b + sum_h v_h max{0, c_h + u_h'x},  h = 1..10,  b, c_h ~ N(0, 1), v_h and u_hj ~ U[-1, 1]
    tree     f(x) = value of the leaf of x in a random binary tree of depth 4, values ~ N(0, 1)

The paper names the tree without defining it. Here a node splits on a random feature among those that vary in it, at the
value of a random row among the middle half of its rows (x_j <= value goes left); a node in which no feature varies is a
leaf. With 5 features and a few hundred rows all 16 leaves contain rows, independently of the units of the features.

Noise is scaled relative to the drawn signal:

    text      Var(noise) = Var(f) / SNR                       the R2 of f is at most SNR / (1 + SNR)
    authors   ||noise|| = ||f|| / SNR, f not centred          the R2 of f is at most Var(f) / (Var(f) + ||noise||^2 / n)
"""

import numpy as np

from formulations.arrays import FloatArray, IntArray

SIGNALS = ("linear", "nn", "tree")
PROTOCOLS = ("text", "authors")
HIDDEN_NODES = 10
TREE_DEPTH = 4


def check_signal(signal: str, snr: float) -> None:
    """Raise an error if the signal is unknown or snr is not positive."""
    if signal not in SIGNALS:
        raise ValueError(f"Unknown signal {signal!r}: choose one of {', '.join(map(repr, SIGNALS))}.")
    if not 0 < snr < np.inf:
        raise ValueError(f"snr must be a positive number, not {snr!r}.")


def check_protocol(protocol: str) -> None:
    """Raise an error if the protocol is unknown."""
    if protocol not in PROTOCOLS:
        raise ValueError(f"Unknown protocol {protocol!r}: choose one of {', '.join(map(repr, PROTOCOLS))}.")


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
    return _neural_network(X, rng) if signal == "nn" else _tree(X, np.arange(len(X)), TREE_DEPTH, rng)


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
    hidden = np.maximum(0.0, rng.normal(size=HIDDEN_NODES) + X @ rng.uniform(-1, 1, size=(X.shape[1], HIDDEN_NODES)))
    return rng.normal() + hidden @ rng.uniform(-1, 1, size=HIDDEN_NODES)


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
