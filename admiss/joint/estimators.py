"""Joint impute-then-regress (Section 3.2 of the paper): any scikit-learn predictor, with learned imputed values.

    prediction = f(x^mu),      x_j^mu = x_j where observed, mu_j where missing

A search finds mu (see :mod:`admiss.joint.problem`), then f is fitted to x^mu. f sees a complete matrix, and classes as
codes 0 .. K - 1. Its random states that are None are set once, so that the fit is a function of mu.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from admiss.estimator.notices import warn, warn_never_missing, warn_set_to_zero
from admiss.estimator.raw_tables import takes_raw_table
from admiss.estimator.validation import (
    AllowsMissing,
    feature_names,
    read_classes,
    read_features,
    read_random_state,
    read_regression_target,
    read_weights,
    refuse_extremes,
    require_choice,
    require_two_classes,
    unchanged_on_error,
)
from admiss.joint.closed_form import ClosedForm
from admiss.joint.paper_search import PaperSearch
from admiss.joint.predictor import check_predictor, prepared
from admiss.joint.problem import Imputation, ImputationSearch, JointProblem, imputed
from formulations.arrays import BoolArray, FloatArray
from formulations.jit import is_interrupt

ERRORS = ("log_loss", "auc")


class _JointImpute(AllowsMissing, BaseEstimator):
    """Shared by the regressor and the classifier."""

    encoder_: Any = None  # models of earlier versions have none
    # Parameters with which the search is that of the paper.
    _printed: ClassVar[dict[str, Any]] = {"algorithm": PaperSearch(step_rows="all")}

    def __init__(
        self,
        estimator: Any = None,
        algorithm: str | ImputationSearch = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.algorithm = algorithm
        self.random_state = random_state

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """Algorithm 2 of the paper as it is printed, with steps of std(X_j) / sqrt(n).

        For class labels its error is 1 - AUC. By default imputed values are found in closed form, which is faster and
        moves further, and used if cross-validation prefers them to the mean; the error of labels is the log-loss, the
        one that predictors minimise. ``algorithm="paper"`` is the search with steps of the standard error of the mean,
        as the text defines them, in which n is the number of observed values.

        Parameters
        ----------
        **parameters
            Of the estimator, such as ``estimator``; those given replace the printed ones.
        """
        return cls(**(cls._printed | parameters))

    def _predictor(self) -> Any:
        """f, given or by default."""
        if self.estimator is not None:
            return self.estimator
        return LogisticRegression() if is_classifier(self) else LinearRegression()

    def _check_parameters(self, sample_weight: Any) -> ImputationSearch:
        kind = "classifier" if is_classifier(self) else "regressor"
        check_predictor(self._predictor(), kind, weighted=sample_weight is not None)
        if callable(self.algorithm):
            return self.algorithm
        if not isinstance(self.algorithm, str) or self.algorithm not in ("auto", "paper"):
            raise ValueError(f"algorithm must be 'auto', 'paper' or a search, not {self.algorithm!r}.")
        return ClosedForm() if self.algorithm == "auto" else PaperSearch()

    def _encode(self, X: Any, y: Any, f: Any) -> tuple[FloatArray, Any]:
        """Features of fit as numbers, and f without the first steps of a pipeline if these encode a raw table."""
        self.encoder_ = None
        if not takes_raw_table(f, X):
            return read_features(self, X, reset=True), f
        validate_data(self, X, reset=True, skip_check_array=True)
        table, steps = X, list(f.steps)
        encoders: list[tuple[str, Any]] = []
        while len(steps) > 1 and takes_raw_table(f, table):
            name, step = steps.pop(0)
            step = clone(step)
            try:
                table = step.fit_transform(table, y)
            except (TypeError, ValueError) as error:
                reason = str(error).strip().split("\n")[0].rstrip(".")
                raise ValueError(
                    f"The step {name!r} of the pipeline cannot read the table ({reason}): put an encoder of tables, "
                    "such as admiss.TableEncoder, before it."
                ) from error
            encoders.append((name, step))
        self.encoder_ = Pipeline(encoders)
        return self._encoded(table), Pipeline(steps)

    def _encoded(self, table: Any) -> FloatArray:
        """What the first steps gave, as numbers with NaN."""
        return read_features(BaseEstimator(), table, reset=True)

    def _fit_jointly(
        self, problem: JointProblem, search: ImputationSearch, random_state: np.random.RandomState
    ) -> None:
        self.missable_, observed = problem.M.any(axis=0), (~problem.M).any(axis=0)
        self.observed_ = observed
        warn_set_to_zero(self._names(), np.flatnonzero(~observed))
        if self.missable_.any():
            try:
                suggested = search(problem, random_state)
            except TypeError as error:
                raise TypeError(f"algorithm fails as a function of the problem and a random state: {error}") from error
            f, imputation = _fit_at(problem, suggested, np.asarray(self.missable_ & observed))
        else:
            imputation = Imputation(problem.means(), (), "nothing is missing")
            f = problem.fit(imputation.mu)
        self.estimator_ = f
        self.imputation_ = imputation.mu
        self.history_ = imputation.history
        self.note_ = imputation.note

    def _ask(self, method: str, X: Any) -> Any:
        """Result of a method of f on the completed rows."""
        check_is_fitted(self)
        return getattr(self.estimator_, method)(self._complete(X))

    def _read(self, X: Any) -> FloatArray:
        """Features of rows to predict, encoded as in fit."""
        if self.encoder_ is None:
            return read_features(self, X, reset=False)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._encoded(self.encoder_.transform(X))

    def _names(self) -> list[str]:
        """Names of the features of x^mu."""
        if self.encoder_ is None:
            return feature_names(self)
        return [str(name) for name in self.encoder_.get_feature_names_out()]

    def _complete(self, X: Any) -> FloatArray:
        """x^mu, with a warning about features that were never missing in training."""
        X = self._read(X)
        surprising = np.isnan(X).any(axis=0) & ~self.missable_
        warn_never_missing(self._names(), np.flatnonzero(surprising))
        return np.where(self.observed_, imputed(X, self.imputation_), 0.0)


def _fit_at(problem: JointProblem, suggested: Imputation, matters: BoolArray) -> tuple[Any, Imputation]:
    """f fitted at the values that a search found, or at the means if it fails there.

    Features that do not matter, since they are never missing or never observed, have their means.
    """
    means = problem.means()
    suggested = replace(suggested, mu=_checked(suggested.mu, means, matters), history=tuple(suggested.history))
    failures: list[str] = []
    for mu in (suggested.mu, means):
        try:
            f = problem.fit(mu)
            break
        except Exception as failure:
            if is_interrupt(failure):
                raise
            cause = failure.__cause__ or failure
            failures.append(f"{type(cause).__name__}: {str(cause)[:300]}")
            if np.array_equal(mu, means):
                name = type(problem.estimator).__name__
                message = f"{name} cannot be fitted: it fails with the means imputed, too ({failures[-1]})."
                raise ValueError(message) from failure
    if not failures:
        return f, suggested
    reason = f"the predictor failed at the values found ({failures[0]})"
    warn(f"The means are imputed, since {reason}.")
    return f, Imputation(means, tuple(replace(entry, moves=()) for entry in suggested.history), f"the mean: {reason}")


def _checked(mu: Any, means: FloatArray, matters: BoolArray) -> FloatArray:
    """The values returned by a search, as d numbers."""
    values = np.asarray(mu, dtype=float)
    if values.shape == means.shape:
        values = np.where(matters, values, means)
    if values.shape != means.shape or not np.isfinite(values).all():
        raise ValueError(f"The search must return {len(means)} finite imputed values, not {mu!r}.")
    return values


class JointImputeRegressor(RegressorMixin, _JointImpute):
    """Any regressor, with imputed values that are learned for it.

    Parameters
    ----------
    estimator : scikit-learn regressor, optional
        f; least squares by default. It may be a pipeline, which takes raw tables: its first steps, such as
        ``TableEncoder``, encode text and dates, and imputed values are learned for the encoded features.
    algorithm : {"auto", "paper"} or ImputationSearch
        How mu is found: ``"auto"`` is :class:`admiss.joint.ClosedForm`, a ridge on values and indicators that is used
        if cross-validation prefers it to the mean; ``"paper"`` is :class:`admiss.joint.PaperSearch`, the local search
        of the paper, which moves mu for linear f and hardly ever for trees, forests and boosting; or any function of a
        ``JointProblem`` and a random state that returns an ``Imputation``. A grid search can only vary whole searches:
        ``algorithm=[ClosedForm(..), PaperSearch(..)]``.
    random_state : int, RandomState or None
        Seed of the search, and of random states of f that are None.

    Attributes
    ----------
    encoder_ : Pipeline or None
        The first steps of a pipeline that was fitted to a raw table; the other attributes are then those of the encoded
        features.
    imputation_ : array of shape (n_features_in_,)
        mu; the mean of a feature that was never missing, 0 for one that was never observed.
    estimator_ : regressor
        f, fitted to x^mu.
    history_ : tuple of Round
        Error and moves of each outer round of the search.
    note_ : str
        How the search ended.
    missable_, observed_ : bool arrays of shape (n_features_in_,)
        Features with missing values, and with observed values, in training.
    n_features_in_ : int
    feature_names_in_ : array of str, if X has column names

    Examples
    --------
    >>> from admiss.datasets import make_synthetic
    >>> from admiss.joint import JointImputeRegressor
    >>> data = make_synthetic(n=1000, mechanism="censoring", random_state=0)
    >>> model = JointImputeRegressor(algorithm="paper").fit(data.X_train, data.y_train)
    >>> [len(round.moves) > 0 for round in model.history_][:2]
    [True, True]
    >>> model.score(data.X_test, data.y_test) > 0.5
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find mu and fit f.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) where missing.
        y : array of shape (n,)
            Target.
        sample_weight : array of shape (n,), optional
            For an estimator that takes weights. The steps of ``algorithm="paper"`` depend on their scale, because the
            total weight counts as the number of rows.
        """
        search = self._check_parameters(sample_weight)
        with unchanged_on_error(self):
            X, f = self._encode(X, y, self._predictor())
            y = read_regression_target(self, y, len(X))
            s = read_weights(sample_weight, X)
            refuse_extremes(y, s, X, self._names())
            rng = read_random_state(self.random_state)
            f = prepared(f, rng)
            problem = JointProblem(X, y, s, f, "squared", pass_weights=sample_weight is not None)
            self._fit_jointly(problem.weighted_rows(), search, rng)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predicted target of each row."""
        return np.asarray(self._ask("predict", X))


