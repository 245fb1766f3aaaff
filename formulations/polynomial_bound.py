from formulations.leaf_cost import IntArray, LeafCost


def polynomial_bound(leaf_cost: LeafCost, features: IntArray, depth: int) -> float:
    return 0.0
