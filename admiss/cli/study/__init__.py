"""Commands about the studies of any catalogue."""
