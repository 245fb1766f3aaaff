"""Fits from statistics of one pass instead of rows, for adaptive regression with the squared loss."""

from typing import Any, Self

import numpy as np

from admiss.adaptivity import Adaptivity
from admiss.estimator.notices import warn_never_observed
from admiss.estimator.validation import feature_names, refuse_extreme_sizes, unchanged_on_error
from admiss.linear.base import AdaptiveModel
from admiss.linear.from_statistics import TrainingSums
from admiss.linear.penalty import Penalty, penalty_weights
from admiss.linear.statistics_fit import solve_sums
from admiss.streaming.statistics import RowStatistics
from formulations.losses import Loss, Squared

# What partial_fit leaves to be computed.
SOLVED = ("design_", "coefficients_", "certificate_", "target_range_")


def training_sums(statistics: RowStatistics, adaptivity: Adaptivity) -> TrainingSums:
    """The statistics of all rows for one class."""
    products = statistics.moments_for(adaptivity)
    return TrainingSums(statistics.features, products, np.arange(statistics.n_folds), statistics.pattern_table())


def read_statistics(estimator: Any, statistics: Any) -> None:
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
    sizes = np.where(found.n_observed > 0, found.size[:-1], 0.0)
    refuse_extreme_sizes(float(found.size[-1]), found.largest_weight, sizes.tolist(), feature_names(estimator))
    if estimator.on_unseen_pattern != "nearest" and not len(statistics.pattern_table().patterns):
        raise ValueError(
            f"on_unseen_pattern={estimator.on_unseen_pattern!r} needs the patterns of the training rows: collect them "
            "with RowStatistics(patterns=True)."
        )
    if estimator.solver != "auto":
        raise ValueError(f"solver={estimator.solver!r} needs the rows, not only their statistics: use solver='auto'.")


class StreamedFit(AdaptiveModel):
    """``fit_statistics`` and ``partial_fit``."""

    target_range_: tuple[float, float]

    def fit_statistics(self, statistics: RowStatistics) -> Self:
        """Fit the model from statistics of the rows, as :meth:`fit` does from the rows.

        Parameters
        ----------
        statistics : RowStatistics
            With the moments of this adaptivity class. The certificate is proven from them alone, and has no dual point.
        """
        adaptivity, loss = self._check_parameters()
        _require_squared(loss)
        with unchanged_on_error(self):
            self._forget()
            read_statistics(self, statistics)
            self._fit_sums(training_sums(statistics, adaptivity), adaptivity)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows; the model of all rows so far is fitted when it is used first.

        The fit is that of :meth:`fit_statistics`, whatever the order and size of the blocks. ``fit`` starts anew.
        """
        adaptivity, loss = self._check_parameters()
        _require_squared(loss)
        with unchanged_on_error(self):
            statistics = vars(self).get("_statistics")
            if statistics is None:
                if "coefficients_" in vars(self):
                    raise ValueError(
                        "fit has not kept its rows, so partial_fit cannot add to them: start with partial_fit."
                    )
                statistics = RowStatistics(adaptivity, tree_depth=None)
            block = RowStatistics(adaptivity, tree_depth=None)
            statistics = statistics.merge(block.update(X, y, sample_weight))
            self._forget()
            self._statistics = statistics
            read_statistics(self, statistics)
        return self

    def _forget(self) -> None:
        for name in (*SOLVED, "_statistics"):
            self.__dict__.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        statistics = vars(self).get("_statistics")
        if name not in SOLVED or statistics is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        adaptivity, _ = self._check_parameters()
        self._fit_sums(training_sums(statistics, adaptivity), adaptivity)
        return vars(self)[name]

    def _fit_sums(self, sums: TrainingSums, adaptivity: Adaptivity) -> None:
        options = {name: bool(getattr(self, name)) for name in ("center", "scale", "fit_intercept")}
        design = sums.design(adaptivity, **options)
        names = feature_names(self)
        warn_never_observed(names, sorted(set(range(len(names))) - set(design.features.tolist())))
        weights = penalty_weights(
            design,
            None,
            None,
            kind=self.penalty_weights,
            adaptive_penalty=self.adaptive_penalty,
            standardise=self.scale,
        )
        lam, alpha = float(self.lam), float(self.l1_ratio)
        fit = solve_sums(sums, design, Penalty(alpha * lam, (1.0 - alpha) * lam, *weights))
        if fit is None:
            raise ValueError("The moments are too inaccurate for a fit: use a larger lam, or fit in memory.")
        found = sums.summary()
        self.coefficients_ = fit[0] / design.column_scale
        self.certificate_ = fit[1]
        self.design_ = design
        self.target_range_ = float(found.low[-1]), float(found.high[-1])


def _require_squared(loss: Loss) -> None:
    if not isinstance(loss, Squared):
        raise ValueError(f"Statistics suffice for the squared loss only, not for {loss!r}: use loss='squared', or fit.")
