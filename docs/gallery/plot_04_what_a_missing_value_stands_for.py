"""
What a missing value stands for
===============================

Under censoring the large values are the missing ones, so the mean of the observed values is too low. An affine
intercept is the best constant imputation, learned with the regression: ``imputation_`` says what a missing value
stands for. It lies on the side of the missing values, and since a missing value also says something about the others,
not always at their mean.
"""

import matplotlib.pyplot as plt
import numpy as np

from admiss import AdaptiveRegressor
from admiss.datasets import make_synthetic

data = make_synthetic(n=2000, d=6, mechanism="censoring", missing_fraction=0.3, random_state=1)
model = AdaptiveRegressor("affine_intercept", lam=0.0).fit(data.X_train, data.y_train)

# %%
# Every dot is a value. The grey ones are missing: the model has never seen them.

missing = np.isnan(data.X_train)
observed = np.where(missing, np.nan, data.X_full_train)
hidden = np.where(missing, data.X_full_train, np.nan)
columns = np.arange(6)
beside = columns + np.random.default_rng(0).uniform(-0.3, 0.3, missing.shape)

fig, ax = plt.subplots(figsize=(5.6, 5), layout="constrained")
for values, colour, name, marker in ((observed, "C0", "observed", "o"), (hidden, "0.5", "missing", "s")):
    ax.scatter(beside, values, s=3, color=colour, alpha=0.15, linewidths=0)
    label = f"mean of the {name} values"
    ax.plot(
        columns, np.nanmean(values, axis=0), marker, color=colour, markeredgecolor="black", markersize=9, label=label
    )
ax.plot(
    columns, model.imputation_, "D", color="C1", markeredgecolor="black", markersize=10, label="learned by the model"
)
ax.set(xticks=columns, xticklabels=[f"x{j}" for j in columns], xlabel="feature", ylabel="value")
ax.grid(axis="x", visible=False)
fig.legend(loc="outside upper left", ncols=1)
