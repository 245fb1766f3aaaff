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

observed = np.nanmean(data.X_train, axis=0)
hidden = np.nanmean(np.where(np.isnan(data.X_train), data.X_full_train, np.nan), axis=0)
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
places = np.arange(6)
ax.plot(places, observed, "o", label="mean of the observed values")
ax.plot(places, model.imputation_, "D", label="learned by the model")
ax.plot(
    places,
    hidden,
    "_",
    markersize=22,
    markeredgewidth=2,
    color="black",
    label="mean of the missing values (unknown to it)",
)
ax.set(xticks=places, xticklabels=[f"x{j}" for j in places], ylabel="value")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
