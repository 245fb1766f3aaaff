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

from admiss.linear import AdaptiveClassifier, AdaptiveRegressor
from admiss.versions import show_versions

__version__ = "0.1.0"

__all__ = ["AdaptiveClassifier", "AdaptiveRegressor", "show_versions"]
