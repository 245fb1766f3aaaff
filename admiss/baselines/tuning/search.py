"""Selection of hyper-parameters by cross-validation, in the same way for all kinds of predictors.

In each fold the imputer, if any, is fitted to the training rows; then every kind of predictor is fitted once for each
combination of crossed parameters, and its nested parameters are read off that fit (see
:mod:`admiss.baselines.tuning.kinds`). The parameters with the best mean score over the folds, the first of equals, are
used to fit one ordinary estimator to all rows. The folds do not depend on the kind.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from admiss.baselines.tuning.grids import Grid, resolve_grid
from admiss.baselines.tuning.kinds import KINDS, Parameters, Rows, fit_predictor
from admiss.baselines.tuning.scoring import check_held_out, score
from admiss.estimator.cv import Split
from admiss.estimator.notices import silence, warn_never_missing
from admiss.estimator.scaling import observed_moments
from admiss.estimator.validation import feature_names, read_features, read_random_state, refuse_extremes, seeded
from admiss.terminal.progress import progress
from admiss.terminal.table import Table
from formulations.arrays import FloatArray, IntArray

# The kinds that "best" stands for in the paper.
BEST = ("linear", "tree", "forest", "xgboost")


class Tuned(BaseEstimator):
    """Shared by the tuned regressor and the tuned classifier."""

    _scores: tuple[str, ...]

    def __init__(
        self,
        kind: str | Sequence[str] = "best",
        imputer: Any = None,
        grid: Any = "default",
        cv: Any = 5,
        scoring: str = "r2",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kind = kind
        self.imputer = imputer
        self.grid = grid
        self.cv = cv
        self.scoring = scoring
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _kinds(self) -> tuple[str, ...]:
        kinds = BEST if isinstance(self.kind, str) and self.kind == "best" else listed_kinds(self.kind)
        unknown = [kind for kind in kinds if not isinstance(kind, str) or kind not in KINDS]
        if unknown or not kinds:
            known = ", ".join(map(repr, ("best", *KINDS)))
            raise ValueError(f"kind must be one of {known}, or a list of them without 'best', not {self.kind!r}.")
        return kinds

    def _read_parameters(self) -> dict[str, Grid]:
        """The grid of each kind; invalid parameters are refused."""
        grids = resolve_grid(self.grid, self._kinds())
        for kind, grid in grids.items():
            KINDS[kind].check(kind, grid, is_classifier(self))
        if not isinstance(self.scoring, str) or self.scoring not in self._scores:
            raise ValueError(f"scoring must be one of {', '.join(map(repr, self._scores))}, not {self.scoring!r}.")
        if self.imputer is not None and not (hasattr(self.imputer, "fit") and hasattr(self.imputer, "transform")):
            raise ValueError(f"imputer must be a transformer of scikit-learn or None, not {self.imputer!r}.")
        return grids

    def _seed(self) -> int:
        """The seed of folds and predictors."""
        random, fixed = read_random_state(self.random_state), isinstance(self.random_state, int | np.integer)
        return int(self.random_state if fixed else random.randint(2**31 - 1))

    def _tune(self, grids: dict[str, Grid], rows: Rows, splits: list[Split], seed: int) -> None:
        """Select and fit; ``rows`` have positive weights."""
        self._refuse_nan(rows.X)
        _refuse_beyond_single(rows.X, grids)
        if "linear" in grids:
            refuse_extremes(np.ones(len(rows.X)), rows.weights, rows.X, feature_names(self))
        for k, (train, test) in enumerate(splits, start=1):
            if rows.n_classes and np.ptp(rows.y[train]) == 0:
                raise ValueError(f"All training rows of fold {k} are of one class: use fewer folds, or more rows.")
            check_held_out(self.scoring, rows.y, test, k)
        prepared = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(
            delayed(_prepared_fold)(self.imputer, rows, train, test, seed) for train, test in splits
        )
        folds = list(progress(prepared, len(splits), "cross-validation: imputation"))
        imputer, completed = _imputed(self.imputer, rows, seed)
        if self.imputer is not None and not all(KINDS[kind].takes_nan for kind in grids):
            for X in (completed.X, *(fold.train.X for fold in folds), *(fold.X for fold in folds)):
                if np.isnan(X).any():
                    raise ValueError("The imputer leaves NaN, which a linear predictor does not accept: use another.")

        cells = [(kind, *cell) for kind, grid in grids.items() for cell in KINDS[kind].cells(grid, completed)]
        tasks = [(cell, fold) for cell in cells for fold in folds]
        runs = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(
            delayed(_fold_scores)(*cell, fold, self.scoring, seed) for cell, fold in tasks
        )
        found = list(progress(runs, len(tasks), "cross-validation: fits"))
        by_cell = [found[start : start + len(folds)] for start in range(0, len(found), len(folds))]
        candidates, scores = [], []
        for (kind, *_), results in zip(cells, by_cell, strict=True):
            candidates += [(kind, parameters) for parameters, _ in results[0]]
            scores += list(zip(*([value for _, value in result] for result in results), strict=True))
        self._select(candidates, np.array(scores))

        predictor = fit_predictor(KINDS[self.best_kind_].make(rows, self.best_params_, seed), completed)
        self.n_fits_ = len(tasks) + 1
        self.best_estimator_ = (
            predictor if imputer is None else Pipeline([("imputer", imputer), ("predictor", predictor)])
        )
        self._mean = observed_moments(rows.X, rows.weights)[0]
        self._missable = np.isnan(rows.X).any(axis=0)

    def _select(self, candidates: list[tuple[str, Parameters]], scores: FloatArray) -> None:
        """Fill ``cv_results_``, and select its best row."""
        names = list(dict.fromkeys(name for _, parameters in candidates for name in parameters))
        mean = scores.mean(axis=1)
        self.cv_results_ = Table(
            kind=[kind for kind, _ in candidates],
            **{name: [parameters.get(name) for _, parameters in candidates] for name in names},
            mean_score=mean,
            std_score=scores.std(axis=1),
            **{f"split{k}_score": scores[:, k] for k in range(scores.shape[1])},
        )
        if np.isnan(mean).all():
            raise ValueError("No cell of the grid could be fitted in all folds: use larger values of 'lam'.")
        self.best_index_ = int(np.nanargmax(mean))
        self.best_score_ = float(mean[self.best_index_])
        self.best_kind_, self.best_params_ = candidates[self.best_index_]

    def _rows_to_predict(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = read_features(self, X, reset=False)
        _refuse_beyond_single(X, [self.best_kind_])
        if self.imputer is not None:
            return X
        self._refuse_nan(X)
        never = np.flatnonzero(np.isnan(X).any(axis=0) & ~self._missable)
        warn_never_missing(feature_names(self), never)
        return _filled(X, self._missable, self._mean)

    def _refuse_nan(self, X: FloatArray) -> None:
        if not self.__sklearn_tags__().input_tags.allow_nan and np.isnan(X).any():
            raise ValueError(
                "X contains NaN, which a linear predictor does not accept: use an imputer, or other kinds."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        needs_values = any(isinstance(kind, str) and kind in ("best", "linear") for kind in listed_kinds(self.kind))
        tags.input_tags.allow_nan = self.imputer is not None or not needs_values
        return tags


def _refuse_beyond_single(X: FloatArray, kinds: Iterable[str]) -> None:
    """Refuse values that XGBoost cannot hold, lest it fail in the middle of a search."""
    if "xgboost" in kinds and np.nanmax(np.abs(X), initial=0.0) > np.finfo(np.float32).max:
        raise ValueError("X is too large for XGBoost, which computes in single precision: use other units.")


def listed_kinds(kind: Any) -> tuple[Any, ...]:
    """The given kinds, one or several, not validated."""
    return (kind,) if isinstance(kind, str) or not np.iterable(kind) else tuple(kind)


@dataclass(frozen=True)
class _Fold:
    """Training rows and held-out rows, both imputed."""

    train: Rows
    X: FloatArray
    y: FloatArray | IntArray
    s: FloatArray | None


def _prepared_fold(imputer: Any, rows: Rows, train: IntArray, test: IntArray, seed: int) -> _Fold:
    learned, held = _some(rows, train), rows.X[test]
    if imputer is None:
        missable = np.isnan(learned.X).any(axis=0)
        held = _filled(held, missable, observed_moments(learned.X, learned.weights)[0])
    else:
        with silence():  # the imputer warns when it is fitted to all rows
            fitted, learned = _imputed(imputer, learned, seed)
            held = check_array(fitted.transform(held), dtype=np.float64, ensure_all_finite="allow-nan")
    return _Fold(learned, held, rows.y[test], None if rows.s is None else rows.s[test])


def _some(rows: Rows, selected: IntArray) -> Rows:
    return replace(rows, X=rows.X[selected], y=rows.y[selected], s=None if rows.s is None else rows.s[selected])


def _imputed(imputer: Any, rows: Rows, seed: int) -> tuple[Any, Rows]:
    """The imputer fitted to the rows, and the completed rows."""
    if imputer is None:
        return None, rows
    imputer = seeded(imputer, seed)
    _return_arrays(imputer)
    weights = {"sample_weight": rows.s} if rows.s is not None and has_fit_parameter(imputer, "sample_weight") else {}
    try:
        completed = imputer.fit_transform(rows.X, rows.y, **weights)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"{type(imputer).__name__} cannot be fitted with its parameters: {error}.") from error
    return imputer, replace(rows, X=check_array(completed, dtype=np.float64, ensure_all_finite="allow-nan"))


def _return_arrays(imputer: Any) -> None:
    """Undo ``set_output``: predictors are fitted to arrays, and would warn about data frames."""
    while isinstance(imputer, Pipeline):  # the steps before the last may need the names
        imputer = imputer[-1]
    if hasattr(imputer, "set_output"):
        imputer.set_output(transform="default")


def _filled(X: FloatArray, missable: Any, mean: FloatArray) -> FloatArray:
    """X with the training means of features that were never missing in training."""
    return np.where(np.isnan(X) & ~missable, mean, X)


def _fold_scores(
    kind: str, parameters: Parameters, nested: Grid, fold: _Fold, scoring: str, seed: int
) -> list[tuple[Parameters, float]]:
    """Scores of one fit on a fold at each value of its nested parameters."""
    train, present = fold.train, np.arange(fold.train.n_classes)
    if train.n_classes:  # all rows of a rare class may be held out
        present, codes = np.unique(train.y, return_inverse=True)
        train = replace(train, y=codes, n_classes=len(present), classes=[train.classes[k] for k in present])
    scores = []
    for cell, outputs in KINDS[kind].held_out(parameters, nested, train, fold.X, seed):
        if len(present) < fold.train.n_classes:
            known, outputs = outputs, np.zeros((len(fold.X), fold.train.n_classes))
            outputs[:, present] = known
        scores.append(({**parameters, **cell}, score(scoring, fold.y, outputs, fold.s)))
    return scores
