"""Mechanisms that make values missing: single ones, and compositions of them."""

from admiss.datasets.mechanisms.composed import Adversarial, Either, Only, Together, reallocated
from admiss.datasets.mechanisms.single import AtRandom, Censoring, CompletelyAtRandom, Mechanism, SelfMasking

__all__ = [
    "Adversarial",
    "AtRandom",
    "Censoring",
    "CompletelyAtRandom",
    "Either",
    "Mechanism",
    "Only",
    "SelfMasking",
    "Together",
    "reallocated",
]
