"""Ridge regression on expected features: a non-linear model on top of the conditional law of missing values.

    f(x, m) = c + beta'x^ + b'm + sum_r v_r relu(a_r'x^ + b_r)        (columns of ``expected_features``)

with one penalty lambda and a relative weight for each of the three blocks, selected by the exact leave-one-out error of
the ridge, or on folds. Leave-one-out takes the columns as given: the law of the
features, which does not depend on y, has seen the row that is left out. On folds the law is refitted to the training
rows.

In classification the targets are the indicators of the classes (squared loss, the Brier score); predictions are clipped
to [0.005, 0.995] and scaled to sum to 1. Numeric predictions are clipped to the range of y in training.

Where it loses. The model is a smooth function of some 250 random directions: forests and boosting are better at
thresholds, interactions and irrelevant features, and least squares on class indicators loses to a logistic model if
features have heavy tails. As in `ConditionalMean`, everything depends on the law.

**The ridge** and its exact leave-one-out errors (PRESS; Allen 1974):

    min over c, w of   sum_i s_i |y_i - c - f_i'w|^2 + lambda |w|^2,        rows f_i = (g_1 f_i1, .., g_B f_iB)

for targets y_i in R^q (one column per class in classification). The columns form blocks with relative weights g; a
larger g_b is a smaller penalty on block b. With F~ = diag(sqrt s)(F - mean) = U diag(sigma) V' and y~ likewise,

    residuals          r = U diag(lambda / (sigma^2 + lambda)) U'y~ + r_0,          r_0 = y~ - U U'y~
    1 - leverages      1 - h_i = sum_k U_ik^2 lambda / (sigma_k^2 + lambda) + o_i,  o_i = 1 - s_i / S - sum_k U_ik^2

and leaving out row i changes its residual to exactly r_i / (1 - h_i). In 1 - h_i all terms are non-negative, and
r_0 = o = 0 if the columns span everything but the intercept: nothing cancels if columns outnumber rows and lambda is
small, so an interpolating fit is not mistaken for a good one.

Lambda is given as a share of the mean over columns of their sums of squares.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.cv import make_folds
from admiss.estimator.notices import silence
from admiss.estimator.scaling import power_of_two
from admiss.estimator.validation import (
    AllowsMissing,
    read_classes,
    read_features,
    read_random_state,
    read_regression_target,
    read_weights,
    unchanged_on_error,
)
from admiss.laws import DEFAULT_PRIOR
from admiss.laws.expected_features import ExpectedFeatures
from formulations.arrays import FloatArray, IntArray

# Candidate weights of the blocks x^, m and h.
BLOCK_WEIGHTS = ((1.0,), (0.3, 1.0), (0.3, 1.0, 3.0))


class _ExpectedRidge(AllowsMissing, BaseEstimator):
    """Shared by the regressor and the classifier."""

    def __init__(
        self,
        n_random: int = 256,
        law: str = "gaussian",
        prior: float = DEFAULT_PRIOR,
        expected_relu: bool = False,
        cv: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_random = n_random
        self.law = law
        self.prior = prior
        self.expected_relu = expected_relu
        self.cv = cv
        self.random_state = random_state

    def _transformer(self, seed: int) -> ExpectedFeatures:
        return ExpectedFeatures(self.n_random, self.law, self.prior, self.expected_relu, random_state=seed)

    def _fit_targets(self, X: Any, Y: FloatArray, labels: IntArray | None, rows: FloatArray, s: FloatArray) -> None:
        random = read_random_state(self.random_state)
        seed = int(random.randint(2**31 - 1))
        folds = None
        if self.cv is not None:
            folds = make_folds(rows, Y[:, 0] if labels is None else labels, labels, s, self.cv, random)
        self.transformer_ = self._transformer(seed).fit(X, sample_weight=s)
        used = s > 0
        rows, Y, s, unit = rows[used], Y[used], s[used], power_of_two(s.max())
        blocks = self.transformer_.blocks_of_rows(rows)
        ridge = RidgeOnBlocks(blocks, Y, s / unit)
        errors: Errors = ridge.leave_one_out
        if folds is not None:
            errors = held_out([self._fold(seed, rows, Y, s, train, test) for train, test in folds])
        options = [g if block.shape[1] else g[:1] for g, block in zip(BLOCK_WEIGHTS, blocks, strict=True)]
        g, share, error = select_penalty(options, errors)
        self.ridge_: Ridge = ridge.fit(g, share)
        self.error_ = error / float((s / unit).sum())

    def _fold(
        self, seed: int, X: FloatArray, Y: FloatArray, s: FloatArray, train: IntArray, test: IntArray
    ) -> tuple[list[FloatArray], FloatArray, FloatArray, list[FloatArray], FloatArray, FloatArray]:
        with silence():  # rare values may be absent from a fold
            transformer = self._transformer(seed).fit(X[train], sample_weight=s[train])
            blocks, test_blocks = transformer.blocks(X[train]), transformer.blocks(X[test])
        s = s / power_of_two(s.max())
        return blocks, Y[train], s[train], test_blocks, Y[test], s[test]

    def _predictions(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return self.ridge_.predict(self.transformer_.blocks_of_rows(read_features(self, X, reset=False)))


class ExpectedFeaturesRegressor(RegressorMixin, _ExpectedRidge):
    """Ridge regression on expected values, indicators of missing values, and random features.

    Parameters
    ----------
    n_random : int
        Number of random features; with 0 the model is linear in the expected values.
    law, prior, expected_relu
        As in :class:`ExpectedFeatures`.
    cv : None, int, splitter or iterable
        How the penalty is selected: by exact leave-one-out errors (None), or on folds with the law fitted anew in each.
    random_state : int, RandomState or None
        Seed of random features and folds.

    Attributes
    ----------
    transformer_ : ExpectedFeatures
    ridge_ : Ridge
        Coefficients, penalty and block weights.
    error_ : float
        Leave-one-out or held-out mean squared error of the selected penalty.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=300, missing_fraction=0.5, random_state=0)
    >>> model = ExpectedFeaturesRegressor(random_state=0).fit(data.X_train, data.y_train)
    >>> bool(model.score(data.X_test, data.y_test) > 0.5)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the law and the ridge."""
        with unchanged_on_error(self):
            rows = read_features(self, X, reset=True)
            target = read_regression_target(self, y, len(rows))
            s = read_weights(sample_weight, rows)
            unit = float(np.abs(target[s > 0]).max()) or 1.0  # squares of y must not overflow
            self._fit_targets(X, target[:, None] / unit, None, rows, s)
            self.error_ = self.error_ * unit * unit
            self.unit_, self.range_ = unit, (float(target[s > 0].min()), float(target[s > 0].max()))
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predicted target of each row, within the range of y in training."""
        return np.clip(self._predictions(X)[:, 0] * self.unit_, *self.range_)


