"""Joint impute-then-regress with the best of several predictors, as in the experiments of the paper.

The whole search for imputed values is repeated in each fold and for each predictor; the predictor with the best mean
score on the held-out rows, the first of equals, is then fitted jointly to all rows. A predictor that is tuned after
mean imputation is chosen for other imputed values than it is used with.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.cross_validation import Split, SplitsRows, make_folds
from admiss.estimator.notices import silence
from admiss.estimator.scoring import check_held_out, score
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
from admiss.joint.estimators import ERRORS, JointImputeClassifier, JointImputeRegressor, _JointImpute
from admiss.joint.predictor import check_predictor
from admiss.joint.problem import ImputationSearch
from admiss.terminal.progress import progress
from admiss.terminal.table import Table
from formulations.arrays import FloatArray

# The predictors by default: their penalties, depths and number of trees.
RIDGES = np.logspace(-3, 4, 15)
INVERSE_PENALTIES = (0.01, 0.1, 1.0, 10.0)
DEPTHS = (4, 8)
TREES = 100


def held_out_scores(
    estimator: Any, X: FloatArray, y: Any, sample_weight: FloatArray | None, splits: Sequence[Split]
) -> list[float]:
    """The score of an estimator, fitted anew in each fold, on the held-out rows.

    That of a regression is R2; of a classification minus the log-loss, or the AUC if that is the error of the search. A
    class that the training rows lack has probability 0.

    Parameters
    ----------
    estimator : JointImputeRegressor or JointImputeClassifier
    X : array of shape (n, d)
    y : array of shape (n,)
    sample_weight : array of shape (n,), optional
    splits : list of (train, test)

    Examples
    --------
    >>> X, y = np.array([[1.0], [2.0], [np.nan], [3.0], [4.0], [np.nan]]), np.array([1.0, 2.0, 5.0, 3.0, 4.0, 5.0])
    >>> splits = [(np.array([0, 1, 2]), np.array([3, 4, 5])), (np.array([3, 4, 5]), np.array([0, 1, 2]))]
    >>> scores = held_out_scores(JointImputeRegressor(algorithm="paper"), X, y, None, splits)
    >>> len(scores)
    2
    """
    classes, codes = np.unique(y, return_inverse=True)
    scores = []
    for train, test in splits:
        s = (None, None) if sample_weight is None else (sample_weight[train], sample_weight[test])
        with silence():  # the fit to all rows says what there is to say
            model = clone(estimator).fit(X[train], y[train], s[0])
        if not is_classifier(model):
            scores.append(score("r2", y[test], model.predict(X[test]), s[1]))
            continue
        probabilities = np.zeros((len(test), len(classes)))
        probabilities[:, np.isin(classes, model.classes_)] = model.predict_proba(X[test])
        scores.append(score(model.error, codes[test], probabilities, s[1]))
    return scores


class _JointImputeCV(SplitsRows, AllowsMissing, BaseEstimator):
    """Shared by the regressor and the classifier."""

    best_estimator_: Any
    _printed = _JointImpute._printed

    def __init__(
        self,
        estimators: Any = None,
        algorithm: str | ImputationSearch = "auto",
        cv: Any = 5,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimators = estimators
        self.algorithm = algorithm
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """Algorithm 2 of the paper as it is printed, with the predictor by 5-fold cross-validation.

        For what differs by default, and why, see :meth:`admiss.JointImputeRegressor.paper`. The paper chooses among
        linear models, trees, forests and XGBoost.

        Parameters
        ----------
        **parameters
            Of the estimator, such as ``estimators``; those given replace the printed ones.
        """
        return cls(**(cls._printed | parameters))

    def _candidates(self, weighted: bool) -> dict[str, Any]:
        """The predictors by name."""
        listed = self._default_predictors() if self.estimators is None else self.estimators
        if not isinstance(listed, dict):
            if not isinstance(listed, list | tuple):
                raise ValueError(f"estimators must be a list or a dictionary of predictors, not {listed!r}.")
            listed = {f"{type(f).__name__} {k}": f for k, f in enumerate(listed)}
        if not listed:
            raise ValueError("estimators is empty: name at least one predictor.")
        for f in listed.values():
            check_predictor(f, "classifier" if is_classifier(self) else "regressor", weighted)
        return dict(listed)

    def _default_predictors(self) -> dict[str, Any]:
        raise NotImplementedError

    def _joint(self, f: Any, seed: int) -> Any:
        """The joint estimator of a predictor."""
        raise NotImplementedError

    @property
    def _score(self) -> str:
        """Name of the score of a predictor."""
        raise NotImplementedError

    def _read_target(self, y: Any, s: FloatArray) -> Any:
        """The target of each row, and for classes their codes."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Choose a predictor, and fit it jointly with its imputed values.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) where missing. Text is encoded before the search, by ``TableEncoder``.
        y : array of shape (n,)
            Target.
        sample_weight : array of shape (n,), optional
            For predictors that take weights; scores are weighted, too.
        **params
            Passed to the splitter ``cv``, see :meth:`AdaptiveRegressorCV.fit`.
        """
        of_split = self._split_parameters(sample_weight, params)
        candidates = self._candidates(sample_weight is not None)
        with unchanged_on_error(self):
            rows = read_features(self, X, reset=True)
            s = read_weights(sample_weight, rows)
            target, codes = self._read_target(y, s)
            random = read_random_state(self.random_state)
            seed = int(random.randint(2**31 - 1))
            splits = make_folds(rows, target, codes, s, self.cv, seed, of_split)
            used = s > 0
            refuse_extremes(np.ones(len(rows)) if codes is not None else target, s, rows, feature_names(self))
            for k, (_, test) in enumerate(splits, start=1):
                scored, parameter = (target, "") if codes is None else (codes, "error")
                check_held_out(self._score, scored[used], test, k, parameter)
            weights = None if sample_weight is None else s[used]
            models = {name: self._joint(f, seed) for name, f in candidates.items()}
            tasks = [
                (model, rows[used], target[used], weights, [split]) for model in models.values() for split in splits
            ]
            runs = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(
                delayed(held_out_scores)(*task) for task in tasks
            )
            scores = np.array(list(progress(runs, len(tasks), "cross-validation"))).reshape(len(models), len(splits))
            self._choose(list(models), scores)
            self.best_estimator_ = models[self.best_name_].fit(X, y, sample_weight)
            if codes is not None:
                self.classes_ = self.best_estimator_.classes_
        return self

    def _choose(self, names: list[str], scores: FloatArray) -> None:
        """Fill ``cv_results_``, and choose its best row."""
        mean = scores.mean(axis=1)
        self.cv_results_ = Table(
            estimator=names,
            mean_score=mean,
            std_score=scores.std(axis=1),
            **{f"split{k}_score": scores[:, k] for k in range(scores.shape[1])},
        )
        self.best_index_ = int(mean.argmax())
        self.best_score_ = float(mean[self.best_index_])
        self.best_name_ = names[self.best_index_]

    def _ask(self, method: str, X: Any) -> Any:
        """Result of a method of the chosen model."""
        check_is_fitted(self)
        return getattr(self.best_estimator_, method)(X)

    @property
    def imputation_(self) -> FloatArray:
        """mu of the chosen model."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.imputation_)


