"""
The frontier of leaves
======================

How much does each further leaf buy? The dynamic program proves the lowest cost for every number of leaves at once;
greedy splitting has a cost for each number too. On interacting patterns the two part at once; when values are missing
completely at random they nearly agree.
"""

import matplotlib.pyplot as plt

from admiss.compare.partitions import compare_partitions
from admiss.compare.setting import Setting
from admiss.datasets import make_interacting, make_synthetic

setting = Setting(max_depth=3, max_leaves=8, references=False)
data = {
    "interacting patterns": make_interacting(n=1000, random_state=0),
    "missing completely at random": make_synthetic(n=1000, mechanism="mcar", missing_fraction=0.3, random_state=0),
}
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, (title, rows) in zip(axes, data.items(), strict=True):
    comparison = compare_partitions(rows.X_train, rows.y_train, setting=setting)
    for curve, line in (("greedy", "s--"), ("optimum", "o-")):
        costs = comparison.curves[curve]
        ax.plot(range(1, len(costs) + 1), costs, line, label=curve)
    ax.set(title=title, xlabel="leaves", ylabel="training cost")
    ax.legend()
