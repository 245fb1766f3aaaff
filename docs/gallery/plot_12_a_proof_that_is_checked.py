"""
A proof that is checked
=======================

Every optimum carries a certificate. ``verify`` proves it again in exact and ball arithmetic, sharing nothing with the
solvers: the partition is a partition, the model costs what is stated, and no partition of its class costs less. A
certificate that was tampered with is rejected. Below, the proven bound and the cost found, as the depth of the tree
grows.
"""

from dataclasses import replace

import matplotlib.pyplot as plt

from admiss import FiniteRegressor, verify
from admiss.datasets import make_interacting
from admiss.partition import Greedy, OptimalTree

rows = make_interacting(n=600, d=6, random_state=0)
exact = FiniteRegressor(OptimalTree(max_depth=2)).fit(rows.X_train, rows.y_train)
print(*verify(exact, rows.X_train, rows.y_train).lines, sep="\n")

# %%
# A cost that is a little too good to be true:

honest = exact.certificate_
exact.certificate_ = replace(honest, bound=0.99 * honest.bound, objective=0.99 * honest.objective)
print(verify(exact, rows.X_train, rows.y_train))

# %%
depths = range(1, 5)
greedy = [FiniteRegressor(Greedy(max_depth=D)).fit(rows.X_train, rows.y_train).certificate_ for D in depths]
proven = [FiniteRegressor(OptimalTree(max_depth=D)).fit(rows.X_train, rows.y_train).certificate_ for D in depths]
fig, ax = plt.subplots(figsize=(5.6, 4), layout="constrained")
ax.plot(depths, [c.objective for c in greedy], "s--", label="greedy")
ax.plot(depths, [c.objective for c in proven], "o-", label="exact")
ax.fill_between(depths, 0, [c.bound for c in proven], color="0.85", linewidth=0)
ax.text(2.5, 0.5 * proven[-1].bound, "no tree of that depth is here:\nproven", ha="center", va="center")
ax.set(xlabel="depth, at most", ylabel="training cost", xticks=list(depths), ylim=(0, None))
ax.legend(loc="upper right")
