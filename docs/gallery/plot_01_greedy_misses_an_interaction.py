"""
Greedy misses an interaction
============================

Here the weights of the truth depend on two indicators together, as in an exclusive or: neither split alone lowers the
cost much, both together do. Greedy splitting looks one split ahead and starts elsewhere; the exact tree finds the
pair, and proves that no tree of this depth costs less.
"""

import matplotlib.pyplot as plt

from admiss import FiniteRegressor
from admiss.datasets import make_interacting
from admiss.partition import Greedy, OptimalTree
from admiss.plots import plot_tree

data = make_interacting(n=1000, random_state=0)
models = {
    "greedy": FiniteRegressor(Greedy(max_depth=2)),
    "exact": FiniteRegressor(OptimalTree(max_depth=2)),
}
for name, model in models.items():
    model.fit(data.X_train, data.y_train)
    print(f"{name:7} {model.certificate_.status:10} R2 on test rows {model.score(data.X_test, data.y_test):.2f}")

# %%
# The two trees: "x0?" asks whether feature 0 is observed (left) or missing (right). Costs are sums of squared errors
# plus ridge penalties on the training rows.

fig, axes = plt.subplots(2, 1, figsize=(5.6, 7), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    R2 = model.score(data.X_test, data.y_test)
    title = f"{name}: cost {model.certificate_.objective:,.0f}, R2 {R2:.2f} on test rows"
    plot_tree(model, ax=ax, title=title, fontsize=10)
