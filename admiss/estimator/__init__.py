"""The parts that every estimator shares: validation, labels, folds, warnings, models at a pattern."""
