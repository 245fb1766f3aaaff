"""The table of estimators: every public one with cheap settings, and why it need not have some of the properties.

Slow entries vary the parameters: losses, penalties, solvers, centring and scaling, class weights, references.
"""

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
    JointImputeClassifierCV,
    JointImputeRegressor,
    JointImputeRegressorCV,
    PatternConformalClassifier,
    PatternConformalRegressor,
)
from admiss.adaptivity import (
    BinnedAffine,
    ConditionalMean,
    FrequentPatterns,
    FusedPatterns,
    LowRankAffine,
    MissingnessAvoiding,
    Polynomial,
    SharedPatterns,
)
from admiss.baselines import ChainedEquations, CompleteFeatures, TunedClassifier, TunedRegressor, baseline
from admiss.finite.base import LEAF_MODELS
from admiss.partition import BoxPartition, Greedy, OptimalTree, PatternGroups, SplitAssignTree
from formulations.losses import Huber, Tweedie
from tests.properties.entry import Entry

# Parameters for a grid search, and cheap settings.
LAM, RIDGE, C = {"lam": [0.1, 10.0]}, {"ridge": [0.1, 10.0]}, {"estimator__C": [0.1, 10.0]}
LAMBDAS, ADAPTIVITY = {"n_lambdas": [1, 8]}, {"adaptivity": ["static", "finite"]}
STRENGTH = {"adaptivity__strength": [0.0, 100.0]}
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
MIXED = {"origin_and_units_of_features": "a finite candidate has its own scale"}
ORDER = {"permuted_columns": "the search moves features in turn, and may end in another local optimum"}
FOLDS_OF_ITS_OWN = "the closed form makes its own folds: other rows, or copies of a row, fall into different ones"
OWN_FOLDS = {"weights_are_copies": FOLDS_OF_ITS_OWN, "permuted_rows": FOLDS_OF_ITS_OWN}
L1 = {"units_of_the_target": "an absolute and a squared penalty have other units"}
DEVIANCE = {"units_of_the_target": "a penalty and the deviance have other units"}
STRUCTURE = {"units_of_the_target": "the structure and the squared loss have other units"}
IMPURITY = {"units_of_the_target": "scikit-learn splits no node whose impurity is 2e-16, whatever its units"}
BOOSTED = {"units_of_the_target": "the penalties of XGBoost are in the units of the target"}
DRAWN = {"permuted_columns": "random directions are drawn feature by feature"}
LEAVE_ONE_OUT = {"weights_are_copies": "leave-one-out leaves out a row with its whole weight, but a single copy"}
IN_TURN = "expectation propagation visits features in turn, to 1e-3 standard deviations"
PROPAGATION = {"permuted_columns": IN_TURN}
SPLIT = {
    "missing_only_in_predict": "set to the mean of the rows to which the estimator is fitted, not of all rows",
    "permuted_rows": "rows are drawn for calibration by their position",
}
DELETED = {"missing_only_in_predict": "every feature has been missing in some copies"}
COPIES = DELETED | {"permuted_columns": "deletions are drawn feature by feature"}
NO_RIDGE = {
    "origin_and_units_of_features": "without a ridge the scale matters in rounding only",
    "check_sample_weight_equivalence_on_dense_data": "the absolute loss without a ridge may have several optima",
}
STACK = {
    "weights_are_copies": "weights are divided by their mean: penalties and priors weigh against rows, not copies",
    "nothing_observed": "refused: X has no observed value",
    "check_sample_weight_equivalence_on_dense_data": "as weights_are_copies",
    "permuted_rows": "candidates make folds of their own",
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
    "permuted_rows": "rows are visited in turn",
    "columns_all_missing": "the draws for a row depend on all columns",
    "permuted_columns": "the draws for a row depend on the order of the columns",
    "missing_only_in_predict": "drawn from the observed values, not set to their mean",
}
WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
BOOTSTRAP = {
    WEIGHTS: "the bootstrap draws rows, whatever their weights",
    "permuted_rows": "the bootstrap draws rows by their position",
}
SKETCH = {WEIGHTS: "the candidates for splits of XGBoost depend on the number of rows"}
SELECTS = {"never_observed_is_reported": "every column with a missing value is left out by design"}

NOTHING: dict[str, str] = {}


