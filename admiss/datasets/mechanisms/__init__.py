"""Missingness mechanisms: basic ones (``single``) and those built from others (``composed``)."""

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
