"""Methods of scikit-learn that partitions are compared with.

The first one imputes means, adds an indicator of missing values per feature, brings all columns to the same scale, and
selects the penalty of a linear model by cross-validation: no partition, but the same information. The second one is
gradient boosting with its defaults, which splits on values and on missing values.
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# Penalties of the ridge, and inverse penalties of the logistic regression.
PENALTIES = np.logspace(-3, 4, 15)
INVERSE_PENALTIES = np.logspace(-4, 2, 7)
# Name of each reference in the table, and in sentences.
LINEAR = {
    "regression": ("mean + indicators + ridge", "mean imputation with indicators and ridge"),
    "classification": ("mean + indicators + logistic", "mean imputation with indicators and logistic regression"),
}
BOOSTING = ("HistGradientBoosting", "gradient boosting")


def reference_names(task: str) -> dict[str, str]:
    """Names of the references in the table, with those in sentences."""
    return dict([LINEAR[task], BOOSTING])


def reference(name: str, task: str, y: Any, seed: int) -> Any:
    """The reference of a name for these training targets."""
    if name == BOOSTING[0]:
        boosting: Any = HistGradientBoostingRegressor(random_state=seed)
        if task == "classification":
            # its validation rows are stratified, which needs two rows per class
            stopped = "auto" if _rarest(y) > 1 else False
            boosting = HistGradientBoostingClassifier(random_state=seed, early_stopping=stopped)
        return make_pipeline(_ObservedColumns(), boosting)
    model: Any = RidgeCV(alphas=PENALTIES)
    if task == "classification":
        folds = min(5, _rarest(y))
        model = LogisticRegression(max_iter=1000)
        if folds > 1:
            model = LogisticRegressionCV(
                Cs=INVERSE_PENALTIES,
                cv=folds,
                scoring="neg_log_loss",
                max_iter=1000,
                l1_ratios=(0.0,),
                use_legacy_attributes=False,
            )
    return make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), model)


class _ObservedColumns(TransformerMixin, BaseEstimator):
    """Leaves out columns without a value in training, which histograms cannot bin."""

    def fit(self, X: Any, y: Any = None) -> "_ObservedColumns":
        self.observed_ = ~np.isnan(np.asarray(X, dtype=float)).all(axis=0)
        return self

    def transform(self, X: Any) -> Any:
        return np.asarray(X, dtype=float)[:, self.observed_]


def _rarest(y: Any) -> int:
    """Rows of the rarest class."""
    return int(np.unique(y, return_counts=True)[1].min())
