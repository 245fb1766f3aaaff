"""Stacks: convex combinations of models for incomplete data."""