class JointImputeRegressorCV(RegressorMixin, _JointImputeCV):
    """The best of several regressors, each with imputed values that are learned for it.

    Parameters
    ----------
    estimators : list or dict of scikit-learn regressors, optional
        The predictors, with names in a dict; by default a ridge regression that selects its penalty, trees of depth 4
        and 8, and a forest of 100 trees.
    algorithm
        As in :class:`JointImputeRegressor`.
    cv : int, splitter or iterable
        Number of folds, stratified by pattern, or any splitter of scikit-learn. The whole search is repeated in each.
    random_state : int, RandomState or None
        Seed of folds, searches and predictors.
    n_jobs : int, optional
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    best_estimator_ : JointImputeRegressor
        That of the chosen predictor, fitted to all rows.
    best_name_, best_index_ : str, int
        Its name, and its row in ``cv_results_``.
    best_score_ : float
        Its mean R2 on held-out rows.
    cv_results_ : Table
        The scores of each predictor.
    imputation_ : array of shape (n_features_in_,)
    n_features_in_ : int
    feature_names_in_ : array of str, if X has column names

    Examples
    --------
    >>> from admiss.datasets import make_synthetic
    >>> from admiss.joint import JointImputeRegressorCV
    >>> data = make_synthetic(n=300, mechanism="censoring", random_state=0)
    >>> model = JointImputeRegressorCV(random_state=0).fit(data.X_train, data.y_train)
    >>> model.best_name_, model.cv_results_.n_rows
    ('linear', 4)
    """

    def _default_predictors(self) -> dict[str, Any]:
        trees = {f"tree of depth {depth}": DecisionTreeRegressor(max_depth=depth) for depth in DEPTHS}
        linear = make_pipeline(StandardScaler(), RidgeCV(RIDGES))
        return {"linear": linear} | trees | {"forest": RandomForestRegressor(TREES)}

    def _joint(self, f: Any, seed: int) -> JointImputeRegressor:
        return JointImputeRegressor(f, self.algorithm, seed)

    @property
    def _score(self) -> str:
        return "r2"

    def _read_target(self, y: Any, s: FloatArray) -> Any:
        return read_regression_target(self, y, len(s)), None

    def predict(self, X: Any) -> FloatArray:
        """Predicted target of each row."""
        return np.asarray(self._ask("predict", X))


