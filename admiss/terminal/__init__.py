"""Output on a terminal: progress and tables."""