def _has(method: str) -> Callable[[Callable[..., FloatArray]], Any]:
    """Decorator of a method that exists if f has it."""
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self._predictor()), method))


class JointImputeClassifier(ClassifierMixin, _JointImpute):
    """Any classifier, with imputed values that are learned for it.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        f; ``LogisticRegression`` by default. It needs ``predict_proba``; for ``error="auc"``, ``decision_function``
        suffices.
    algorithm, random_state
        As in :class:`JointImputeRegressor`.
    error : {"log_loss", "auc"}
        Error minimised by the search: the log-loss, or, as in the paper, 1 - AUC (with several classes the mean over
        each class against the rest).

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    encoder_, imputation_, estimator_, history_, note_, missable_, observed_, n_features_in_, feature_names_in_
        As in :class:`JointImputeRegressor`; ``estimator_`` knows the classes by their index in ``classes_``.

    Examples
    --------
    >>> from admiss.datasets import make_synthetic
    >>> from admiss.joint import JointImputeClassifier
    >>> data = make_synthetic(n=500, mechanism="censoring", random_state=0)
    >>> model = JointImputeClassifier(algorithm="paper").fit(data.X_train, data.y_train > 0)
    >>> model.score(data.X_test, data.y_test > 0) > 0.7
    True
    """

    _printed = _JointImpute._printed | {"error": "auc"}

    def __init__(
        self,
        estimator: Any = None,
        algorithm: str | ImputationSearch = "auto",
        error: str = "log_loss",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(estimator, algorithm, random_state)
        self.error = error

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find mu and fit f; parameters as in :meth:`JointImputeRegressor.fit`, with class labels in y."""
        require_choice(self, "error", ERRORS)
        search = self._check_parameters(sample_weight)
        with unchanged_on_error(self):
            X, f = self._encode(X, y, self._predictor())
            classes, codes = read_classes(self, y, len(X))
            s = read_weights(sample_weight, X)
            refuse_extremes(np.ones(len(X)), s, X, self._names())
            present = np.unique(codes[s > 0])
            require_two_classes(self, present)
            self.classes_, codes = classes[present], np.searchsorted(present, codes)
            rng = read_random_state(self.random_state)
            f = prepared(f, rng, self.classes_)
            weighted = sample_weight is not None
            problem = JointProblem(X, codes, s, f, self.error, n_classes=len(self.classes_), pass_weights=weighted)
            problem = problem.weighted_rows()
            problem.require_scores()
            self._fit_jointly(problem, search, rng)
        return self

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class."""
        return np.asarray(self._ask("predict_proba", X))

    @_has("decision_function")
    def decision_function(self, X: Any) -> FloatArray:
        """Decision function of f."""
        return np.asarray(self._ask("decision_function", X))

    def predict(self, X: Any) -> Any:
        """Class of each row."""
        codes = self._ask("predict", X)
        return self.classes_[np.asarray(codes, dtype=int)]
