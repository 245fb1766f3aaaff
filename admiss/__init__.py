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
from admiss.compare.classes import compare_classes
from admiss.finite.cv import FiniteClassifierCV, FiniteRegressorCV
from admiss.finite.estimators import FiniteClassifier, FiniteRegressor
from admiss.joint.estimators import JointImputeClassifier, JointImputeRegressor
from admiss.laws.expected_features import ExpectedFeatures
from admiss.laws.expected_ridge import ExpectedFeaturesClassifier, ExpectedFeaturesRegressor
from admiss.linear.cv import AdaptiveClassifierCV, AdaptiveRegressorCV
from admiss.linear.estimators import AdaptiveClassifier, AdaptiveRegressor
from admiss.stack.estimators import AdaptiveStack
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
