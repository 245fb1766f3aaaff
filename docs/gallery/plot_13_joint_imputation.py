"""
Imputed values that suit the predictor
======================================

Joint impute-then-regress learns the imputed values together with any predictor of scikit-learn. Under censoring a
forest gains from values beyond the observed ones; if values are missing completely at random the mean is as good, and
the search keeps it.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from admiss import JointImputeRegressor
from admiss.datasets import make_synthetic

forest = RandomForestRegressor(50, random_state=0)
titles = {"mcar": "missing completely\nat random", "censoring": "large values\nare missing"}
fig, ax = plt.subplots(figsize=(5.6, 4), layout="constrained")
for place, mechanism in enumerate(titles):
    for seed in range(3):
        data = make_synthetic(n=500, mechanism=mechanism, missing_fraction=0.3, random_state=seed)
        mean = make_pipeline(SimpleImputer(), forest).fit(data.X_train, data.y_train)
        joint = JointImputeRegressor(forest, random_state=0).fit(data.X_train, data.y_train)
        scores = [model.score(data.X_test, data.y_test) for model in (mean, joint)]
        height = place + 0.18 * (seed - 1)
        ax.plot(scores, [height, height], color="0.6", zorder=1)
        for score, marker, colour, label in zip(scores, "so", ("C0", "C1"), ("at the mean", "learned"), strict=True):
            ax.plot(score, height, marker, color=colour, markersize=8, label=label if place == seed == 0 else None)
ax.set(
    yticks=range(2),
    yticklabels=titles.values(),
    ylim=(-0.5, 1.5),
    xlabel="R2 of a forest on test rows; a line is a seed",
)
ax.grid(axis="y", visible=False)
fig.legend(title="imputed values", loc="outside upper center", ncols=2)
