"""Baselines: imputers and other comparison methods, each with predictors tuned in the same way."""

from admiss.baselines.chained_equations import ChainedEquations, complete_transductive
from admiss.baselines.complete_features import CompleteFeatures
from admiss.baselines.grids import GRIDS
from admiss.baselines.methods import BASELINES, baseline, baseline_features
from admiss.baselines.tuned import TunedClassifier, TunedRegressor

__all__ = [
    "BASELINES",
    "GRIDS",
    "ChainedEquations",
    "CompleteFeatures",
    "TunedClassifier",
    "TunedRegressor",
    "baseline",
    "baseline_features",
    "complete_transductive",
]
