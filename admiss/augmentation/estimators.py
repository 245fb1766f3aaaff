"""Any estimator that accepts missing values, trained on rows with further deletions.

A model that is trained under one law of missingness and used under another (sensors fail, forms change) meets patterns
that it has seen rarely or never. Here training rows also occur with further features deleted at random, at a rate drawn
for each copy; ``deletions`` has the law. The folds of a search are made of whole rows, a row with its copies, so that
hyper-parameters are selected under the same law.

*Where it loses.* Without a shift the model spends effort on patterns that do not occur. That costs linear models
nothing under missingness completely at random, and .02 to .04 of R2 if missingness depends on values (censoring), since
deletions at random make an indicator m_j say less about x_j. Forests and boosting count rows in their leaves: with
copies, a leaf of the same size holds fewer different rows. The study ``shift`` measures all of this.

*Folds of a search.* A row and its copies are in the same fold. Otherwise a model is tested on copies of rows that it
has seen, with the same target, and too little penalty is chosen. The search is the estimator itself, or the last step
of a pipeline: its ``cv`` becomes a list of folds, made of the rows as they are by the ``cv`` that it had. If that is
None, it becomes 5, also in estimators whose None is leave-one-out.
"""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from admiss.augmentation.deletions import Deletions, with_copies
from admiss.augmentation.expected import fit_expected, is_exact
from admiss.estimator.cross_validation import Split, make_folds, needs_groups
from admiss.estimator.notices import warn
from admiss.estimator.raw_tables import GivesFrames
from admiss.estimator.validation import (
    AllowsMissing,
    read_classes,
    read_features,
    read_random_state,
    read_regression_target,
    read_weights,
    refuse_arguments,
    require_integer,
    require_two_classes,
    seeded,
    unchanged_on_error,
)
from admiss.joint.predictor import weight_parameter
from formulations.arrays import FloatArray, IntArray

AUTO = "auto"


