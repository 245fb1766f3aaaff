"""Fits from statistics of one pass instead of rows, for adaptive regression with the squared loss."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from admiss.adaptivity import Adaptivity
from admiss.estimator.evidence import evidence_of
from admiss.estimator.notices import warn
from admiss.estimator.validation import feature_names, read_features, unchanged_on_error
from admiss.linear.base import AdaptiveModel
from admiss.linear.design import Design
from admiss.linear.from_statistics import TrainingSums, has_many_rows
from admiss.linear.stated_program import Fit
from admiss.linear.statistics_fit import solve_sums
from admiss.streaming.affine_products import MOST_FEATURES
from admiss.streaming.fitting import adopt_features, refuse_extreme_summary, require_squared
from admiss.streaming.product_columns import degree_of, refuse_learners
from admiss.streaming.statistics import RowStatistics
from formulations.arrays import FloatArray
from formulations.losses import Loss, Squared

# What partial_fit leaves to be computed.
SOLVED = ("design_", "coefficients_", "certificate_", "target_range_")


def training_sums(statistics: RowStatistics, adaptivity: Adaptivity) -> TrainingSums:
    """The statistics of all rows for one class."""
    products = statistics.moments_for(adaptivity)
    return TrainingSums(statistics.features, products, np.arange(statistics.n_folds), statistics.pattern_table())


def read_statistics(estimator: Any, statistics: Any) -> None:
    """Store number and names of the features, or raise an error if there is nothing to fit."""
    adopt_features(estimator, statistics)
    if estimator.on_unseen_pattern != "nearest" and not len(statistics.pattern_table().patterns):
        raise ValueError(
            f"on_unseen_pattern={estimator.on_unseen_pattern!r} needs the patterns of the training rows: collect them "
            "with RowStatistics(patterns=True)."
        )
    if estimator.solver != "auto":
        raise ValueError(f"solver={estimator.solver!r} needs the rows, not only their statistics: use solver='auto'.")


def _adds_rows(model: "StreamedFit") -> bool:
    """Whether rows can be added: the loss must be squared, and the basis of the class fixed."""
    try:
        adaptivity, loss = model._check_parameters()
        require_squared(loss)
        refuse_learners(adaptivity)
    except ValueError as error:
        raise AttributeError(f"There is no partial_fit here: {error}") from error
    return True


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
        require_squared(loss)
        with unchanged_on_error(self):
            self._forget()
            read_statistics(self, statistics)
            self._fit_sums(training_sums(statistics, adaptivity), adaptivity)
        return self

    @available_if(_adds_rows)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows; the model of all rows so far is fitted when it is used first.

        The fit is that of :meth:`fit_statistics`, whatever the order and size of the blocks. It does not continue a
        ``fit``, which keeps no statistics, and exists for the squared loss and classes whose basis is fixed.
        """
        adaptivity, _ = self._check_parameters()
        with unchanged_on_error(self):
            statistics = vars(self).get("_statistics")
            if statistics is None:
                if "coefficients_" in vars(self):
                    warn("fit has not kept its rows, so partial_fit starts anew.")
                statistics = RowStatistics(adaptivity, tree_depth=None)
            read_features(self, X, reset=not statistics.parts)
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
        if name == "partial_fit":  # says why not
            _adds_rows(self)
        if name not in SOLVED or statistics is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        adaptivity, _ = self._check_parameters()
        self._fit_sums(training_sums(statistics, adaptivity), adaptivity)
        return vars(self)[name]

    def _fit_rows(self, X: FloatArray, y: FloatArray, s: FloatArray, adaptivity: Adaptivity, loss: Loss) -> None:
        """Fit from rows: by their statistics if there are many, else by the rows."""
        used, d = s > 0, X.shape[1]
        if not used.all():
            X, y, s = X[used], y[used], s[used]
        by_count = self.solver == "auto" and self.penalty_weights == "count" and self.lam > 0
        if isinstance(loss, Squared) and by_count and has_many_rows(X, adaptivity) and _are_few_sums(adaptivity, d):
            sums = TrainingSums.of_rows(X, y, s, None, adaptivity)
            refuse_extreme_summary(sums.summary(), feature_names(self))
            design = sums.design(adaptivity, **self._design_options())
            fit = solve_sums(sums, design, self._penalty(design))
            if fit is not None and fit[1].status == "optimal":
                self._keep(sums, design, fit)
                dual = 2.0 * (s / s.sum()) * (design.predictor(X, fit[0]) - y)
                certificate = replace(self.certificate_, dual=dual)
                self.certificate_ = replace(certificate, evidence=evidence_of(self))
                return
        self._fit_targets(X, [y], s, adaptivity, loss)
        self.target_range_ = float(y.min()), float(y.max())

    def _fit_sums(self, sums: TrainingSums, adaptivity: Adaptivity) -> None:
        design = sums.design(adaptivity, **self._design_options())
        fit = solve_sums(sums, design, self._penalty(design))
        if fit is None:
            raise ValueError("The moments are too inaccurate for a fit: use a larger lam, or fit in memory.")
        self._keep(sums, design, fit)
        self.certificate_ = replace(self.certificate_, evidence=evidence_of(self))

    def _keep(self, sums: TrainingSums, design: Design, fit: Fit) -> None:
        self._warn_never_observed(design)
        found = sums.summary()
        self.design_, self.coefficients_, self.certificate_ = design, fit[0] / design.column_scale, fit[1]
        self.target_range_ = float(found.low[-1]), float(found.high[-1])


def _are_few_sums(adaptivity: Adaptivity, d: int) -> bool:
    """Whether there are not more sums than products of columns of the design."""
    degree = degree_of(adaptivity)
    return degree == 0 or (degree == 1 and d <= MOST_FEATURES)
