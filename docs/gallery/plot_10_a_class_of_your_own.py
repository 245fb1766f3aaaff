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
fig, axes = plt.subplots(2, 1, figsize=(5.6, 5), layout="constrained", sharex=True, sharey=True)
titles = {"mcar": "missing completely at random", "censoring": "large values are missing"}
for ax, (mechanism, title) in zip(axes, titles.items(), strict=True):
    data = make_synthetic(n=600, mechanism=mechanism, missing_fraction=0.3, random_state=0)
    table = compare_classes(data.X_train, data.y_train, classes, random_state=0)
    bars = ax.barh(table["class"], table["R2"], color=["C0", "C0", "C0", "C1"])
    ax.bar_label(bars, [f"{R2:.2f}" for R2 in table["R2"]], padding=3)
    ax.set(title=title, xlim=(0, 0.72))
    ax.grid(axis="y", visible=False)
axes[1].set_xlabel("cross-validated R2")
axes[1].invert_yaxis()