class DeletionAugmented(GivesFrames, AllowsMissing, BaseEstimator):
    """Parameters and fit, for both tasks."""

    def __init__(
        self, estimator: Any, rate: Any = (0.0, 0.7), copies: Any = AUTO, keep: float = 0.5, random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.rate = rate
        self.copies = copies
        self.keep = keep
        self.random_state = random_state

    def _check_parameters(self) -> Deletions:
        if not isinstance(self.copies, str) or self.copies != AUTO:
            require_integer(self, "copies", 1, 1000)
        right = is_classifier if isinstance(self, ClassifierMixin) else is_regressor
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type) or not right(self.estimator):
            task = "classifier" if isinstance(self, ClassifierMixin) else "regressor"
            raise ValueError(f"estimator must be a {task} that accepts NaN, not {self.estimator!r}.")
        _refuse_groups(self.estimator)
        return Deletions.of(self.rate, self.keep)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **unknown: Any) -> Self:
        """Fit the estimator to the rows and their copies; a weight equals that many copies of the row.

        Further arguments are refused.
        """
        refuse_arguments(self, unknown)
        self._check_parameters()
        with unchanged_on_error(self):
            rows = read_features(self, X, reset=True)
            self._remember_frame(X)
            self._fit(X, rows, *self._read_target(y, len(rows)), sample_weight)
        return self

    @abstractmethod
    def _read_target(self, y: Any, n: int) -> tuple[Any, IntArray | None]:
        """The target of n rows, after checks, and in classification the code of each row."""

    def _fit(self, X: Any, rows: FloatArray, y: Any, labels: IntArray | None, sample_weight: Any) -> None:
        """Fit to the rows read from X."""
        law, random = self._check_parameters(), read_random_state(self.random_state)
        model = seeded(self.estimator, int(random.randint(2**31 - 1)))
        if self.copies == AUTO and is_exact(model):
            self.estimator_, self.copies_ = fit_expected(model, X, y, sample_weight, law), np.inf
            return
        copies = 4 if self.copies == AUTO else int(self.copies)
        s = read_weights(sample_weight, rows)
        used = s > 0
        code = y[used] if labels is None else np.unique(labels[used], return_inverse=True)[1]
        index, augmented, weights = with_copies(rows[used], code, s[used], law, copies, random)
        arguments = self._weight_arguments(model, weights, copies)
        model = with_whole_rows(model, rows, y, labels, s, index, random.randint(2**31 - 1))
        self.estimator_ = model.fit(self._given(augmented), y[used][index], **arguments)
        self.copies_ = copies

    def _weight_arguments(self, model: Any, weights: FloatArray, copies: int) -> dict[str, FloatArray]:
        name = weight_parameter(model)
        if name is not None:
            return {name: weights}
        if np.ptp(weights) > 1e-9 * weights.max():  # more than rounding
            raise ValueError(
                f"{type(model).__name__} is not known to take sample_weight: pass no weights and use "
                f"keep={1 / (1 + copies)!r}, with which a row weighs as much as each of its {copies} copies."
            )
        return {}

    def _rows_to_predict(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._given(read_features(self, X, reset=False))

    def predict(self, X: Any) -> Any:
        """Predictions of the estimator."""
        rows = self._rows_to_predict(X)
        return self.estimator_.predict(rows)


class DeletionAugmentedRegressor(RegressorMixin, DeletionAugmented):
    """A regressor that is also trained on its rows with further values deleted, for use under other missingness.

    Use it if features will be missing more often, or in other combinations, than in training. If missingness stays as
    it was and depends on values, it loses: .02 to .04 of R2 under censoring for models that learn from what is missing,
    and more for forests, whose leaves are counted in rows with their copies (study ``shift``).

    Parameters
    ----------
    estimator : estimator
        Any regressor that accepts NaN, pipelines and searches included. A search (with a parameter ``cv``), alone or at
        the end of a pipeline, selects on folds of whole rows, a row with its copies; a search inside of another one,
        the candidates of a stack, and joint impute-then-regress, make folds of their own, in which copies may be apart.
        Searches of scikit-learn score held-out rows without weights. Conformal intervals belong around this estimator,
        not inside: they need rows without copies.
    rate : (float, float) or float
        The rate of deletions is uniform between these numbers, drawn for each copy.
    copies : "auto" or int
        Copies of each row with deletions, up to 1,000. "auto" computes the expectation over all deletions instead, for
        :class:`AdaptiveRegressor` and :class:`AdaptiveRegressorCV` with squared loss, penalties by counts, static,
        affine-intercept, affine or polynomial classes and no constraints; for all others it means 4.
    keep : float
        Share of its weight that a row keeps as it is; its copies share the rest. Estimators without ``sample_weight``
        need keep = 1 / (1 + copies).
    random_state : int, RandomState or None
        Seed of deletions, folds, and estimators without a seed of their own.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator. After an expectation its certificate is that of the expected program, which
        ``admiss.verify`` does not know.
    copies_ : int or inf
        Copies of each row; infinity for the expectation.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from admiss import AdaptiveRegressor, DeletionAugmentedRegressor
    >>> from admiss.datasets import CompletelyAtRandom, make_synthetic
    >>> data = make_synthetic(n=500, missing_fraction=0.1, random_state=0)
    >>> plain = AdaptiveRegressor("affine").fit(data.X_train, data.y_train)
    >>> augmented = DeletionAugmentedRegressor(AdaptiveRegressor("affine")).fit(data.X_train, data.y_train)
    >>> shifted = np.where(CompletelyAtRandom(0.5)(data.X_test, 0), np.nan, data.X_test)
    >>> augmented.score(shifted, data.y_test) > plain.score(shifted, data.y_test)
    True
    """

    def _read_target(self, y: Any, n: int) -> tuple[FloatArray, None]:
        return read_regression_target(self, y, n), None


def _has(name: str) -> Any:
    return available_if(lambda self: hasattr(self.estimator, name))


class DeletionAugmentedClassifier(ClassifierMixin, DeletionAugmented):
    """A classifier that is also trained on its rows with further values deleted, for use under other missingness.

    Parameters
    ----------
    estimator, rate, copies, keep, random_state
        As in :class:`DeletionAugmentedRegressor`; copies are always drawn.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    estimator_, copies_, n_features_in_, feature_names_in_
        As in :class:`DeletionAugmentedRegressor`.

    Examples
    --------
    >>> from admiss import AdaptiveClassifier, DeletionAugmentedClassifier
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=200, missing_fraction=0.1, random_state=0)
    >>> model = DeletionAugmentedClassifier(AdaptiveClassifier(), random_state=0)
    >>> model.fit(data.X_train, data.y_train > 0).score(data.X_test, data.y_test > 0) > 0.7
    True
    """

    def _read_target(self, y: Any, n: int) -> tuple[Any, IntArray]:
        self.classes_, codes = read_classes(self, y, n)
        require_two_classes(self, self.classes_)
        return self.classes_[codes], codes

    def _fit(self, X: Any, rows: FloatArray, y: Any, labels: IntArray | None, sample_weight: Any) -> None:
        super()._fit(X, rows, y, labels, sample_weight)
        self.classes_ = np.asarray(self.estimator_.classes_)  # without those of rows of weight 0

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class."""
        rows = self._rows_to_predict(X)
        return np.asarray(self.estimator_.predict_proba(rows))

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> FloatArray:
        """Decision function of the estimator."""
        rows = self._rows_to_predict(X)
        return np.asarray(self.estimator_.decision_function(rows))


def with_whole_rows(
    estimator: Any, X: FloatArray, y: Any, labels: IntArray | None, s: FloatArray, rows: IntArray, random_state: Any
) -> Any:
    """The estimator, which is changed, with folds for its rows with copies, if it has a parameter ``cv``.

    X, y, labels and s are the rows as they are, see ``make_folds``; rows of weight 0 are in no fold. ``rows`` are, for
    each row and copy, the index of its row among those of positive weight.
    """
    _warn_of_single_rows(estimator, len(rows))
    name, cv = _own_folds(estimator)
    if name is not None and not isinstance(cv, str):
        folds = make_folds(X, y, labels, s, 5 if cv is None else cv, random_state)
        estimator.set_params(**{name: [_copied(fold, rows) for fold in folds]})
    return estimator


def _warn_of_single_rows(estimator: Any, n: int) -> None:
    """Warn of estimators that hold out single rows; above 10,000 rows HistGradientBoosting does so by default."""
    settings = {key.rpartition("__")[2]: value for key, value in estimator.get_params().items()}
    early = settings.get("early_stopping", settings.get("n_iter_no_change") is not None)
    if early is True or (early == "auto" and n > 10_000) or settings.get("oob_score"):
        warn(
            "Early stopping and out-of-bag scores hold out single rows, so that copies of a row are on both sides: set "
            "early_stopping=False and oob_score=False."
        )


def _refuse_groups(estimator: Any) -> None:
    """Refuse folds by groups of rows, which fit does not take."""
    name = _name_of_folds(estimator)
    splitter = estimator.get_params().get(name)
    if needs_groups(splitter):
        raise ValueError(
            f"{type(splitter).__name__} needs groups, which fit does not take: list its folds, "
            f"{name}=list(splitter.split(X, y, groups))."
        )


def _name_of_folds(estimator: Any) -> str:
    """Name of the parameter with the folds of the outermost search, if the estimator is one."""
    prefix, last = "", estimator
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        prefix += f"{step}__"
    return f"{prefix}cv"


def _own_folds(estimator: Any) -> tuple[str | None, Any]:
    """Name and value of the parameter with the folds of the outermost search; warns of searches inside of it."""
    folds = {key: value for key, value in estimator.get_params().items() if key.rpartition("__")[2] == "cv"}
    own = _name_of_folds(estimator)
    name = own if own in folds else None
    inner = [key for key, value in folds.items() if key != name and not isinstance(value, str)]
    if inner:
        warn(
            f"{', '.join(inner)}: folds of a search inside another estimator, in which copies of a row may be apart; "
            "its penalties can come out too small."
        )
    return name, folds.get(name) if name else None


def _copied(fold: Split, rows: IntArray) -> Split:
    train, test = (np.flatnonzero(np.isin(rows, part)) for part in fold)
    return train, test
