"""
Imputed values that suit the predictor
======================================

Joint impute-then-regress learns the imputed values together with any predictor of scikit-learn. Under censoring a
forest gains from values beyond the observed ones; if values are missing completely at random the mean is as good, and
the search keeps it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from admiss import JointImputeRegressor
from admiss.datasets import make_synthetic

forest = RandomForestRegressor(50, random_state=0)
gains = {}
for mechanism in ("mcar", "censoring"):
    gains[mechanism] = []
    for seed in range(3):
        data = make_synthetic(n=500, mechanism=mechanism, missing_fraction=0.3, random_state=seed)
        joint = JointImputeRegressor(forest, random_state=0).fit(data.X_train, data.y_train)
        mean = make_pipeline(SimpleImputer(), forest).fit(data.X_train, data.y_train)
        gains[mechanism].append(joint.score(data.X_test, data.y_test) - mean.score(data.X_test, data.y_test))

fig, ax = plt.subplots(figsize=(5.4, 3), layout="constrained")
for k, values in enumerate(gains.values()):
    ax.plot(values, np.full(3, k), "o", markersize=9)
ax.axvline(0, color="grey", linewidth=1)
ax.set(
    yticks=range(2), yticklabels=gains, ylim=(-0.5, 1.5), xlabel="R2 of joint imputation minus R2 of mean imputation"
)