def tuned(estimator, kind, imputer=None, not_promised=NOTHING, slow=False):
    model = estimator(kind, imputer, TUNED[kind][0], **FOLDS)
    return Entry(model, {"grid": TUNED[kind]}, not_promised | (IMPUTER if imputer else TREES), slow=slow)


def slow(model, grid, not_promised=NOTHING):
    return Entry(model, grid, not_promised, slow=True)


PARTIAL_FIT = ("fit_score_takes_y", "n_features_in_after_fitting", "estimators_partial_fit_n_features")
OTHER_SOLVER = {
    f"check_{name}": "partial_fit solves the program from sums, with its own solver" for name in PARTIAL_FIT
}
CENSORED = PROPAGATION | NOT_LINEAR | {"origin_and_units_of_features": IN_TURN}
VARIANTS = [
    slow(AdaptiveRegressor("affine", 0.5, loss="gamma"), LAM),
    slow(AdaptiveRegressor("fully_adaptive", 0.5, l1_ratio=0.5, loss=Tweedie(1.3)), LAM, DEVIANCE),
    slow(AdaptiveRegressorCV("affine_intercept", loss="quantile", **PATHS), LAMBDAS, L1),
    slow(AdaptiveRegressor("affine", 0.5, penalty_weights="authors"), LAM),
    slow(AdaptiveRegressor("affine", 0.5, solver="CLARABEL"), LAM, OTHER_SOLVER),
    slow(AdaptiveRegressor("affine", 0.5, l1_ratio=1.0, center=False, adaptive_penalty=0.25), LAM, L1),
    slow(AdaptiveRegressor("affine", 0.5, fit_intercept=False), LAM),
    slow(AdaptiveRegressor("affine_intercept", 0.5, loss=Huber(0.1)), LAM, L1),
    slow(AdaptiveRegressor("affine_intercept", 0.5, loss="absolute"), LAM, L1),
    slow(AdaptiveRegressor(ConditionalMean("censored"), 0.5), LAM, CENSORED),
    slow(AdaptiveClassifier("affine", 0.5, l1_ratio=0.5, class_weight="balanced"), LAM),
    slow(AdaptiveClassifierCV(["static", "affine"], class_weight="balanced", **PATHS), ADAPTIVITY),
    slow(FiniteRegressor(Greedy(**SMALL), loss="huber"), RIDGE, L1),
    slow(FiniteRegressor(OptimalTree(**SMALL), center=False, leaf_model="static"), RIDGE),
    slow(FiniteRegressor(OptimalTree(**SMALL, method="both"), 0.01, ridge_scale="sample"), RIDGE),
    slow(FiniteClassifier(OptimalTree(**SMALL), class_weight="balanced"), RIDGE),
    slow(FiniteRegressorCV(OptimalTree(min_rows=1), **{**CELLS, "leaf_models": ["static"]}), RIDGES),
    slow(JointImputeRegressor(random_state=0), {"algorithm": ["auto", "paper"]}, OWN_FOLDS),
    slow(ExpectedFeaturesRegressor(0, "gaussian", expected_relu=True, **FOLDS), RANDOM),
    slow(baseline("mice", "linear", grid=TUNED["linear"][0], **FOLDS), {"grid": TUNED["linear"]}, IMPUTER | L1 | DRAWS),
]