def _can_decide(model: Any) -> bool:
    """Whether the chosen model has a decision function."""
    return hasattr(getattr(model, "best_estimator_", None), "decision_function")


class JointImputeClassifierCV(ClassifierMixin, _JointImputeCV):
    """The best of several classifiers, each with imputed values that are learned for it.

    Parameters
    ----------
    estimators : list or dict of scikit-learn classifiers, optional
        The predictors, with ``predict_proba``, and names in a dict; by default logistic regressions with four
        penalties, trees of depth 4 and 8, and a forest of 100 trees.
    algorithm, cv, random_state, n_jobs
        As in :class:`JointImputeRegressorCV`; folds are stratified by pattern and class.
    error : {"log_loss", "auc"}
        Error that the search for imputed values and the choice of the predictor minimise: the log-loss, or, as in the
        paper, 1 - AUC.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    best_score_ : float
        Minus the mean log-loss on held-out rows, or the mean AUC.
    best_estimator_, best_name_, best_index_, cv_results_, imputation_, n_features_in_, feature_names_in_
        As in :class:`JointImputeRegressorCV`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from admiss.datasets import make_synthetic
    >>> from admiss.joint import JointImputeClassifierCV
    >>> data = make_synthetic(n=200, mechanism="censoring", random_state=0)
    >>> predictors = [LogisticRegression(), DecisionTreeClassifier(max_depth=3)]
    >>> model = JointImputeClassifierCV.paper(estimators=predictors, random_state=0)
    >>> model.fit(data.X_train, data.y_train > 0).predict_proba(data.X_test).shape[1]
    2
    """

    _printed = JointImputeClassifier._printed

    def __init__(
        self,
        estimators: Any = None,
        algorithm: str | ImputationSearch = "auto",
        error: str = "log_loss",
        cv: Any = 5,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(estimators, algorithm, cv, random_state, n_jobs)
        self.error = error

    def _candidates(self, weighted: bool) -> dict[str, Any]:
        require_choice(self, "error", ERRORS)
        candidates = super()._candidates(weighted)
        for name, f in candidates.items():
            if not hasattr(f, "predict_proba"):
                raise ValueError(f"{name} has no predict_proba, by which predictors are compared: use another.")
        return candidates

    def _default_predictors(self) -> dict[str, Any]:
        linear = {
            f"linear, C={C:g}": make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=1000))
            for C in INVERSE_PENALTIES
        }
        trees = {f"tree of depth {depth}": DecisionTreeClassifier(max_depth=depth) for depth in DEPTHS}
        return linear | trees | {"forest": RandomForestClassifier(TREES)}

    def _joint(self, f: Any, seed: int) -> JointImputeClassifier:
        return JointImputeClassifier(f, self.algorithm, self.error, seed)

    @property
    def _score(self) -> str:
        return self.error

    def _read_target(self, y: Any, s: FloatArray) -> Any:
        classes, codes = read_classes(self, y, len(s))
        require_two_classes(self, np.unique(codes[s > 0]))
        return classes[codes], codes

    def predict(self, X: Any) -> Any:
        """Class of each row."""
        return self._ask("predict", X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class."""
        return np.asarray(self._ask("predict_proba", X))

    @available_if(_can_decide)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> FloatArray:
        """Decision function of the chosen model, if it has one."""
        return np.asarray(self._ask("decision_function", X))
