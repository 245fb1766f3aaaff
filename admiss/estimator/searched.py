"""What estimators by cross-validation share: they hand on to the model that was chosen."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from admiss.terminal.table import Table
from formulations.arrays import FloatArray


class SearchedModel:
    """Mixin of estimators with ``best_estimator_``."""

    best_estimator_: Any

    def _model(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    def _take_over(self, estimator: Any) -> None:
        """Keep the fitted estimator and what scikit-learn expects of one."""
        self.best_estimator_ = estimator
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))

    def predict(self, X: Any) -> Any:
        """Predictions of the chosen model."""
        return self._model().predict(X)

    def coef_at(self, pattern: Any) -> FloatArray:
        """Weights of the chosen model at a pattern: 0/1 for each feature, or the names of the missing ones."""
        return self._model().coef_at(pattern)

    def intercept_at(self, pattern: Any) -> Any:
        """Intercept of the chosen model at a pattern."""
        return self._model().intercept_at(pattern)

    def coef_table(self) -> Table:
        """Coefficients of the chosen model as a table."""
        return self._model().coef_table()

    def pattern_report(self, X: Any) -> Table:
        """The patterns of X: in words, their rows, and what training has seen of them."""
        return self._model().pattern_report(X)

    def to_text(self, precision: int = 4) -> str:
        """The chosen model in words."""
        return self._model().to_text(precision)

    @property
    def certificate_(self) -> Any:
        """Certificate of the chosen model."""
        return self._model().certificate_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        return tags


class SearchedClassifier(SearchedModel):
    """The same for classes."""

    def decision_function(self, X: Any) -> FloatArray:
        """Log-odds of the chosen model."""
        return self._model().decision_function(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the chosen model."""
        return self._model().predict_proba(X)
