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
    from admiss.augmentation.estimators import DeletionAugmentedClassifier as DeletionAugmentedClassifier
    from admiss.augmentation.estimators import DeletionAugmentedRegressor as DeletionAugmentedRegressor
    from admiss.compare.classes import compare_classes as compare_classes
    from admiss.estimator.reliance import reliance as reliance
    from admiss.finite.cv import FiniteClassifierCV as FiniteClassifierCV
    from admiss.finite.cv import FiniteRegressorCV as FiniteRegressorCV
    from admiss.finite.estimators import FiniteClassifier as FiniteClassifier
    from admiss.finite.estimators import FiniteRegressor as FiniteRegressor
    from admiss.intervals.estimators import PatternConformalClassifier as PatternConformalClassifier
    from admiss.intervals.estimators import PatternConformalRegressor as PatternConformalRegressor
    from admiss.joint.cv import JointImputeClassifierCV as JointImputeClassifierCV
    from admiss.joint.cv import JointImputeRegressorCV as JointImputeRegressorCV
    from admiss.joint.estimators import JointImputeClassifier as JointImputeClassifier
    from admiss.joint.estimators import JointImputeRegressor as JointImputeRegressor
    from admiss.laws.expected_features import ExpectedFeatures as ExpectedFeatures
    from admiss.laws.expected_ridge import ExpectedFeaturesClassifier as ExpectedFeaturesClassifier
    from admiss.laws.expected_ridge import ExpectedFeaturesRegressor as ExpectedFeaturesRegressor
    from admiss.linear.cv import AdaptiveClassifierCV as AdaptiveClassifierCV
    from admiss.linear.cv import AdaptiveRegressorCV as AdaptiveRegressorCV
    from admiss.linear.estimators import AdaptiveClassifier as AdaptiveClassifier
    from admiss.linear.estimators import AdaptiveRegressor as AdaptiveRegressor
    from admiss.stack.estimators import AdaptiveStackClassifier as AdaptiveStackClassifier
    from admiss.stack.estimators import AdaptiveStackRegressor as AdaptiveStackRegressor
    from admiss.tables.encoder import TableEncoder as TableEncoder
    from admiss.verification.check import verify as verify
    from admiss.versions import show_versions as show_versions

# Imported on first use: a worker or a command that needs none of them starts at once.
_PUBLIC = {
    "admiss.augmentation.estimators": ("DeletionAugmentedClassifier", "DeletionAugmentedRegressor"),
    "admiss.compare.classes": ("compare_classes",),
    "admiss.estimator.reliance": ("reliance",),
    "admiss.finite.cv": ("FiniteClassifierCV", "FiniteRegressorCV"),
    "admiss.finite.estimators": ("FiniteClassifier", "FiniteRegressor"),
    "admiss.intervals.estimators": ("PatternConformalClassifier", "PatternConformalRegressor"),
    "admiss.joint.cv": ("JointImputeClassifierCV", "JointImputeRegressorCV"),
    "admiss.joint.estimators": ("JointImputeClassifier", "JointImputeRegressor"),
    "admiss.laws.expected_features": ("ExpectedFeatures",),
    "admiss.laws.expected_ridge": ("ExpectedFeaturesClassifier", "ExpectedFeaturesRegressor"),
    "admiss.linear.cv": ("AdaptiveClassifierCV", "AdaptiveRegressorCV"),
    "admiss.linear.estimators": ("AdaptiveClassifier", "AdaptiveRegressor"),
    "admiss.stack.estimators": ("AdaptiveStackClassifier", "AdaptiveStackRegressor"),
    "admiss.tables.encoder": ("TableEncoder",),
    "admiss.verification.check": ("verify",),
    "admiss.versions": ("show_versions",),
}
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names}
__all__ = ["__version__", *_HOMES]
_SUBMODULES = (
    "adaptivity",
    "baselines",
    "bounds",
    "datasets",
    "joint",
    "laws",
    "partition",
    "plots",
    "streaming",
    "study",
    "tables",
    "testing",
)


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])


if not TYPE_CHECKING:  # type checkers would take every unknown name for an attribute

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            globals()[name] = getattr(import_module(_HOMES[name]), name)
            return globals()[name]
        if name in _SUBMODULES:
            return import_module(f"admiss.{name}")
        if name == "AdaptiveStack":
            raise ImportError(
                "AdaptiveStack is now AdaptiveStackRegressor and AdaptiveStackClassifier: import one of these."
            )
        raise AttributeError(f"module 'admiss' has no attribute {name!r}")
