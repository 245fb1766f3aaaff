"""Greedy against exact partitions."""
