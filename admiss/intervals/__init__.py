"""Prediction sets whose coverage is promised by missingness pattern (conformal prediction with missing values).

==================== ============================================================================
``estimators``       the regressor and the classifier
``base``             what they share: split, calibration, thresholds, warnings
``basis``            bases phi(m) of functions of the pattern, and what each one promises
``bands``            scores of numbers: models of a lower end, an upper end and a scale
``masking``          calibration rows with further values deleted (MDA-exact, MDA-nested)
``coverage``         coverage by feature, number missing and pattern, as a table and a figure
==================== ============================================================================
"""
