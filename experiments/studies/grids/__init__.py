"""Reduced grids of hyper-parameters against those of the authors."""
