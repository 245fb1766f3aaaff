"""What fits from row statistics share: checks, and the features of the statistics."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from admiss.estimator.validation import feature_names, refuse_extreme_sizes
from admiss.streaming.feature_sums import FeatureSummary
from admiss.streaming.statistics import RowStatistics
from formulations.losses import Loss, Squared


def adopt_features(estimator: Any, statistics: Any) -> None:
    """Store number and names of the features, or raise an error if there is nothing to fit."""
    if not isinstance(statistics, RowStatistics):
        raise TypeError(f"fit_statistics takes RowStatistics, not {type(statistics).__name__}: fit takes rows.")
    found = statistics.summary()
    if not found.n_rows:
        raise ValueError("These statistics have no rows of positive weight: there is nothing to learn from.")
    for name in ("n_features_in_", "feature_names_in_"):
        vars(estimator).pop(name, None)
        if hasattr(statistics, name):
            setattr(estimator, name, getattr(statistics, name))
    refuse_extreme_summary(found, feature_names(estimator))


def refuse_extreme_summary(found: FeatureSummary, names: Sequence[str]) -> None:
    """Raise an error if squares would leave the range of floating-point numbers."""
    sizes = np.where(found.n_observed > 0, found.size[:-1], 0.0)
    refuse_extreme_sizes(float(found.size[-1]), found.largest_weight, sizes.tolist(), names)


def require_squared(loss: Loss) -> None:
    """Raise an error for a loss that statistics do not suffice for."""
    if not isinstance(loss, Squared):
        raise ValueError(f"Statistics suffice for the squared loss only, not for {loss!r}: use loss='squared', or fit.")
