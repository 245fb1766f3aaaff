"""The best cover of missingness patterns by disjoint boxes."""
