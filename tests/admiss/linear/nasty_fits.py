"""Random fits that are hard on certificates: units, offsets, collinear and duplicated columns, weights, penalties."""

import numpy as np

from admiss import AdaptiveClassifier, AdaptiveRegressor
from admiss.adaptivity import Affine, AffineIntercept, ConditionalMean, FullyAdaptive, Polynomial, Static
from formulations.losses import Huber, Quantile, Tweedie

LOG_LINKS = {"poisson": "poisson", "gamma": "gamma", "tweedie": Tweedie(1.3), "tweedie at 1.5": "tweedie"}
CLASSES = [Static(), AffineIntercept(), Affine(), Polynomial(2), FullyAdaptive(), ConditionalMean()]
LAMBDAS = (0.0, 1e-10, 1e-6, 1e-3, 0.1, 1.0, 100.0, 1e6)
COLUMNS = ("plain", "units", "global", "offset", "collinear", "duplicate", "integers", "sum")


def nasty_features(rng, kind, n, d):
    """Features of one kind, before values are taken out."""
    X = rng.normal(size=(n, d))
    if kind == "units":
        X *= 10.0 ** rng.uniform(-9, 9, size=d)
    elif kind == "global":
        X *= 10.0 ** rng.choice([-16, -8, 8, 16])
    elif kind == "offset":
        X += rng.choice([1e2, 1e4, 1e6], size=d)
    elif kind == "collinear":
        X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-9, -4) * X[:, -1]
    elif kind == "duplicate":
        X[:, -1] = X[:, 0] * 2.0 ** rng.integers(-3, 4)
    elif kind == "integers":
        X = np.round(2 * X)
    elif kind == "sum":
        X[:, -1] = X[:, 0] + X[:, 1]
    return X


def nasty_fit(seed, losses=("squared",) * 4 + ("logistic",) * 2 + ("huber", "absolute", "quantile")):
    """A model that is not fitted yet, its rows, and their description."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(12, 60)), int(rng.integers(2, 5))
    kind, loss = str(rng.choice(COLUMNS)), str(rng.choice(losses))
    X = nasty_features(rng, kind, n, d)
    size = X.std(axis=0)
    y = (X - X.mean(axis=0)) / np.where(size > 0, size, 1.0) @ rng.normal(size=d) + rng.normal(size=n)
    missing = rng.uniform(size=(n, d)) < rng.choice([0.0, 0.2, 0.4])
    if rng.uniform() < 0.3:  # two features that are missing together
        missing[:, 1] = missing[:, 0]
    X = np.where(missing, np.nan, X)
    s = rng.choice([np.ones(n), rng.integers(0, 4, size=n) + 0.0, 10.0 ** rng.uniform(-6, 6, size=n)])
    s[:2] = 1.0
    parameters = {
        "adaptivity": CLASSES[rng.integers(len(CLASSES))],
        "lam": float(rng.choice(LAMBDAS)),
        "l1_ratio": float(rng.choice([0.0, 0.5, 1.0])),
        "adaptive_penalty": float(rng.choice([0.0, 1.0, 4.0], p=[0.15, 0.6, 0.25])),
        "penalty_weights": str(rng.choice(["count", "authors"], p=[0.8, 0.2])),
        "scale": bool(rng.uniform() < 0.5),
        "center": bool(rng.uniform() < 0.6),
        "fit_intercept": bool(rng.uniform() < 0.9),
    }
    words = f"{seed} {kind} {loss} n={n} {parameters}"
    if loss == "logistic":
        return AdaptiveClassifier(**parameters), X, y + rng.normal(size=n) > 0, s, words
    if loss in LOG_LINKS:
        mean = np.exp(rng.choice([-8.0, 0.0, 12.0]) + rng.choice([0.5, 2.0]) * y)
        y = rng.poisson(mean) + 0.0 if loss == "poisson" else rng.gamma(0.7, size=n) * mean
        y[2 : 2 + n // 4] *= loss == "gamma"
        y[:2] = np.maximum(y[:2], mean.min())
        return AdaptiveRegressor(loss=LOG_LINKS[loss], **parameters), X, y, s, words
    y = [y, y, 1e-6 * y, 1e6 * y, y + 1e6][rng.integers(5)]
    chosen = {"huber": Huber(float(np.std(y))), "quantile": Quantile(0.8)}.get(loss, loss)
    return AdaptiveRegressor(loss=chosen, **parameters), X, y, s, words