TABLE = [
    Entry(AdaptiveRegressor("static", lam=0.5), LAM),
    Entry(AdaptiveRegressor("affine_intercept", lam=0.5), LAM),
    Entry(AdaptiveRegressor("affine", lam=0.5), LAM),
    Entry(AdaptiveRegressor(Polynomial(2), lam=0.5), {"adaptivity__degree": [0, 2]}),
    Entry(AdaptiveRegressor("fully_adaptive", lam=0.5), LAM),
    Entry(AdaptiveRegressor("conditional_mean", lam=0.5), LAM),
    Entry(AdaptiveRegressor("shared_patterns", lam=0.5), LAM, slow=True),
    Entry(AdaptiveRegressor(FrequentPatterns(), lam=0.5), FREQUENT, slow=True),
    Entry(AdaptiveRegressor(MissingnessAvoiding(), lam=0.5, l1_ratio=1.0), LAM, L1, slow=True),
    Entry(AdaptiveRegressor("binned_affine", lam=0.5, l1_ratio=0.5), LAM, NOT_LINEAR | L1),
    Entry(AdaptiveRegressor(LowRankAffine(), lam=0.5), STRENGTH, STRUCTURE, slow=True, accuracy=1e-3),
    Entry(AdaptiveRegressor(FusedPatterns(), lam=0.5), STRENGTH, STRUCTURE, slow=True, accuracy=1e-3),
    Entry(AdaptiveRegressor("affine_intercept", lam=0.5, loss="poisson"), LAM, DEVIANCE),
    Entry(AdaptiveClassifier("static", lam=0.5), LAM),
    Entry(AdaptiveClassifier("affine_intercept", lam=0.5), LAM),
    Entry(AdaptiveClassifier("affine", lam=0.5), LAM),
    Entry(AdaptiveClassifier(Polynomial(2), lam=0.5), LAM, slow=True),
    Entry(AdaptiveClassifier("fully_adaptive", lam=0.5), LAM, slow=True),
    Entry(AdaptiveClassifier("conditional_mean", lam=0.5), LAM),
    Entry(AdaptiveClassifier(SharedPatterns(), lam=0.5), LAM, slow=True),
    Entry(AdaptiveClassifier(BinnedAffine(), lam=0.5, l1_ratio=0.5), LAM, NOT_LINEAR, slow=True),
    Entry(AdaptiveRegressorCV("affine_intercept", **PATHS), LAMBDAS, L1),
    Entry(AdaptiveRegressorCV("affine_intercept", loss="poisson", **PATHS), LAMBDAS, DEVIANCE),
    Entry(AdaptiveRegressorCV(["affine", FiniteRegressorCV(**CELLS)], **PATHS), ADAPTIVITY, MIXED | L1, slow=True),
    Entry(AdaptiveClassifierCV("affine_intercept", **PATHS), LAMBDAS),
    Entry(AdaptiveClassifierCV(["affine", FiniteClassifierCV(**CELLS)], **PATHS), ADAPTIVITY, MIXED, slow=True),
    Entry(FiniteRegressor(Greedy(**SMALL), scale=True), RIDGE),
    Entry(FiniteRegressor(OptimalTree(**SMALL), leaf_model="static", scale=True), RIDGE),
    Entry(FiniteRegressor(BoxPartition(**SMALL), scale=True, truncate=False), RIDGE),
    Entry(FiniteRegressor(PatternGroups(2, min_rows=1, random_state=0), 1.0, ridge_scale="sample"), RIDGE),
    Entry(FiniteRegressor(SplitAssignTree(1, min_rows=1), 0, loss="absolute"), LEAF, NO_RIDGE, slow=True),
    Entry(FiniteClassifier(Greedy(**SMALL), scale=True), RIDGE),
    Entry(FiniteClassifier(OptimalTree(**SMALL), leaf_model="static", scale=True), RIDGE),
    Entry(FiniteClassifier(BoxPartition(**SMALL), scale=True), RIDGE, slow=True),
    Entry(FiniteRegressorCV(**CELLS), RIDGES),
    Entry(FiniteClassifierCV(**CELLS), RIDGES),
    Entry(JointImputeRegressor(Ridge(), "paper", random_state=0), {"estimator__alpha": [0.1, 100.0]}, ORDER),
    Entry(JointImputeRegressor(Ridge(), random_state=0), {"algorithm": ["auto", "paper"]}, OWN_FOLDS),
    Entry(
        JointImputeRegressor(make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=3)), "paper", 0),
        {"estimator__decisiontreeregressor__max_depth": [1, 3]},
        {"permuted_columns": TIES, "permuted_columns_with_one_missable": TIES} | IMPURITY,
        slow=True,
    ),
    Entry(JointImputeClassifier(LogisticRegression(tol=1e-8), "paper", random_state=0), C, ORDER),
    Entry(JointImputeRegressorCV([Ridge(), Ridge(100.0)], "paper", **FOLDS), {"algorithm": ["auto", "paper"]}, ORDER),
    Entry(
        JointImputeClassifierCV([LogisticRegression(tol=1e-8)], "paper", **FOLDS), {"error": ["log_loss", "auc"]}, ORDER
    ),
    Entry(JointImputeClassifier(LogisticRegression(C=0.5), random_state=0), C, OWN_FOLDS, slow=True),
    Entry(JointImputeClassifier(LogisticRegression(tol=1e-8), "paper", "auc", 0), C, ORDER, slow=True),
    Entry(ExpectedFeatures(0), PRIOR),
    Entry(ExpectedFeatures(0, law="censored"), PRIOR, PROPAGATION),
    Entry(ExpectedFeatures(8, random_state=0), RANDOM, DRAWN),
    Entry(ExpectedFeaturesRegressor(0, **FOLDS), RANDOM),
    Entry(ExpectedFeaturesRegressor(8, random_state=0), RANDOM, DRAWN | LEAVE_ONE_OUT),
    Entry(ExpectedFeaturesClassifier(0, **FOLDS), RANDOM),
    Entry(ExpectedFeaturesClassifier(8, random_state=0), RANDOM, DRAWN | LEAVE_ONE_OUT),
    Entry(AdaptiveStackRegressor(NUMBERS, **FOLDS), SHRINKAGE, STACK | L1),
    Entry(AdaptiveStackRegressor(DEFAULT, **FOLDS), SHRINKAGE, STACK | DRAWN | IMPURITY, slow=True),
    Entry(AdaptiveStackClassifier(CLASSES, **FOLDS), SHRINKAGE, STACK),
    Entry(AdaptiveStackClassifier(DEFAULT, **FOLDS), SHRINKAGE, STACK | DRAWN, slow=True),
    Entry(PatternConformalRegressor(AdaptiveRegressor(lam=0.5), random_state=0), INNER, SPLIT),
    Entry(PatternConformalRegressor(QUANTILES, 0.8, "count", "quantile", random_state=0), SHARE, SPLIT | L1, slow=True),
    Entry(PatternConformalClassifier(AdaptiveClassifier(lam=0.5), [0.9, 0.8], random_state=0), INNER, SPLIT),
    Entry(DeletionAugmentedRegressor(AdaptiveRegressor(lam=0.5), random_state=0), INNER, DELETED),
    Entry(SAMPLED, INNER, COPIES, slow=True),
    Entry(DeletionAugmentedClassifier(AdaptiveClassifier(lam=0.5), copies=2, random_state=0), INNER, COPIES),
    tuned(TunedRegressor, "linear", SimpleImputer(keep_empty_features=True), L1),
    tuned(TunedRegressor, "tree", not_promised=IMPURITY),
    tuned(TunedRegressor, "forest", not_promised=BOOTSTRAP | IMPURITY, slow=True),
    tuned(TunedRegressor, "xgboost", not_promised=BOOSTED, slow=True),
    tuned(TunedRegressor, "hist_boosting", slow=True),
    tuned(TunedClassifier, "linear", SimpleImputer(keep_empty_features=True)),
    tuned(TunedClassifier, "tree"),
    tuned(TunedClassifier, "forest", not_promised=BOOTSTRAP, slow=True),
    tuned(TunedClassifier, "xgboost", not_promised=SKETCH, slow=True),
    tuned(TunedClassifier, "hist_boosting", slow=True),
    *VARIANTS,
    Entry(ChainedEquations(random_state=0), {"n_sweeps": [1, 5]}, DRAWS),
    Entry(CompleteFeatures(), {}, SELECTS),
]

