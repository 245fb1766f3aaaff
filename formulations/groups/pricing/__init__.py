"""The pricing problem of the groups: the set of patterns with the smallest reduced cost.

Read ``quadratics`` first (the possible groups and their costs), then ``branch_and_bound``, which states the problem and
searches its tree. A node is bounded in ``block_bound``; ``side_by_side`` is the linear algebra of several patterns at
once.
"""
