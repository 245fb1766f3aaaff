"""Comparison of partitioners from row statistics: one pass over data that need not fit in memory.

It is that of :mod:`admiss.compare.partitions`, with these differences. Folds are those of the statistics; the scores of
cross-validation are those of predictions that are not truncated, weighted by the sample weights. The linear reference,
with mean imputation and indicators, has its ridge selected by the other folds. Gradient boosting needs rows: it is left
out.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from admiss.compare.comparison import Comparison
from admiss.compare.partitions import LATE, Run, TimeIsUpError, compile_kernels
from admiss.compare.scores import LINEAR, PENALTIES
from admiss.compare.setting import DEFAULT_METHODS, Methods, Setting
from admiss.estimator.notices import silence
from admiss.finite.estimators import FiniteRegressor
from admiss.finite.from_statistics import Chunks, fold_losses, leaf_sums
from admiss.finite.search import FiniteGrid
from admiss.partition.base import Partitioner
from admiss.partition.greedy import Greedy
from admiss.statistics.row_statistics import RowStatistics, adopt_features
from admiss.terminal.progress import progress
from formulations.arrays import FloatArray
from formulations.leaves.cost import LeafCost
from formulations.losses import Squared

REFERENCE = LINEAR["regression"][0]
NOT_TRUNCATED = "Scores of cross-validation are those of predictions that are not truncated to the range of y."


def compare_statistics(
    statistics: RowStatistics,
    *,
    methods: Methods = DEFAULT_METHODS,
    setting: Setting | None = None,
    title: str = "data",
    notes: tuple[str, ...] = (),
    settle: Chunks | None = None,
) -> Comparison:
    """Fit every method from the same statistics, at the same leaf cost.

    Parameters
    ----------
    statistics : RowStatistics
        With ``tree_depth`` at least ``setting.max_depth``, or ``patterns=True``; with folds for scores.
    methods, setting, title, notes
        As in :func:`~admiss.compare.partitions.compare_partitions`, for regression with the squared loss; the folds of
        ``setting`` are not used.
    settle : iterable of chunks, optional
        As in :meth:`~admiss.FiniteRegressor.fit_statistics`.

    Examples
    --------
    >>> from admiss.datasets import make_interacting
    >>> from admiss.streaming import HashFolds, RowStatistics
    >>> data = make_interacting(n=400, d=5, random_state=0)
    >>> statistics = RowStatistics.of(data.X_train, data.y_train, tree_depth=2, folds=HashFolds(5))
    >>> setting = Setting(max_depth=2, min_rows=20)
    >>> compare_statistics(statistics, setting=setting).table["leaves"].tolist()[:3]
    [1.0, 3.0, 4.0]
    """
    setting, methods = (setting or Setting()).naming(methods)
    setting = replace(setting, folds=0 if statistics.folds is None else statistics.n_folds)
    if setting.task != "regression" or setting.loss_name != "squared":
        raise ValueError(
            "Row statistics suffice for regression with the squared loss only: compare other losses in memory."
        )
    setting = replace(setting, loss=setting.loss_name)
    setting.check(methods)
    adopt_features(setting.estimator("none"), statistics)
    leaf_sums(statistics, [setting.partitioner(method) for method in methods], np.arange(statistics.n_folds))
    compile_kernels(setting, methods)
    return _StatisticsRun(statistics, setting, methods, notes, settle).finish(title, verify=False)


class _Summary:
    """Row statistics in place of the rows of a comparison."""

    def __init__(self, statistics: RowStatistics) -> None:
        self.folds = [] if statistics.folds is None else list(range(statistics.n_folds))
        self.test, self.classes, self.X = None, None, np.zeros((0, statistics.n_features_in_))
        self.summary = statistics.summary()

    def overlap(self) -> float:
        """Held-out rows per training row of a fold, for folds of about the same size."""
        return 1 / (len(self.folds) - 1) if self.folds else 0.0

    def notes(self) -> list[str]:
        return [NOT_TRUNCATED] if self.folds else []

    def description(self) -> str:
        """Their size in words."""
        n, d = self.summary.n_rows, len(self.summary.n_observed)
        missing = 1.0 - self.summary.n_observed.sum() / (n * d)
        return f"{n:,} training rows, {d} feature{'s' * (d != 1)}, {missing:.0%} missing"


class _StatisticsRun(Run):
    """The steps of a comparison, from statistics."""

    def __init__(
        self,
        statistics: RowStatistics,
        setting: Setting,
        methods: tuple[str, ...],
        notes: tuple[str, ...],
        settle: Chunks | None,
    ) -> None:
        data: Any = _Summary(statistics)
        super().__init__(data, setting, methods, notes)
        self.statistics, self.settle = statistics, settle
        self.references = [REFERENCE] if setting.references and data.folds else []

    def _fitted_to_all(self, name: str, seconds: float | None) -> FiniteRegressor:
        if name in self.references:  # one leaf
            model: Any = FiniteRegressor(Greedy(max_leaves=1), ridge=self._ridge(np.arange(self.statistics.n_folds)))
        else:
            model = self.setting.estimator(name, seconds)
        return model.fit_statistics(self.statistics, self.settle)

    def _validate(self, name: str, seconds: float | None) -> None:
        if name not in self.models or self.status[name] == LATE:
            raise TimeIsUpError
        start, losses, everything = time.perf_counter(), [], np.arange(self.statistics.n_folds)
        with silence():  # the fit to all rows has issued them
            for fold in progress(everything.tolist(), len(everything), f"cross-validation of {name}: folds"):
                training = everything[everything != fold]
                ridge, partitioner = self.setting.ridge, self.setting.partitioner(name)
                if name in self.references:
                    ridge, partitioner = self._ridge(training), Greedy(max_leaves=1)
                losses.append(float(self._losses(partitioner, [ridge], name, training, fold)[0]))
                if seconds is not None and time.perf_counter() - start > seconds:
                    raise TimeIsUpError
        found = self.statistics.summary()
        spread = found.weight * found.deviation[-1] ** 2
        by_fold = 1.0 - len(losses) * np.array(losses) / spread if spread > 0 else np.full(len(losses), np.nan)
        self.scores[name]["cv_R2"] = float(by_fold.mean())
        self.fold_scores[name] = {"R2": by_fold.tolist()}

    def _losses(self, partitioner: Partitioner, ridges: list[float], name: str, folds: Any, fold: int) -> FloatArray:
        """Held-out losses on a fold for each ridge."""
        is_reference, setting = name in self.references, self.setting
        grid = FiniteGrid(
            {0: partitioner},
            ridges,
            ["affine_intercept" if is_reference else setting.leaf_model],
            Squared(),
            "leaf" if is_reference else setting.ridge_scale,
            is_reference or setting.center,
            is_reference or setting.scale,
            truncate=False,
        )
        names = [f"x{j}" for j in range(self.statistics.n_features_in_)]
        names = list(getattr(self.statistics, "feature_names_in_", names))
        return fold_losses(grid, grid.leaf_models[0], self.statistics, names, folds, fold).total[0]

    def _ridge(self, folds: Any) -> float:
        """The ridge of the linear reference with the smallest loss when each of these folds is held out."""
        if len(folds) < 2:
            return float(np.median(PENALTIES))
        ridges = PENALTIES.tolist()
        losses = [self._losses(Greedy(max_leaves=1), ridges, REFERENCE, folds[folds != f], int(f)) for f in folds]
        return float(ridges[int(np.sum(losses, axis=0).argmin())])

    def _leaf_cost(self, model: Any) -> LeafCost:
        sums = leaf_sums(self.statistics, [self.setting.partitioner("tree")], np.arange(self.statistics.n_folds))
        return sums.leaf_cost(model.leaf_features_, self.setting.ridge, self.setting.ridge_scale)