# Estimators with their defaults, whose scores are compared with those of imputation and a linear model. Left out: fully
# adaptive and polynomial weights, which need many rows per pattern; joint imputation, which fits whatever predictor it
# is given; the tuned baselines of the paper, which want an imputer first.
SEED = {"random_state": 0}
FIXED_PENALTY = {
    "regression": {
        "static": AdaptiveRegressor("static"),
        "affine_intercept": AdaptiveRegressor(),
        "affine": AdaptiveRegressor("affine"),
        "finite": FiniteRegressor(),
    },
    "classification": {
        "static": AdaptiveClassifier("static"),
        "affine_intercept": AdaptiveClassifier(),
        "affine": AdaptiveClassifier("affine"),
        "finite": FiniteClassifier(),
    },
}
SEARCHED_PENALTY = {
    "regression": {
        "adaptive CV": AdaptiveRegressorCV(**SEED),
        "finite CV": FiniteRegressorCV(**SEED),
        "expected features": ExpectedFeaturesRegressor(**SEED),
        "stack": AdaptiveStackRegressor(**SEED),
    },
    "classification": {
        "adaptive CV": AdaptiveClassifierCV(**SEED),
        "finite CV": FiniteClassifierCV(**SEED),
        "expected features": ExpectedFeaturesClassifier(**SEED),
        "stack": AdaptiveStackClassifier(**SEED),
    },
}
