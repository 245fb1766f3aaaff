"""Benchmarks: one module a topic, each with the best peer in the same run."""
