"""Leaves of a partition and their costs.

Read ``cost`` first (the cost of a leaf and its interval), then ``squared``, ``logistic`` and ``any_loss`` (the losses).
``box_costs`` enumerates the boxes that can be leaves of a tree, with their costs; for squared loss it uses
``box_grams``. The linear algebra of all leaves under squared loss is in ``cholesky``, its innermost
loops in ``tiles``, that of single leaves at twice the precision in ``double_double``. :func:`leaf_cost_of` selects the
cost for a loss.

Without the rows, ``pseudo_rows`` has the costs from a few weighted rows of each pattern, and ``set_costs`` those from
sums over sets of missing features (``set_sums`` and ``set_moments``).
"""

from formulations.leaves.cost import LeafCost, PatternRows
from formulations.leaves.logistic import LogisticLeafCost
from formulations.leaves.squared import SquaredLeafCost
from formulations.losses import Logistic, Loss, Squared


def leaf_cost_of(rows: PatternRows, loss: Loss, ridge: float, ridge_scale: str = "leaf") -> LeafCost:
    """The leaf cost for a loss: closed form, Newton's method, or a cvxpy program."""
    if isinstance(loss, Squared):
        return SquaredLeafCost(rows, ridge, ridge_scale)
    if isinstance(loss, Logistic):
        return LogisticLeafCost(rows, ridge, ridge_scale)
    from formulations.leaves.any_loss import ProgramLeafCost  # imports cvxpy

    return ProgramLeafCost(rows, loss, ridge, ridge_scale)
