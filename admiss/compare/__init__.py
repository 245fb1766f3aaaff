"""Comparisons on one data set: adaptivity classes, and partitioners."""