class ExpectedFeaturesClassifier(ClassifierMixin, _ExpectedRidge):
    """Ridge regression of class indicators on expected values, indicators of missing values, and random features.

    Parameters
    ----------
    n_random, law, prior, expected_relu, cv, random_state
        As in :class:`ExpectedFeaturesRegressor`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    transformer_, ridge_, error_, n_features_in_, feature_names_in_
        As in :class:`ExpectedFeaturesRegressor`; the error is a Brier score.

    Examples
    --------
    >>> from admiss import ExpectedFeaturesClassifier
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=200, random_state=0)
    >>> model = ExpectedFeaturesClassifier(n_random=16, random_state=0).fit(data.X_train, data.y_train > 0)
    >>> model.score(data.X_test, data.y_test > 0) > 0.7
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the law and the ridge."""
        with unchanged_on_error(self):
            rows = read_features(self, X, reset=True)
            self.classes_, codes = read_classes(self, y, len(rows))
            s = read_weights(sample_weight, rows)
            if len(np.unique(codes[s > 0])) < 2:
                raise ValueError(f"{type(self).__name__} needs rows of at least two classes, and y has one class only.")
            self._fit_targets(X, np.eye(len(self.classes_))[codes], codes, rows, s)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class."""
        cut = np.clip(self._predictions(X), 0.005, 0.995)
        return cut / cut.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Most likely class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


SHARES = np.logspace(-7, 3, 31)

Blocks = Sequence[FloatArray]
# Summed squared errors for each share in SHARES, given the weights of the blocks.
Errors = Callable[[Sequence[float]], FloatArray]


@dataclass(frozen=True)
class Ridge:
    """A fitted ridge regression.

    Attributes
    ----------
    block_weights : tuple of float
    share : float
        Lambda as a share of the mean sum of squares of a column.
    mean : array of shape (p,)
        Subtracted from the columns.
    coefficients : array of shape (p, q)
        Of the columns without block weights.
    intercept : array of shape (q,)
    """

    block_weights: tuple[float, ...]
    share: float
    mean: FloatArray
    coefficients: FloatArray
    intercept: FloatArray

    def predict(self, blocks: Blocks) -> FloatArray:
        """Predictions of shape (rows, q)."""
        return self.intercept + (np.hstack(blocks) - self.mean) @ self.coefficients


def select_penalty(candidates: Sequence[Sequence[float]], errors: Errors) -> tuple[tuple[float, ...], float, float]:
    """Block weights and share with the smallest error, and that error.

    ``candidates`` lists the weights to try for each block. Blocks are varied one after the other, the last one first,
    with the first weights of the blocks still to come.
    """
    selected = [options[0] for options in candidates]
    best, index = np.inf, 0
    for b in reversed(range(len(candidates))):
        # the first weight of a block has been tried with the block before
        for g in candidates[b] if not np.isfinite(best) else candidates[b][1:]:
            trial = [*selected[:b], g, *selected[b + 1 :]]
            by_share = errors(trial)
            if by_share.min() < best:
                best, index, selected = float(by_share.min()), int(by_share.argmin()), trial
    return tuple(selected), float(SHARES[index]), best


class RidgeOnBlocks:
    """The ridge on some rows for any block weights: leave-one-out errors and fits."""

    def __init__(self, blocks: Blocks, Y: FloatArray, weights: FloatArray) -> None:
        F = np.hstack(blocks)
        self.sizes, self.weights, self.centred = [block.shape[1] for block in blocks], weights, _centred(F, Y, weights)
        self.mean, self.intercept = weights @ F / weights.sum(), weights @ Y / weights.sum()
        self._known: dict[tuple[float, ...], _Spectrum] = {}

    def leave_one_out(self, g: Sequence[float]) -> FloatArray:
        """Summed leave-one-out errors for each share."""
        parts = self.centred.decompose(np.repeat(g, self.sizes))
        self._known[tuple(g)] = parts.spectrum()
        return np.sum(_left_out(parts, parts.lambdas, self.weights) ** 2, axis=(1, 2))

    def fit(self, g: Sequence[float], share: float) -> Ridge:
        """The ridge for given block weights and share."""
        factors = np.repeat(g, self.sizes)
        known = self._known.get(tuple(g)) or self.centred.decompose(factors).spectrum()
        return Ridge(tuple(g), share, self.mean, factors[:, None] * known.solve(share), self.intercept)


def held_out(folds: Sequence[tuple[Blocks, FloatArray, FloatArray, Blocks, FloatArray, FloatArray]]) -> Errors:
    """Summed held-out errors; a fold has blocks, targets and weights of training rows, then of held-out rows."""

    def errors(g: Sequence[float]) -> FloatArray:
        total = np.zeros(len(SHARES))
        for blocks, Y, s, test_blocks, Y_test, s_test in folds:
            F = _weighted(blocks, g)
            parts = _decompose(F, Y, s)
            F_test = _weighted(test_blocks, g) - s @ F / s.sum()
            target, centre = parts.U.T @ parts.target, s @ Y / s.sum()
            directions = F_test @ parts.Vt.T
            for k, lam in enumerate(parts.lambdas):
                shrunk = (parts.sigma / (parts.sigma**2 + lam))[:, None] * target
                total[k] += float(s_test @ np.sum((Y_test - centre - directions @ shrunk) ** 2, axis=1))
        return total

    return errors


def leave_one_out_residuals(F: FloatArray, Y: FloatArray, weights: FloatArray, lam: float) -> FloatArray:
    """y_i minus its prediction from all other rows, of shape (n, q)."""
    return _left_out(_decompose(F, Y, weights), np.array([lam]), weights)[0] / np.sqrt(weights)[:, None]


def _weighted(blocks: Blocks, g: Sequence[float]) -> FloatArray:
    return np.hstack([factor * block for factor, block in zip(g, blocks, strict=True)])


@dataclass(frozen=True)
class _Spectrum:
    """Singular values, right singular vectors and U'y~, which are enough for a fit."""

    sigma: FloatArray
    Vt: FloatArray
    projected: FloatArray
    unit: float

    def solve(self, share: float) -> FloatArray:
        shrunk = (self.sigma / (self.sigma**2 + share * self.unit))[:, None] * self.projected
        return self.Vt.T @ shrunk


