"""Adaptivity classes: how the weights of a linear model depend on the missingness pattern.

==================== =======================================================================
``base``             the base class ``Adaptivity``; a new class implements ``basis``
``polynomial``       static, affine intercept, affine and polynomial weights
``fully_adaptive``   one linear model per observed pattern
``fused``            one model per pattern, with a penalty on differences between neighbours
``shared``           one shared model, with sparse deviations at each pattern
``frequent``         one model per frequent pattern, and one for all rare ones
``avoiding``         an affine intercept whose penalties grow with missing rates
``binned``           steps of each feature and indicators of missing values: not linear in x
``low_rank``         affine weights with corrections of low rank
``conditional_mean`` a linear model of the conditional means of the features
==================== =======================================================================

`WRITE_YOUR_OWN.md` in this folder explains how to write a class; :mod:`admiss.testing` checks it.
"""

from admiss.adaptivity.avoiding import MissingnessAvoiding
from admiss.adaptivity.base import Adaptivity
from admiss.adaptivity.binned import BinnedAffine
from admiss.adaptivity.conditional_mean import ConditionalMean
from admiss.adaptivity.frequent import FrequentPatterns
from admiss.adaptivity.fully_adaptive import FullyAdaptive
from admiss.adaptivity.fused import FusedPatterns
from admiss.adaptivity.low_rank import LowRankAffine
from admiss.adaptivity.polynomial import Affine, AffineIntercept, Polynomial, Static
from admiss.adaptivity.shared import SharedPatterns

__all__ = [
    "Adaptivity",
    "Affine",
    "AffineIntercept",
    "BinnedAffine",
    "ConditionalMean",
    "FrequentPatterns",
    "FullyAdaptive",
    "FusedPatterns",
    "LowRankAffine",
    "MissingnessAvoiding",
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
    "frequent_patterns": FrequentPatterns,
    "missingness_avoiding": MissingnessAvoiding,
    "binned_affine": BinnedAffine,
}


def resolve_adaptivity(adaptivity: str | Adaptivity) -> Adaptivity:
    """The adaptivity class with a given name, or the object itself.

    Parameters
    ----------
    adaptivity : str or Adaptivity
        "static", "affine_intercept", "affine", "polynomial", .., or an object.

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
    unknown = repr(adaptivity) if isinstance(adaptivity, str) else f"of type {type(adaptivity).__name__}"
    raise ValueError(f"Unknown adaptivity {unknown}: choose one of {known}, or an Adaptivity object.")
