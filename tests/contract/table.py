"""Every public estimator with cheap settings, and the checks that it need not or does not pass, with the reasons."""

from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from admiss import (
    AdaptiveClassifier,
    AdaptiveClassifierCV,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    AdaptiveStackClassifier,
    AdaptiveStackRegressor,
    DeletionAugmentedClassifier,
    DeletionAugmentedRegressor,
    ExpectedFeatures,
    ExpectedFeaturesClassifier,
    ExpectedFeaturesRegressor,
    FiniteClassifier,
    FiniteClassifierCV,
    FiniteRegressor,
    FiniteRegressorCV,
    JointImputeClassifier,
    JointImputeRegressor,
    PatternConformalClassifier,
    PatternConformalRegressor,
)
from admiss.adaptivity import FrequentPatterns, Polynomial
from admiss.baselines import ChainedEquations, CompleteFeatures, TunedClassifier, TunedRegressor
from admiss.finite.leaf_features import LEAF_MODELS
from admiss.partition import BoxPartition, Greedy, OptimalTree, PatternGroups, SplitAssignTree
from tests.contract.contract import Case

# Parameters for a grid search, and cheap settings.
LAM, RIDGE, C = {"lam": [0.1, 10.0]}, {"ridge": [0.1, 10.0]}, {"estimator__C": [0.1, 10.0]}
LAMBDAS, ADAPTIVITY = {"n_lambdas": [1, 8]}, {"adaptivity": ["static", "finite"]}
FREQUENT = {"adaptivity": [FrequentPatterns(5), FrequentPatterns(20)]}
RIDGES, RANDOM = {"ridges": [[0.1], [10.0]]}, {"n_random": [0, 8]}
PRIOR, SHRINKAGE, LEAF = {"prior": [0.1, 100.0]}, {"shrinkage": [0.0, 100.0]}, {"leaf_model": LEAF_MODELS}
FOLDS = {"cv": 2, "random_state": 0}
PATHS = {"l1_ratios": [0.5], "n_lambdas": 5, "adaptive_penalties": [1.0], **FOLDS}
CELLS = {"max_depths": [1], "ridges": [0.1, 10.0], **FOLDS}
SMALL = {"max_depth": 2, "min_rows": 1}
SAMPLED = DeletionAugmentedRegressor(AdaptiveRegressor("conditional_mean", lam=0.5), (0.1, 0.5), 2, 0.3, 0)
NUMBERS = ["conditional_mean", ("affine", AdaptiveRegressorCV("affine", **PATHS))]
CLASSES = ["conditional_mean", ("affine", AdaptiveClassifierCV("affine", **PATHS))]
DEFAULT = ["expected_features_censored", "forest", "boosting"]
INNER, SHARE = {"estimator__lam": [0.1, 10.0]}, {"calibration_size": [0.2, 0.6]}
QUANTILES = AdaptiveRegressor(lam=0.5, loss="quantile")
TUNED = {
    "linear": [{"l1_ratio": [0.5], "lam": [0.1, 1.0]}, {"lam": [10.0]}],
    "tree": [{"max_depth": [2, 4]}, {"max_depth": [1]}],
    "forest": [{"n_estimators": [2, 5], "max_depth": [2, None]}, {"n_estimators": [3]}],
    "xgboost": [{"n_estimators": [2, 5], "max_depth": [2]}, {"n_estimators": [1]}],
    "hist_boosting": [{"max_iter": [2, 5], "min_samples_leaf": [2]}, {"max_iter": [1]}],
}

