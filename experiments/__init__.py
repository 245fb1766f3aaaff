"""Studies of the paper and benchmarks of admiss, run from a checkout as ``python -m experiments``."""
