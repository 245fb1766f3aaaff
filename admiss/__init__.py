"""Prediction with missing data by adaptive optimization.

Adaptive linear regression, pattern partitions, joint impute-then-regress and generalization bounds, after Bertsimas,
Delarue and Pauphilet, *Adaptive Optimization for Prediction with Missing Data*.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import formulations

if getattr(formulations, "DISTRIBUTION", None) != "admiss":
    raise ImportError(
        "Another distribution has overwritten the package 'formulations' that admiss installs: run "
        "'pip uninstall formulations', then 'pip install --force-reinstall --no-deps admiss'."
    )

from admiss._version import __version__

if TYPE_CHECKING:
    from admiss.compare.classes import compare_classes
    from admiss.finite.cv import FiniteClassifierCV, FiniteRegressorCV
    from admiss.finite.estimators import FiniteClassifier, FiniteRegressor
    from admiss.joint.estimators import JointImputeClassifier, JointImputeRegressor
    from admiss.laws.expected_features import ExpectedFeatures
    from admiss.laws.expected_ridge import ExpectedFeaturesClassifier, ExpectedFeaturesRegressor
    from admiss.linear.cv import AdaptiveClassifierCV, AdaptiveRegressorCV
    from admiss.linear.estimators import AdaptiveClassifier, AdaptiveRegressor
    from admiss.stack.estimators import AdaptiveStackClassifier, AdaptiveStackRegressor
    from admiss.versions import show_versions

__all__ = [
    "AdaptiveClassifier",
    "AdaptiveClassifierCV",
    "AdaptiveRegressor",
    "AdaptiveRegressorCV",
    "AdaptiveStackClassifier",
    "AdaptiveStackRegressor",
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

# Imported on first use: a worker or a command that needs none of them starts at once.
_HOMES = {
    "AdaptiveClassifier": "admiss.linear.estimators",
    "AdaptiveClassifierCV": "admiss.linear.cv",
    "AdaptiveRegressor": "admiss.linear.estimators",
    "AdaptiveRegressorCV": "admiss.linear.cv",
    "AdaptiveStackClassifier": "admiss.stack.estimators",
    "AdaptiveStackRegressor": "admiss.stack.estimators",
    "ExpectedFeatures": "admiss.laws.expected_features",
    "ExpectedFeaturesClassifier": "admiss.laws.expected_ridge",
    "ExpectedFeaturesRegressor": "admiss.laws.expected_ridge",
    "FiniteClassifier": "admiss.finite.estimators",
    "FiniteClassifierCV": "admiss.finite.cv",
    "FiniteRegressor": "admiss.finite.estimators",
    "FiniteRegressorCV": "admiss.finite.cv",
    "JointImputeClassifier": "admiss.joint.estimators",
    "JointImputeRegressor": "admiss.joint.estimators",
    "compare_classes": "admiss.compare.classes",
    "show_versions": "admiss.versions",
}

_SUBMODULES = (
    "adaptivity",
    "baselines",
    "bounds",
    "datasets",
    "joint",
    "laws",
    "partition",
    "plots",
    "study",
    "testing",
)


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])


if not TYPE_CHECKING:  # type checkers would take every unknown name for an attribute

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        if name in _SUBMODULES:
            return import_module(f"admiss.{name}")
        if name == "AdaptiveStack":
            raise ImportError(
                "AdaptiveStack is now AdaptiveStackRegressor and AdaptiveStackClassifier: import one of these."
            )
        raise AttributeError(f"module 'admiss' has no attribute {name!r}")
