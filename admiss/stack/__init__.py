"""Stacks: estimators, their default candidates, and the candidates fitted on the same rows."""
