"""Ridge regression on expected features: a non-linear model on top of the conditional law of missing values.

    f(x, m) = c + beta'x^ + b'm + sum_r v_r relu(a_r'x^ + b_r)        (columns of ``expected_features``)

with one penalty lambda and a relative weight for each of the three blocks, selected by the exact leave-one-out error of
the ridge (:mod:`~admiss.laws.leave_one_out`), or on folds. Leave-one-out takes the columns as given: the law of the
features, which does not depend on y, has seen the row that is left out. On folds the law is refitted to the training
rows.

In classification the targets are the indicators of the classes (squared loss, the Brier score); predictions are clipped
to [0.005, 0.995] and scaled to sum to 1. Numeric predictions are clipped to the range of y in training.

Where it loses. The model is a smooth function of some 250 random directions: forests and boosting are better at
thresholds, interactions and irrelevant features, and least squares on class indicators loses to a logistic model if
features have heavy tails. As in `ConditionalMean`, everything depends on the law.
"""

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
from admiss.laws.leave_one_out import Errors, Ridge, RidgeOnBlocks, held_out, select_penalty
from formulations.arrays import FloatArray, IntArray

# Candidate weights of the blocks x^, m and h.
BLOCK_WEIGHTS = ((1.0,), (0.3, 1.0), (0.3, 1.0, 3.0))
SMALLEST_PROBABILITY = 0.005


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
        cut = np.clip(self._predictions(X), SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY)
        return cut / cut.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Most likely class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]
