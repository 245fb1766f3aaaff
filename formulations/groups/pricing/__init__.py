"""The pricing problem of the groups: the set of patterns of smallest reduced cost."""
