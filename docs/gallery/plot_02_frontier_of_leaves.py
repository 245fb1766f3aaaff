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
from admiss.drawing import EXACT, GREEDY

setting = Setting(max_depth=3, max_leaves=8, references=False)
data = {
    "interacting patterns": make_interacting(n=1000, random_state=0),
    "missing completely at random": make_synthetic(n=1000, mechanism="mcar", missing_fraction=0.3, random_state=0),
}
curve_styles = (("greedy", "s--", GREEDY, "greedy splitting"), ("optimum", "o-", EXACT, "proven optimum"))
fig, axes = plt.subplots(2, 1, figsize=(5.6, 6.4), layout="constrained", sharex=True)
for ax, (title, rows) in zip(axes, data.items(), strict=True):
    curves = compare_partitions(rows.X_train, rows.y_train, setting=setting).curves
    one_leaf = curves["optimum"][0]
    for curve, line, colour, label in curve_styles:
        shares = [100 * cost / one_leaf for cost in curves[curve]]
        ax.plot(range(1, len(shares) + 1), shares, line, color=colour, label=label)
    ax.set(title=title, ylabel="training cost, % of one leaf", ylim=(0, 105))
axes[0].legend(loc="lower left")
axes[1].set_xlabel("leaves, at most")
