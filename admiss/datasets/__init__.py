"""Data with missing values."""

from admiss.datasets.interacting import make_interacting
from admiss.datasets.mechanisms import Censoring, CompletelyAtRandom
from admiss.datasets.synthetic import SyntheticData, make_synthetic

__all__ = ["Censoring", "CompletelyAtRandom", "SyntheticData", "make_interacting", "make_synthetic"]
