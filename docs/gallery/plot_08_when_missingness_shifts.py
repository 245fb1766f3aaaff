"""
When missingness shifts
=======================

Trained with a tenth of the values missing, used with more and more missing: sensors fail. Training on rows with further
deletions, in exact expectation, keeps more of the accuracy where much changes. Where nothing changes it costs nothing
here, since values are missing completely at random. It is opt-in: if values are missing because of what they are, it
costs accuracy without a shift.
"""

import matplotlib.pyplot as plt
import numpy as np

from admiss import AdaptiveRegressorCV, DeletionAugmentedRegressor
from admiss.datasets import CompletelyAtRandom, make_synthetic

rows = make_synthetic(n=400, d=8, missing_fraction=0.1, random_state=1)
models = {
    "affine": AdaptiveRegressorCV("affine", random_state=0),
    "affine, trained on further deletions": DeletionAugmentedRegressor(AdaptiveRegressorCV("affine"), random_state=0),
    "affine intercept": AdaptiveRegressorCV("affine_intercept", random_state=0),
}
shares = np.linspace(0.1, 0.7, 7)
later = [np.where(CompletelyAtRandom(share)(rows.X_full_test, 0), np.nan, rows.X_full_test) for share in shares]

fig, ax = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
for (name, model), style in zip(models.items(), ("o--", "D-", "s:"), strict=True):
    model.fit(rows.X_train, rows.y_train)
    ax.plot(100 * shares, [model.score(X, rows.y_test) for X in later], style, label=name)
ax.set(xlabel="missing values when the model is used, % (in training 10)", ylabel="R2 on test rows", ylim=(0, None))
ax.legend()
