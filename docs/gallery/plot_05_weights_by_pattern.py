"""
Weights by pattern
==================

When a feature is missing, correlated features stand in for it: the best weights depend on the pattern. An affine
class learns how each weight changes with each indicator; ``coef_at`` gives the model at any pattern, seen in training
or not.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from admiss import AdaptiveRegressorCV

rng = np.random.default_rng(0)
names = ["age", "income", "wealth", "tenure"]
root = rng.normal(size=(3000, 1))
X = 0.8 * root + 0.6 * rng.normal(size=(3000, 4))
y = X @ [1.0, 2.0, 0.0, -1.0] + 0.5 * rng.normal(size=3000)
X[rng.random(X.shape) < 0.3] = np.nan

model = AdaptiveRegressorCV("affine", random_state=0).fit(pd.DataFrame(X, columns=names), y)
patterns = [[], ["age"], ["income"], ["wealth"], ["tenure"], ["income", "tenure"]]
weights = np.array([np.where(np.isin(names, missing), np.nan, model.coef_at(missing)) for missing in patterns])

# %%
# A row of the picture is a pattern; a hatched cell is a feature that is missing there. Without income, wealth has a
# weight of .76, although the truth does not depend on it: it stands in for income.

fig, ax = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
ax.set_facecolor("0.93")
ax.patch.set(hatch="///", edgecolor="0.7")
ax.imshow(weights, cmap="RdBu_r", vmin=-3, vmax=3, aspect="auto")
for i, j in np.argwhere(~np.isnan(weights)):
    colour = "white" if abs(weights[i, j]) > 1.7 else "black"
    ax.text(j, i, f"{weights[i, j]:+.2f}", ha="center", va="center", color=colour)
words = ["nothing" if not missing else " and\n".join(missing) for missing in patterns]
ax.set(xticks=range(4), xticklabels=names, yticks=range(len(patterns)), yticklabels=words)
ax.set(xlabel="weight of the feature", ylabel="missing", title="the truth: +1 age, +2 income, 0 wealth, -1 tenure")
ax.grid(visible=False)
