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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.cross_validation import Split, SplitsRows, make_folds
from admiss.estimator.notices import silence
from admiss.estimator.scaling import power_of_two
from admiss.estimator.validation import (
    AllowsMissing,
    read_classes,
    read_features,
    read_random_state,
    read_regression_target,
    read_weights,
    require_two_classes,
    unchanged_on_error,
)
from admiss.laws import DEFAULT_PRIOR
from admiss.laws.expected_features import ExpectedFeatures
from formulations.arrays import FloatArray, IntArray

# Candidate weights of the blocks x^, m and h.
BLOCK_WEIGHTS = ((1.0,), (0.3, 1.0), (0.3, 1.0, 3.0))
# Candidates of lambda as a share of the mean sum of squares of a column.
SHARES = np.logspace(-7, 3, 31)

Blocks = Sequence[FloatArray]
# Summed squared errors for each share in SHARES, given the weights of the blocks.
Errors = Callable[[Sequence[float]], FloatArray]


class _ExpectedRidge(SplitsRows, AllowsMissing, BaseEstimator):
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

    def _fit_targets(
        self,
        X: Any,
        Y: FloatArray,
        labels: IntArray | None,
        rows: FloatArray,
        s: FloatArray,
        of_split: Mapping[str, Any],
    ) -> None:
        random = read_random_state(self.random_state)
        seed = int(random.randint(2**31 - 1))
        folds = None
        if self.cv is not None:
            folds = make_folds(rows, Y[:, 0] if labels is None else labels, labels, s, self.cv, random, of_split)
        self.transformer_ = self._transformer(seed).fit(X, sample_weight=s)
        used = s > 0
        rows = rows[used]
        Y = Y[used]
        s = s[used]
        blocks = self.transformer_.blocks_of_rows(rows)
        weights = s / power_of_two(s.max())
        ridge = RidgeOnBlocks(blocks, Y, weights)
        errors: Errors = ridge.leave_one_out
        if folds is not None:
            errors = self._held_out(seed, rows, Y, s, folds)
        options = [g if block.shape[1] else g[:1] for g, block in zip(BLOCK_WEIGHTS, blocks, strict=True)]
        g, share, error = select_penalty(options, errors)
        self.ridge_: Ridge = ridge.fit(g, share)
        self.error_ = error / float(weights.sum())

    def _held_out(self, seed: int, X: FloatArray, Y: FloatArray, s: FloatArray, folds: list[Split]) -> Errors:
        """Errors on the held-out rows of all folds, each with the law of its training rows."""
        weights = s / power_of_two(s.max())
        parts: list[Errors] = []
        for train, test in folds:
            with silence():  # rare values may be absent from a fold
                transformer = self._transformer(seed).fit(X[train], sample_weight=s[train])
                blocks, test_blocks = transformer.blocks(X[train]), transformer.blocks(X[test])
            ridge = RidgeOnBlocks(blocks, Y[train], weights[train])
            parts.append(partial(ridge.held_out, blocks=test_blocks, Y=Y[test], weights=weights[test]))
        return lambda g: np.sum([part(g) for part in parts], axis=0)

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the law and the ridge.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        y : array of shape (n,)
            Target, or class labels.
        sample_weight : array of shape (n,), optional
            Weights of the rows.
        **params
            Passed to the splitter ``cv``, see :meth:`AdaptiveRegressorCV.fit`.
        """
        of_split = self._split_parameters(sample_weight, params)
        with unchanged_on_error(self):
            rows = read_features(self, X, reset=True)
            target = read_regression_target(self, y, len(rows))
            s = read_weights(sample_weight, rows)
            unit = float(np.abs(target[s > 0]).max()) or 1.0  # squares of y must not overflow
            self._fit_targets(X, target[:, None] / unit, None, rows, s, of_split)
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the law and the ridge.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        y : array of shape (n,)
            Target, or class labels.
        sample_weight : array of shape (n,), optional
            Weights of the rows.
        **params
            Passed to the splitter ``cv``, see :meth:`AdaptiveRegressorCV.fit`.
        """
        of_split = self._split_parameters(sample_weight, params)
        with unchanged_on_error(self):
            rows = read_features(self, X, reset=True)
            self.classes_, codes = read_classes(self, y, len(rows))
            s = read_weights(sample_weight, rows)
            require_two_classes(self, codes[s > 0])
            self._fit_targets(X, np.eye(len(self.classes_))[codes], codes, rows, s, of_split)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class."""
        cut = np.clip(self._predictions(X), 0.005, 0.995)
        return cut / cut.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Most likely class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


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
                best = float(by_share.min())
                index = int(by_share.argmin())
                selected = trial
    return tuple(selected), float(SHARES[index]), best


class Spectrum(NamedTuple):
    """F~ = U diag(sigma) V' without vanishing sigma, and the unit of lambda."""

    U: FloatArray
    sigma: FloatArray
    V: FloatArray
    unit: float


