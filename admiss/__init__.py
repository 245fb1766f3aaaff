"""Prediction with missing data by adaptive optimization.

Adaptive linear regression, pattern partitions, joint impute-then-regress and generalization bounds, after Bertsimas,
Delarue and Pauphilet, *Adaptive Optimization for Prediction with Missing Data*.
"""

import formulations

if getattr(formulations, "DISTRIBUTION", None) != "admiss":
    raise ImportError(
        "Another distribution has overwritten the package 'formulations' that admiss installs: run "
        "'pip uninstall formulations', then 'pip install --force-reinstall --no-deps admiss'."
    )

from admiss._version import __version__
from admiss.compare_classes import compare_classes
from admiss.expected_features import ExpectedFeatures
from admiss.expected_ridge import ExpectedFeaturesClassifier, ExpectedFeaturesRegressor
from admiss.joint.estimators import JointImputeClassifier, JointImputeRegressor
from admiss.linear import AdaptiveClassifier, AdaptiveRegressor
from admiss.linear_cv import AdaptiveClassifierCV, AdaptiveRegressorCV
from admiss.partition.finite import FiniteClassifier, FiniteRegressor
from admiss.partition.finite_cv import FiniteClassifierCV, FiniteRegressorCV
from admiss.stack import AdaptiveStack
from admiss.versions import show_versions

__all__ = [
    "AdaptiveClassifier",
    "AdaptiveClassifierCV",
    "AdaptiveRegressor",
    "AdaptiveRegressorCV",
    "AdaptiveStack",
    "ExpectedFeatures",
    "ExpectedFeaturesClassifier",
    "ExpectedFeaturesRegressor",
    "FiniteClassifier",
    "FiniteClassifierCV",
    "FiniteRegressor",
    "FiniteRegressorCV",
    "JointImputeClassifier",
    "JointImputeRegressor",
    "__version__",
    "compare_classes",
    "show_versions",
]
