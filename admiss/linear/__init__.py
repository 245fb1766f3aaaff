"""Adaptive linear models (Sections 2.1 to 2.4 of the paper): estimators, design, penalty and fits."""
