"""Training on rows with further deletions, for use under another law of missingness.

======================== ==========================================================================================
``deletions``            the law of the deletions: moments, and copies of rows drawn from it
``expected``             fits and searches in expectation over the deletions, without sampling
``estimators``           ``DeletionAugmentedRegressor`` and ``DeletionAugmentedClassifier``
======================== ==========================================================================================
"""
