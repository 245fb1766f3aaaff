"""Predictors tuned by cross-validation: estimators, search, kinds of predictors, grids and scores."""
