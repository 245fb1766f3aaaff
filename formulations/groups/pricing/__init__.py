"""The pricing problem of the groups: the set of patterns with the smallest reduced cost.

Read ``choice`` first (the possible groups and their costs), then ``branch_and_bound``, which states the problem and
searches its tree. A node is set up in ``node`` and bounded in ``block_bound``; ``quadratics`` is their linear
algebra, ``side_by_side`` that of several patterns at once.
"""
