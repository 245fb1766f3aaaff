"""Selection of the features that are never missing in training."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.notices import warn, warn_never_missing
from admiss.estimator.scaling import observed_moments
from admiss.estimator.validation import AllowsMissing, feature_names, read_features, unchanged_on_error
from formulations.arrays import FloatArray


class CompleteFeatures(OneToOneFeatureMixin, TransformerMixin, AllowsMissing, BaseEstimator):
    """Select the columns that are never missing in training.

    If a selected column is missing later, it is set to the training mean, with a warning. If every column has missing
    values, the result is one column of ones, named ``constant``, from which a model predicts the mean of y, with a
    warning.

    Attributes
    ----------
    features_ : int array
        The selected columns.
    means_ : float array
        Their training means.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> selector = CompleteFeatures().fit([[1.0, np.nan, 5.0], [2.0, 3.0, 6.0]])
    >>> selector.transform([[7.0, 8.0, 9.0]]).tolist(), selector.get_feature_names_out().tolist()
    ([[7.0, 9.0]], ['x0', 'x2'])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the columns that are never missing; y is ignored."""
        with unchanged_on_error(self):
            X = read_features(self, X, reset=True)
            self.features_ = np.flatnonzero(~np.isnan(X).any(axis=0))
            self.means_ = observed_moments(X[:, self.features_], np.ones(len(X)))[0]
        if not len(self.features_):
            warn("Every feature has missing values in training: a constant replaces the complete ones.")
        return self

    def transform(self, X: Any) -> FloatArray:
        """The selected columns of X."""
        check_is_fitted(self)
        X = read_features(self, X, reset=False)
        if not len(self.features_):
            return np.ones((len(X), 1))
        selected = X[:, self.features_]
        M = np.isnan(selected)
        warn_never_missing(feature_names(self), self.features_[M.any(axis=0)])
        return np.where(M, self.means_, selected)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the selected columns."""
        check_is_fitted(self)
        names = np.asarray(super().get_feature_names_out(input_features), dtype=object)
        return names[self.features_] if len(self.features_) else np.array(["constant"], dtype=object)
