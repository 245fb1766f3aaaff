"""Predictors with hyper-parameters tuned by cross-validation."""
