"""Prediction sets whose coverage is promised by missingness pattern (conformal prediction with missing values).

==================== ============================================================================
``estimators``       the regressor, with its bands, and the classifier
``base``             what they share: split, calibration, thresholds, warnings; coverage by group on test rows
``basis``            bases phi(m) of functions of the pattern, and what each one promises
``masking``          calibration rows with further values deleted (MDA-exact, MDA-nested)
==================== ============================================================================
"""
