"""Thresholds of conformal sets that adapt to the pattern: stated program, solution for many patterns, ranks."""
