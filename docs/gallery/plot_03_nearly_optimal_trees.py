"""
How many trees are nearly optimal
=================================

The same dynamic program counts the trees whose cost is within a few percent of the optimum. Where thousands are as
good, the rows hardly tell them apart, and a slightly lower cost says little about new rows. Where greedy's tree lies
far to the right of the curve, greedy has missed something.
"""

import matplotlib.pyplot as plt

from admiss.compare.partitions import compare_partitions
from admiss.compare.setting import Setting
from admiss.datasets import make_interacting, make_synthetic
from admiss.drawing import EXACT, GREEDY

data = {
    "interacting patterns": make_interacting(n=1000, random_state=0),
    "missing completely at random": make_synthetic(n=1000, mechanism="mcar", missing_fraction=0.3, random_state=0),
}
fig, axes = plt.subplots(2, 1, figsize=(5.6, 6.4), layout="constrained", sharey=True)
for ax, (title, rows) in zip(axes, data.items(), strict=True):
    near = compare_partitions(rows.X_train, rows.y_train, setting=Setting(max_depth=3, references=False)).near
    ax.step([percent for percent, _ in near.curve], [count.least for _, count in near.curve], where="post", color=EXACT)
    better = f"greedy's tree:\n{near.better.least:,.0f} trees cost less"
    ax.axvline(near.greedy_percent, linestyle="--", color=GREEDY)
    ax.annotate(better, (near.greedy_percent, 100), (-6, 0), textcoords="offset points", ha="right", color=GREEDY)
    ax.set(title=title, ylabel="trees within that cost", yscale="log", ylim=(0.7, 4e6))
axes[1].set_xlabel("training cost above the optimum, %")