class RidgeOnBlocks:
    """The ridge on some rows for any block weights: errors of all shares, and fits."""

    def __init__(self, blocks: Blocks, Y: FloatArray, weights: FloatArray) -> None:
        F = np.hstack(blocks)
        root = np.sqrt(weights)[:, None]
        self.sizes = [block.shape[1] for block in blocks]
        self.weights = weights
        self.mean = weights @ F / weights.sum()
        self.intercept = weights @ Y / weights.sum()
        self.columns = root * (F - self.mean)
        self.target = root * (Y - self.intercept)
        self.gram = self.columns.T @ self.columns if len(F) > F.shape[1] else None

    def spectrum(self, g: Sequence[float]) -> Spectrum:
        """Of the columns times the block weights: from A'A if there are more rows than columns."""
        factors = np.repeat(g, self.sizes)
        p = max(len(factors), 1)
        if self.gram is None:
            A = self.columns * factors
            U, sigma, Vt = np.linalg.svd(A, full_matrices=False)
            nonzero = sigma > 1e-10 * sigma.max(initial=0.0)  # others are rounding
            return Spectrum(U[:, nonzero], sigma[nonzero], Vt[nonzero].T, float(np.sum(A**2)) / p or 1.0)
        G = self.gram * np.outer(factors, factors)  # small, and all shares exceed its rounding
        values, V = np.linalg.eigh(G)
        nonzero = values > 1e-13 * values.max(initial=0.0)
        sigma, V = np.sqrt(values[nonzero]), V[:, nonzero]
        return Spectrum(self.columns @ (factors[:, None] * V / sigma), sigma, V, float(np.trace(G)) / p or 1.0)

    def leave_one_out(self, g: Sequence[float]) -> FloatArray:
        """Summed leave-one-out errors for each share."""
        return np.sum(self.left_out(g, SHARES) ** 2, axis=(1, 2))

    def left_out(self, g: Sequence[float], shares: FloatArray) -> FloatArray:
        """Leave-one-out residuals times the roots of the weights, of shape (shares, n, q)."""
        U, sigma, _, unit = self.spectrum(g)
        shrinkage = shares * unit / (sigma[:, None] ** 2 + shares * unit)
        projected = U.T @ self.target
        squares = U**2
        residuals = np.array([U @ (shrinkage * column[:, None]) for column in projected.T]).transpose(2, 1, 0)
        rest = squares @ shrinkage
        if len(sigma) < len(U) - 1:
            residuals += self.target - U @ projected
            rest += np.maximum(1.0 - self.weights / self.weights.sum() - squares.sum(axis=1), 0.0)[:, None]
        return residuals / np.maximum(rest, 1e-140).T[:, :, None]  # whose square is a number

    def held_out(self, g: Sequence[float], blocks: Blocks, Y: FloatArray, weights: FloatArray) -> FloatArray:
        """Summed errors on other rows for each share."""
        U, sigma, V, unit = self.spectrum(g)
        directions = (np.hstack(blocks) - self.mean) @ (np.repeat(g, self.sizes)[:, None] * V)
        projected = U.T @ self.target
        errors = []
        for share in SHARES:
            shrunk = (sigma / (sigma**2 + share * unit))[:, None] * projected
            errors.append(weights @ np.sum((Y - self.intercept - directions @ shrunk) ** 2, axis=1))
        return np.array(errors)

    def fit(self, g: Sequence[float], share: float) -> Ridge:
        """The ridge for given block weights and share."""
        U, sigma, V, unit = self.spectrum(g)
        shrunk = (sigma / (sigma**2 + share * unit))[:, None] * (U.T @ self.target)
        coefficients = np.repeat(g, self.sizes)[:, None] * (V @ shrunk)
        return Ridge(tuple(g), share, self.mean, coefficients, self.intercept)
