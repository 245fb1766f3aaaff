"""Scales of the studies: a minute, an evening on two cores, everything."""

SCALES = ("smoke", "laptop", "paper")
