"""
A real data set, from load to report
====================================

Diabetes among Pima women (``MASS::Pima.tr2`` in R): of 300 women, the skin fold of 98 was not measured. Load the
table, choose a class by cross-validation, read the model, and see what it says where something is missing.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from admiss import AdaptiveClassifierCV
from admiss.compare.page import write_page
from admiss.compare.partitions import compare_partitions
from admiss.compare.setting import Setting
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
# The last lines say what a missing value stands for, b / w: far outside of all values where the weight w is nearly 0,
# as that of the skin fold. Read them beside the weights. Probabilities of rows held out, for women with and without the
# skin fold: the model is a little worse without it, by a difference that 98 women cannot settle.

probability = cross_val_predict(model, X, pima.y, method="predict_proba")[:, 1]
missing = X["skin"].isna().to_numpy()
fig, axes = plt.subplots(2, 1, figsize=(5.6, 6), layout="constrained", sharex=True)
for ax, rows, title in zip(axes, (~missing, missing), ("skin fold measured", "skin fold missing"), strict=True):
    AUC = roc_auc_score(pima.y[rows], probability[rows])
    groups = [probability[rows & (pima.y == outcome)] for outcome in (0, 1)]
    ax.hist(groups, bins=np.linspace(0, 1, 11), label=["healthy", "diabetes"])
    ax.set(title=f"{title}: {rows.sum()} women, AUC {AUC:.2f}", ylabel="women")
axes[0].legend()
axes[1].set_xlabel("held-out probability of diabetes")

# %%
# The same from a command line, as one page that opens from disk, with trees of patterns beside the proven optimum:
# ``admiss datasets MASS-Pima.tr2 --out tables``, then
# ``admiss compare --data tables/MASS-Pima.tr2.csv --target type --html pima.html``. In Python:

comparison = compare_partitions(X, pima.y, setting=Setting(task="classification", max_depth=2))
write_page([comparison], Path(tempfile.mkdtemp()) / "pima.html")
print(comparison.verdict())
