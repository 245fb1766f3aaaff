"""Parts shared by all estimators: validation, labels, folds, warnings, models at a pattern, searches."""
