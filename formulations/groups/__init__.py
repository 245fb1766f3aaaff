"""The best grouping of missingness patterns into arbitrary groups, by branch and price."""
