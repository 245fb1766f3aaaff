"""
A real data set, from load to report
====================================

Diabetes among Pima women (``MASS::Pima.tr2`` in R): of 300 women, the skin fold of 98 was not measured. Load the
table, choose a class by cross-validation, read the model, and see what it says where something is missing.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_predict

from admiss import AdaptiveClassifierCV
from admiss.datasets import load_dataset

pima = load_dataset("MASS-Pima.tr2")
print(pima)
X = pima.to_frame("pandas")[pima.feature_names]

# %%
# Static weights, an affine intercept and affine weights are compared on the same folds.

model = AdaptiveClassifierCV(["static", "affine_intercept", "affine"], random_state=0).fit(X, pima.y)
print("chosen:", model.best_params_["adaptivity"])
print(model.to_text())

# %%
# Probabilities of rows held out, for those with and without the skin fold: what is missing costs little here, as body
# mass stands in for it.

probability = cross_val_predict(model, X, pima.y, method="predict_proba")[:, 1]
missing = X["skin"].isna().to_numpy()
fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained", sharex=True)
for ax, rows, title in zip(axes, (~missing, missing), ("skin fold measured", "skin fold missing"), strict=True):
    for outcome, label in ((0, "healthy"), (1, "diabetes")):
        values = probability[rows & (pima.y == outcome)]
        ax.hist(values, bins=np.linspace(0, 1, 13), alpha=0.6, label=label)
    ax.set(title=title, xlabel="held-out probability of diabetes")
    ax.legend()
axes[0].set_ylabel("women")
