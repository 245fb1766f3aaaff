"""Predictions at all nested hyper-parameters, read off one fit at their largest values."""
