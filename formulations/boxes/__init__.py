"""The best cover of the observed missingness patterns by disjoint boxes: ``partition``, as set partitioning.

``enumeration`` proves what its integer program found.
"""