# Reasons why a check is not promised.
NOT_LINEAR = {"coefficients_give_the_prediction": "not linear in x"}
MIXED = {"units_of_features": "a finite candidate has its own scale"}
ORDER = {"permuted_columns": "the search moves features in turn, and may end in another local optimum"}
OWN_FOLDS = {"weights_are_copies": "the closed form makes its own folds: copies of a row fall into different ones"}
DRAWN = {"permuted_columns": "random directions are drawn feature by feature"}
LEAVE_ONE_OUT = {"weights_are_copies": "leave-one-out leaves out a row with its whole weight, but a single copy"}
PROPAGATION = {"permuted_columns": "expectation propagation visits features in turn, to 1e-3 standard deviations"}
SPLIT = {"missing_only_in_predict": "set to the mean of the rows to which the estimator is fitted, not of all rows"}
DELETED = {"missing_only_in_predict": "every feature has been missing in some copies"}
COPIES = DELETED | {"permuted_columns": "deletions are drawn feature by feature"}
NO_RIDGE = {
    "units_of_features": "without a ridge the scale matters in rounding only",
    "check_sample_weight_equivalence_on_dense_data": "the absolute loss without a ridge may have several optima",
}
STACK = {
    "weights_are_copies": "weights are divided by their mean: penalties and priors weigh against rows, not copies",
    "nothing_observed": "refused: X has no observed value",
    "check_sample_weight_equivalence_on_dense_data": "as weights_are_copies",
}
TIES = "trees and forests draw features at random and break ties by their order"
TREES = {
    "columns_all_missing": TIES,
    "permuted_columns": TIES,
    "weights_are_copies": "rows, not weights, are drawn by forests, counted by leaves and binned by boosting",
    "never_observed_is_reported": "no feature is left out of trees",
}
IMPUTER = {
    "weights_are_copies": "imputers of scikit-learn take no weights",
    "never_observed_is_reported": "left to the imputer",
    "missing_only_in_predict": "left to the imputer, which does not warn",
}
DRAWS = {
    "columns_all_missing": "the draws for a row depend on all columns",
    "permuted_columns": "the draws for a row depend on the order of the columns",
    "missing_only_in_predict": "drawn from the observed values, not set to their mean",
}
WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
BOOTSTRAP = {WEIGHTS: "the bootstrap draws rows, whatever their weights"}
SKETCH = {WEIGHTS: "the candidates for splits of XGBoost depend on the number of rows"}
SELECTS = {"never_observed_is_reported": "every column with a missing value is left out by design"}

# Defects: checks that should pass.
NOTHING: dict[str, str] = {}


def tuned(estimator, kind, imputer=None, not_promised=NOTHING, slow=False):
    model = estimator(kind, imputer, TUNED[kind][0], **FOLDS)
    return Case(model, {"grid": TUNED[kind]}, not_promised | (IMPUTER if imputer else TREES), slow=slow)


