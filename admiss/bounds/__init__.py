"""Finite-sample bounds on the risk of adaptive linear regression (Section 2.3 of the paper) and their ingredients.

=================== ==================================================================
``counts``          p(F), the number of coefficients of a class
``bias``            b(F), the bias of a class, proved and as printed
``two_sided``       the largest b(F) that L and independent missing values allow, from both sides
``moments``         b(F) by second moments, if M is independent of (X, y)
``design_moments``  the risk of the best member of a class, by second moments
``missing_law``     the law of M
``theorem``         Theorem 1
``from_data``       classes ranked for given rows, by second moments
``crossovers``      the n above which the richer class has the smaller bound
``taylor``          Lemma 1, as pairs of computed values and their bounds
``estimates``       sigma^2, L and b(F) estimated from data, none of them a bound
``neighbours``      differences between nearest neighbours, for the estimate of sigma^2
``figures``         bounds over n, and bias against estimation over the order
``certify``         the capped risk of fitted models, certified from held-out rows
``certified_risk``  the certificate and its print
``betting``         its bounds on the mean of bounded variables
``held_out_losses`` losses of models as multiples of a cap
``training_cap``    a cap from training rows
=================== ==================================================================
"""

from admiss.bounds.bias import bias_bound
from admiss.bounds.certified_risk import CertifiedRisk, RiskCertificate
from admiss.bounds.certify import risk_certificate
from admiss.bounds.counts import coefficient_count
from admiss.bounds.crossovers import Recommendation, crossover, recommend
from admiss.bounds.estimates import Estimate, estimate_bias, estimate_noise, estimate_range
from admiss.bounds.figures import plot_bias_estimation, plot_bounds
from admiss.bounds.from_data import DataRecommendation, recommend_from_data
from admiss.bounds.moments import MomentBias, moment_bias, moment_gain
from admiss.bounds.theorem import Bound, generalization_bound
from admiss.bounds.training_cap import cap_from_training

__all__ = [
    "Bound",
    "CertifiedRisk",
    "DataRecommendation",
    "Estimate",
    "MomentBias",
    "Recommendation",
    "RiskCertificate",
    "bias_bound",
    "cap_from_training",
    "coefficient_count",
    "crossover",
    "estimate_bias",
    "estimate_noise",
    "estimate_range",
    "generalization_bound",
    "moment_bias",
    "moment_gain",
    "plot_bias_estimation",
    "plot_bounds",
    "recommend",
    "recommend_from_data",
    "risk_certificate",
]
