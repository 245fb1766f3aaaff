"""Finitely adaptive models (Section 2.2 of the paper): a linear model in each leaf of a partition."""
