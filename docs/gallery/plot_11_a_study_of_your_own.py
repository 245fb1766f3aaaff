"""
A study of your own
===================

A study compares methods on instances: every pair is computed once, in a process of its own, and kept, so that a study
can be stopped and continued at any time. Here mean imputation with and without indicators and an adaptive model, as
more values of one table are deleted. ``admiss study report`` makes a page of the same table.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from admiss import AdaptiveRegressor
from admiss.study import Study

X, y = load_diabetes(return_X_y=True)


def censored(share):
    """The largest values of every feature are missing."""
    return np.where(X > np.quantile(X, 1 - share, axis=0), np.nan, X), y


study = Study(
    "diabetes",
    instances=[(f"{share:.0%}", censored(share)) for share in (0.1, 0.3, 0.5)],
    methods={
        "mean": make_pipeline(SimpleImputer(), RidgeCV()),
        "mean and indicators": make_pipeline(SimpleImputer(add_indicator=True), RidgeCV()),
        "adaptive": AdaptiveRegressor("affine_intercept"),
    },
    metrics=["r2"],
    replicates=5,
)
folder = tempfile.mkdtemp()
study.run(folder=folder)

# %%
table = study.table("pandas", folder=folder)
instance = next(name for name in table.columns if table[name].astype(str).str.contains("30%").any())
means = table.pivot_table(index=instance, columns="method", values="r2")
fig, ax = plt.subplots(figsize=(5.6, 4), layout="constrained")
for (method, values), style in zip(means.items(), ("o-", "D:", "s--"), strict=True):
    ax.plot(values.index, values, style, label=method)
ax.set(xlabel="share of every feature that is censored", ylabel="R2, mean of 5 splits", ylim=(0, None))
ax.legend()
