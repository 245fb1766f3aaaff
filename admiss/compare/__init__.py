"""Comparisons of adaptivity classes and of partitioners on one data set."""
