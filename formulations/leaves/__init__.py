"""Leaves of a partition and their costs: the one factory that finds the cost for a loss."""

from formulations.leaves.cost import LeafCost, PatternRows, SquaredLeafCost
from formulations.leaves.logistic import LogisticLeafCost
from formulations.losses import Logistic, Loss, Squared


def leaf_cost_of(rows: PatternRows, loss: Loss, ridge: float, ridge_scale: str = "leaf") -> LeafCost:
    """The leaf cost for a loss."""
    if isinstance(loss, Squared):
        return SquaredLeafCost(rows, ridge, ridge_scale)
    if isinstance(loss, Logistic):
        return LogisticLeafCost(rows, ridge, ridge_scale)
    from formulations.leaves.any_loss import ProgramLeafCost

    return ProgramLeafCost(rows, loss, ridge, ridge_scale)