@dataclass(frozen=True)
class _Parts:
    """Singular value decomposition of the centred columns, and the centred targets, rows times the roots of weights."""

    U: FloatArray
    sigma: FloatArray
    Vt: FloatArray
    target: FloatArray
    unit: float

    @property
    def lambdas(self) -> FloatArray:
        return SHARES * self.unit

    def spectrum(self) -> _Spectrum:
        return _Spectrum(self.sigma, self.Vt, self.U.T @ self.target, self.unit)


@dataclass(frozen=True)
class _Centred:
    """The centred columns and targets, rows times the roots of weights; and, with more rows than columns, A'A."""

    A: FloatArray
    target: FloatArray
    gram: FloatArray | None

    def decompose(self, g: FloatArray) -> _Parts:
        """The parts of the columns times ``g``."""
        p = max(self.A.shape[1], 1)
        if self.gram is None:
            A = self.A * g
            U, sigma, Vt = np.linalg.svd(A, full_matrices=False)
            nonzero = sigma > 1e-10 * sigma.max(initial=0.0)  # others are rounding
            unit = float(np.sum(A**2)) / p or 1.0
            return _Parts(U[:, nonzero], sigma[nonzero], Vt[nonzero], self.target, unit)
        G = self.gram * np.outer(g, g)  # small, and all shares exceed its rounding
        values, V = np.linalg.eigh(G)
        nonzero = values > 1e-13 * values.max(initial=0.0)
        sigma, V = np.sqrt(values[nonzero]), V[:, nonzero]
        U = self.A @ (g[:, None] * V / sigma)
        return _Parts(U, sigma, V.T, self.target, float(np.trace(G)) / p or 1.0)


