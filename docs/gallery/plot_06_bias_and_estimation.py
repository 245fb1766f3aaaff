"""
Bias and estimation by adaptivity level
=======================================

More adaptive weights follow the truth more closely and have more coefficients to estimate. From means and covariances
the bias of each order can be computed before any fit, if values are missing completely at random; the estimation part
grows with the number of coefficients. Their sum is smallest at order 1 with 1,000 rows, and at order 2 with 50,000.
"""

import matplotlib.pyplot as plt
import numpy as np

from admiss.bounds import coefficient_count, moment_bias

d, noise = 10, 1.0
moments = np.zeros(d), 0.5 * np.eye(d) + 0.5
classes = {0: "static", 1: "affine", 2: ("polynomial", 2), 3: ("polynomial", 3)}
bias = np.array([moment_bias(F, moments, missing=0.3, beta=np.ones(d)).value for F in classes.values()])
count = np.array([coefficient_count(F, d) for F in classes.values()])

fig, axes = plt.subplots(2, 1, figsize=(5.6, 6.8), layout="constrained", sharex=True, sharey=True)
for ax, n in zip(axes, (1_000, 50_000), strict=True):
    estimation = noise * count / n
    ax.plot(list(classes), bias, "o--", label="bias, from second moments")
    ax.plot(list(classes), estimation, "s:", label="estimation, noise times p(F) / n")
    ax.plot(list(classes), bias + estimation, "D-", color="black", label="sum")
    best = int(np.argmin(bias + estimation))
    ax.annotate("smallest", (best, (bias + estimation)[best]), (0, 10), textcoords="offset points", ha="center")
    ax.set(title=f"{n:,} rows", ylabel="excess mean squared error", yscale="log", ylim=(1e-4, 10))
words = [f"{t}\n{name if isinstance(name, str) else 'polynomial'}" for t, name in classes.items()]
axes[1].set(xlabel="order t of the weights", xticks=list(classes), xticklabels=words)
axes[1].legend(loc="upper right")
