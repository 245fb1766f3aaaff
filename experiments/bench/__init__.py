"""Benchmarks, one module per topic, each with the best peer in the same run."""
