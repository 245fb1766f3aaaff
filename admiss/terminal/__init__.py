"""Output for people at a terminal: progress and tables."""