CASES = [
    Case(AdaptiveRegressor("static", lam=0.5), LAM),
    Case(AdaptiveRegressor("affine_intercept", lam=0.5), LAM),
    Case(AdaptiveRegressor("affine", lam=0.5), LAM),
    Case(AdaptiveRegressor(Polynomial(2), lam=0.5), {"adaptivity__degree": [0, 2]}),
    Case(AdaptiveRegressor("fully_adaptive", lam=0.5), LAM),
    Case(AdaptiveRegressor("conditional_mean", lam=0.5), LAM),
    Case(AdaptiveRegressor("shared_patterns", lam=0.5), LAM),
    Case(AdaptiveRegressor("frequent_patterns", lam=0.5), FREQUENT, slow=True),
    Case(AdaptiveRegressor("missingness_avoiding", lam=0.5, l1_ratio=1.0), LAM, slow=True),
    Case(AdaptiveRegressor("binned_affine", lam=0.5, l1_ratio=0.5), LAM, NOT_LINEAR),
    Case(AdaptiveRegressor("low_rank_affine", lam=0.5), LAM, slow=True),
    Case(AdaptiveRegressor("fused_patterns", lam=0.5), LAM, slow=True),
    Case(AdaptiveClassifier("static", lam=0.5), LAM),
    Case(AdaptiveClassifier("affine_intercept", lam=0.5), LAM),
    Case(AdaptiveClassifier("affine", lam=0.5), LAM),
    Case(AdaptiveClassifier(Polynomial(2), lam=0.5), LAM),
    Case(AdaptiveClassifier("fully_adaptive", lam=0.5), LAM),
    Case(AdaptiveClassifier("conditional_mean", lam=0.5), LAM),
    Case(AdaptiveClassifier("shared_patterns", lam=0.5), LAM, slow=True),
    Case(AdaptiveClassifier("binned_affine", lam=0.5, l1_ratio=0.5), LAM, NOT_LINEAR, slow=True),
    Case(AdaptiveRegressorCV("affine_intercept", **PATHS), LAMBDAS),
    Case(AdaptiveRegressorCV(["affine", FiniteRegressorCV(**CELLS)], **PATHS), ADAPTIVITY, MIXED, slow=True),
    Case(AdaptiveClassifierCV("affine_intercept", **PATHS), LAMBDAS),
    Case(AdaptiveClassifierCV(["affine", FiniteClassifierCV(**CELLS)], **PATHS), ADAPTIVITY, MIXED, slow=True),
    Case(FiniteRegressor(Greedy(**SMALL), scale=True), RIDGE),
    Case(FiniteRegressor(OptimalTree(**SMALL), leaf_model="static", scale=True), RIDGE),
    Case(FiniteRegressor(BoxPartition(**SMALL), scale=True, truncate=False), RIDGE),
    Case(FiniteRegressor(PatternGroups(2, min_rows=1, random_state=0), 1.0, ridge_scale="sample"), RIDGE),
    Case(FiniteRegressor(SplitAssignTree(1, min_rows=1), 0, loss="absolute"), LEAF, NO_RIDGE, slow=True),
    Case(FiniteClassifier(Greedy(**SMALL), scale=True), RIDGE),
    Case(FiniteClassifier(OptimalTree(**SMALL), leaf_model="static", scale=True), RIDGE),
    Case(FiniteClassifier(BoxPartition(**SMALL), scale=True), RIDGE),
    Case(FiniteRegressorCV(**CELLS), RIDGES),
    Case(FiniteClassifierCV(**CELLS), RIDGES),
    Case(JointImputeRegressor(Ridge(), "paper", random_state=0), {"estimator__alpha": [0.1, 100.0]}, ORDER),
    Case(JointImputeRegressor(Ridge(), random_state=0), {"algorithm": ["auto", "paper"]}, OWN_FOLDS),
    Case(
        JointImputeRegressor(make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=3)), "paper", 0),
        {"estimator__decisiontreeregressor__max_depth": [1, 3]},
        {"permuted_columns": TIES, "permuted_columns_with_one_missable": TIES},
    ),
    Case(JointImputeClassifier(LogisticRegression(tol=1e-8), "paper", random_state=0), C, ORDER),
    Case(JointImputeClassifier(LogisticRegression(C=0.5), random_state=0), C, OWN_FOLDS),
    Case(JointImputeClassifier(LogisticRegression(tol=1e-8), "paper", "auc", 0), C, ORDER, slow=True),
    Case(ExpectedFeatures(0), PRIOR),
    Case(ExpectedFeatures(0, law="censored"), PRIOR, PROPAGATION),
    Case(ExpectedFeatures(8, random_state=0), RANDOM, DRAWN),
    Case(ExpectedFeaturesRegressor(0, **FOLDS), RANDOM),
    Case(ExpectedFeaturesRegressor(8, random_state=0), RANDOM, DRAWN | LEAVE_ONE_OUT),
    Case(ExpectedFeaturesClassifier(0, **FOLDS), RANDOM),
    Case(ExpectedFeaturesClassifier(8, random_state=0), RANDOM, DRAWN | LEAVE_ONE_OUT),
    Case(AdaptiveStackRegressor(NUMBERS, **FOLDS), SHRINKAGE, STACK),
    Case(AdaptiveStackRegressor(DEFAULT, **FOLDS), SHRINKAGE, STACK | DRAWN, slow=True),
    Case(AdaptiveStackClassifier(CLASSES, **FOLDS), SHRINKAGE, STACK),
    Case(AdaptiveStackClassifier(DEFAULT, **FOLDS), SHRINKAGE, STACK | DRAWN, slow=True),
    Case(PatternConformalRegressor(AdaptiveRegressor(lam=0.5), random_state=0), INNER, SPLIT),
    Case(PatternConformalRegressor(QUANTILES, 0.8, "count", "quantile", random_state=0), SHARE, SPLIT, slow=True),
    Case(PatternConformalClassifier(AdaptiveClassifier(lam=0.5), [0.9, 0.8], random_state=0), INNER, SPLIT),
    Case(DeletionAugmentedRegressor(AdaptiveRegressor(lam=0.5), random_state=0), INNER, DELETED),
    Case(SAMPLED, INNER, COPIES, slow=True),
    Case(DeletionAugmentedClassifier(AdaptiveClassifier(lam=0.5), copies=2, random_state=0), INNER, COPIES),
    tuned(TunedRegressor, "linear", SimpleImputer(keep_empty_features=True)),
    tuned(TunedRegressor, "tree"),
    tuned(TunedRegressor, "forest", not_promised=BOOTSTRAP, slow=True),
    tuned(TunedRegressor, "xgboost"),
    tuned(TunedRegressor, "hist_boosting", slow=True),
    tuned(TunedClassifier, "linear", SimpleImputer(keep_empty_features=True)),
    tuned(TunedClassifier, "tree"),
    tuned(TunedClassifier, "forest", not_promised=BOOTSTRAP, slow=True),
    tuned(TunedClassifier, "xgboost", not_promised=SKETCH, slow=True),
    tuned(TunedClassifier, "hist_boosting", slow=True),
    Case(ChainedEquations(random_state=0), {"n_sweeps": [1, 5]}, DRAWS),
    Case(CompleteFeatures(), {}, SELECTS),
]
