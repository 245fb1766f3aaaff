"""Training on rows with further deletions, for use under another law of missingness.

======================== ==========================================================================================
``deletions``            the law of the deletions: moments, and copies of rows drawn from it
``whole_rows``           folds that keep the copies of a row together
``expected_moments``     columns and sufficient statistics of a class in expectation over the deletions
``expected_fit``         fits and searches with these, without sampling
``estimators``           ``DeletionAugmentedRegressor`` and ``DeletionAugmentedClassifier``
======================== ==========================================================================================
"""
