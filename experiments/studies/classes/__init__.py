"""Adaptivity classes of the paper, of the package and of the literature, on the same rows."""
