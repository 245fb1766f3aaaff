"""Data larger than memory: statistics of one pass over rows that add up, and from which models are fitted."""

from admiss.streaming.hash_folds import HashFolds
from admiss.streaming.statistics import RowStatistics

__all__ = ["HashFolds", "RowStatistics"]
