"""Indicators of missing values beside imputed features, under mechanisms that are and are not completely at random."""
