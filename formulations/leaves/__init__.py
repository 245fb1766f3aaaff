"""Leaves of a partition and their costs.

Read ``cost`` first (the cost of a leaf and its interval), then ``squared``, ``logistic`` and ``any_loss`` (the losses).
``box_costs`` enumerates the boxes that can be leaves of a tree, with their costs; for squared loss it uses
``box_grams``. The linear algebra of all leaves under squared loss is in ``cholesky``, its innermost
loops in ``tiles``, that of single leaves at twice the precision in ``double_double``. ``squared_estimates`` has the
costs without proofs, for searches that fit the same leaves at many ridges.

Without the rows, ``pseudo_rows`` has the costs from a few weighted rows of each pattern, and ``set_costs`` those from
sums over sets of missing features (``set_sums`` and ``set_moments``).
"""
