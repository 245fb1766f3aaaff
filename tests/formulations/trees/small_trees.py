"""All trees over a few features, and random costs of their boxes."""

import itertools
from fractions import Fraction
from math import comb, inf

import numpy as np

from formulations.leaves.box_costs import BoxCosts
from formulations.trees.dynamic_program import leaves_of


def all_trees(features, depth):
    """Every split structure, as nested tuples."""
    yield None
    if depth:
        for j in features:
            below = list(all_trees([i for i in features if i != j], depth - 1))
            for observed, missing in itertools.product(below, below):
                yield j, observed, missing


def exact_cost(boxes, tree):
    """Cost as a fraction, infinite if a leaf may not be one."""
    costs = [boxes.cost(literals) for literals in leaves_of(tree)]
    return inf if inf in costs else sum(map(Fraction, costs))


def random_boxes(rng, d, depth, *, whole):
    """Costs that shrink with the box, some of them infinite."""
    levels = []
    for k in range(depth + 1):
        share = rng.dirichlet(np.full(2**k, 50.0), size=comb(d, k)) * rng.uniform(0.8, 1.0, (comb(d, k), 1))
        costs = 1000 * share * (1 - 0.02 * k)
        costs = np.round(costs) if whole else costs
        levels.append(np.where((rng.uniform(size=costs.shape) < 0.1) & (k > 0), np.inf, costs))
    return BoxCosts(np.arange(d), depth, levels)
