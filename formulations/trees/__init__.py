"""The best tree of missingness patterns.

Read ``flow`` first (the mixed-integer program over enumerated boxes), then ``dynamic_program`` (the fast algorithm for
the same problem), ``split_assign`` (the textbook formulation, for comparison) and ``polynomial_bound`` (a lower bound
if there are too many boxes to enumerate).
"""
