"""
Coverage by missing feature
===========================

Intervals that cover 90 % of all rows may cover far fewer of those in which an important feature is missing. A
threshold that depends on the pattern through (1, m) covers 90 % given that any one feature is missing, and given that
it is observed, whatever missingness depends on. The bars are binomial intervals of the coverage on test rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from admiss import AdaptiveRegressor, PatternConformalRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(14_000, 6))
y = X @ [2.0, 1.0, 0.0, 0.0, 0.0, 0.0] + rng.normal(size=len(X))
X[rng.random(X.shape) < 0.2] = np.nan
train, test = slice(0, 4000), slice(4000, None)

fig, ax = plt.subplots(figsize=(5.6, 5.6), layout="constrained")
methods = (
    ("constant", "s", "one threshold (split conformal)"),
    ("features", "o", "a threshold by pattern, basis (1, m)"),
)
for shift, (basis, marker, label) in zip((-0.15, 0.15), methods, strict=True):
    model = PatternConformalRegressor(AdaptiveRegressor(), basis=basis, random_state=0).fit(X[train], y[train])
    table = model.coverage_report(X[test], y[test]).table
    kept = [i for i, kind in enumerate(table["kind"]) if kind in ("missing", "observed")]
    coverage, low, high = (table[name][kept] for name in ("coverage", "low", "high"))
    ax.errorbar(100 * coverage, np.arange(len(kept)) + shift, xerr=100 * np.array([coverage - low, high - coverage]),
                fmt=marker, label=label)  # fmt: skip
ax.axvline(90, color="black", linewidth=1)
ax.set(yticks=range(len(kept)), yticklabels=table["group"][kept], xlabel="coverage on test rows, % (wanted: 90)")
ax.invert_yaxis()
fig.legend(loc="outside upper left")