def _centred(F: FloatArray, Y: FloatArray, weights: FloatArray) -> _Centred:
    root = np.sqrt(weights)[:, None]
    A = root * (F - weights @ F / weights.sum())
    return _Centred(A, root * (Y - weights @ Y / weights.sum()), A.T @ A if len(A) > A.shape[1] else None)


def _decompose(F: FloatArray, Y: FloatArray, weights: FloatArray) -> _Parts:
    return _centred(F, Y, weights).decompose(np.ones(F.shape[1]))


def _left_out(parts: _Parts, lambdas: FloatArray, weights: FloatArray) -> FloatArray:
    """Leave-one-out residuals times the roots of the weights, of shape (lambdas, n, q)."""
    shares = lambdas / (parts.sigma[:, None] ** 2 + lambdas)
    projected = parts.U.T @ parts.target
    squares = parts.U**2
    residuals = np.array([parts.U @ (shares * column[:, None]) for column in projected.T]).transpose(2, 1, 0)
    rest = squares @ shares
    if len(parts.sigma) < len(parts.U) - 1:
        residuals += parts.target - parts.U @ projected
        rest += np.maximum(1.0 - weights / weights.sum() - squares.sum(axis=1), 0.0)[:, None]
    return residuals / np.maximum(rest, 1e-140).T[:, :, None]  # whose square is a number
