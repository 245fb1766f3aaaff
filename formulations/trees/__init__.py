"""The best tree of missingness patterns.

Read ``flow`` first (the mixed-integer program over enumerated boxes), then ``dynamic_program`` (the fast algorithm for
the same problem, and its proof in exact arithmetic), ``split_assign`` (the textbook formulation, for comparison) and
``polynomial_bound`` (a lower bound if there are too many boxes to enumerate). ``rounded_costs`` and ``near_optimal``
count the trees and partitions close to the optimum; ``near_optimal`` also finds the best number of leaves under a
penalty per leaf.
"""
