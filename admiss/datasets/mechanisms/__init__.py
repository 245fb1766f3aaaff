"""Missingness mechanisms: basic ones, those with structure across rows or columns, and those built from others."""

from admiss.datasets.mechanisms.composed import Adversarial, Either, Only, Together, reallocated
from admiss.datasets.mechanisms.single import AtRandom, Censoring, CompletelyAtRandom, Mechanism, SelfMasking
from admiss.datasets.mechanisms.structured import Blocks, Dropout, LatentFactor, PanelAttrition, QuantileAtRandom

__all__ = [
    "Adversarial",
    "AtRandom",
    "Blocks",
    "Censoring",
    "CompletelyAtRandom",
    "Dropout",
    "Either",
    "LatentFactor",
    "Mechanism",
    "Only",
    "PanelAttrition",
    "QuantileAtRandom",
    "SelfMasking",
    "Together",
    "reallocated",
]
