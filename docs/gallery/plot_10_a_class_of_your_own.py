"""
A class of your own
===================

An adaptivity class is a basis of functions of the pattern. This one lets the weights depend on how many values are
missing; everything else (program, penalties, certificate, cross-validation, printing) follows. ``check_adaptivity``
runs the contract of classes, and ``compare_classes`` puts yours beside others on the same folds.
"""

import matplotlib.pyplot as plt
import numpy as np

from admiss import compare_classes
from admiss.adaptivity import Adaptivity
from admiss.datasets import make_synthetic
from admiss.testing import check_adaptivity


class CountAdaptive(Adaptivity):
    """phi(m) = 1, |m|, |m|^2."""

    def basis(self, M):
        missing = M.sum(axis=1)
        return np.column_stack([np.ones(len(M)), missing, missing**2])

    def names(self, feature_names):
        return ["1", "number missing", "number missing squared"]


check_adaptivity(CountAdaptive())

# %%
# On two laws of missing values:

classes = ["static", "affine_intercept", "affine", CountAdaptive()]
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharex=True, sharey=True)
for ax, mechanism in zip(axes, ("mcar", "censoring"), strict=True):
    data = make_synthetic(n=600, mechanism=mechanism, missing_fraction=0.3, random_state=0)
    table = compare_classes(data.X_train, data.y_train, classes, random_state=0)
    ax.barh(table["class"], table["R2"])
    ax.set(title=mechanism, xlabel="cross-validated R2")
axes[0].invert_yaxis()
