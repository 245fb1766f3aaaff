"""Adaptivity classes: how the weights of a linear model depend on the missingness pattern.

==================== =======================================================================
``base``             the base class ``Adaptivity``; a new class implements ``basis``
``polynomial``       static, affine intercept, affine and polynomial weights
``fully_adaptive``   one linear model per observed pattern
``fused``            one model per pattern, with a penalty on differences between neighbours
``shared``           one shared model, with sparse deviations at each pattern
``low_rank``         affine weights with corrections of low rank
``conditional_mean`` a linear model of the conditional means of the features
==================== =======================================================================

`WRITE_YOUR_OWN.md` in this folder explains how to write a class; :mod:`admiss.testing` checks it.
"""

from admiss.adaptivity.base import Adaptivity
from admiss.adaptivity.conditional_mean import ConditionalMean
from admiss.adaptivity.fully_adaptive import FullyAdaptive
from admiss.adaptivity.fused import FusedPatterns
from admiss.adaptivity.low_rank import LowRankAffine
from admiss.adaptivity.polynomial import Affine, AffineIntercept, Polynomial, Static
from admiss.adaptivity.shared import SharedPatterns

__all__ = [
    "Adaptivity",
    "Affine",
    "AffineIntercept",
    "ConditionalMean",
    "FullyAdaptive",
    "FusedPatterns",
    "LowRankAffine",
    "Polynomial",
    "SharedPatterns",
    "Static",
    "resolve_adaptivity",
]

ADAPTIVITY_CLASSES: dict[str, type[Adaptivity]] = {
    "static": Static,
    "affine_intercept": AffineIntercept,
    "affine": Affine,
    "polynomial": Polynomial,
    "fully_adaptive": FullyAdaptive,
    "conditional_mean": ConditionalMean,
    "low_rank_affine": LowRankAffine,
    "fused_patterns": FusedPatterns,
    "shared_patterns": SharedPatterns,
}


def resolve_adaptivity(adaptivity: str | Adaptivity) -> Adaptivity:
    """The adaptivity class with a given name, or the object itself.

    Examples
    --------
    >>> resolve_adaptivity("polynomial")
    Polynomial()
    """
    if isinstance(adaptivity, Adaptivity):
        return adaptivity
    if isinstance(adaptivity, str) and adaptivity in ADAPTIVITY_CLASSES:
        return ADAPTIVITY_CLASSES[adaptivity]()
    known = ", ".join(repr(name) for name in ADAPTIVITY_CLASSES)
    raise ValueError(f"Unknown adaptivity {adaptivity!r}: choose one of {known}, or an Adaptivity object.")
