"""Generated data (Appendix B.1 of the paper).

    text      X ~ N(0, B B' + epsilon I),  B in R^{d x r} with standard normal entries         (rank r up to epsilon)
              Y = f(X) + noise,  f on a random subset of k features,  Var(noise) = Var(f) / SNR

    authors   as in their code: X ~ N(mu, B B' + epsilon I) with mu ~ N(0, I) and epsilon the machine epsilon; f applied
              to standardised X; ||noise|| = ||f|| / SNR with f not centred; for each feature a coin decides whether
              censoring hides its largest or its smallest values

Variances, norms and quantiles are those of the drawn rows, training and test rows together. For signals and noise see
``signals``; for the exact instances of the authors see ``paper_instance``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from admiss.datasets.generated.signals import add_noise, check_protocol, check_signal, draw_signal
from admiss.datasets.mechanisms.composed import resolve_mechanism
from admiss.datasets.mechanisms.single import Censoring, Mechanism, standardise
from formulations.arrays import BoolArray, FloatArray

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
        See ``admiss.datasets.generated.signals``.
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
    check_protocol(protocol)
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
