"""Thresholds of conformal sets that adapt to the missingness pattern: stated program, parametric method, ranks."""
