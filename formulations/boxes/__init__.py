"""The best cover of the observed missingness patterns by disjoint boxes: ``partition``, as set partitioning."""
