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

fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
image = ax.imshow(weights, cmap="RdBu_r", vmin=-2.6, vmax=2.6, aspect="auto")
for i, j in np.argwhere(~np.isnan(weights)):
    ax.text(j, i, f"{weights[i, j]:.2f}", ha="center", va="center")
words = ["nothing" if not missing else " and ".join(missing) for missing in patterns]
ax.set(xticks=range(4), xticklabels=names, yticks=range(len(patterns)), yticklabels=words, ylabel="missing")
ax.set_title("weight of each observed feature")
fig.colorbar(image)
