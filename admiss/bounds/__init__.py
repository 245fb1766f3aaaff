"""Finite-sample bounds on the risk of adaptive linear regression (Section 2.3 of the paper) and their ingredients.

=================== ==================================================================
``setting``         what is known of truth, noise and missing values
``counts``          p(F), the number of coefficients of a class
``bias``            b(F), the bias of a class, proved and as printed
``moments``         b(F) by second moments, if M is independent of (X, y)
``design_moments``  the risk of the best member of a class, by second moments
``theorem``         Theorem 1, the n from which a richer class is better, rankings
``from_data``       classes ranked for given rows, by second moments
``estimates``       sigma^2, L and b(F) estimated from data, none of them a bound
``figures``         bounds over n, and bias against estimation over the order
``certificate``     the capped risk of fitted models, certified from held-out rows by betting
``held_out_losses`` losses of models as multiples of a cap, and a cap from training rows
=================== ==================================================================
"""

from admiss.bounds.bias import bias_bound
from admiss.bounds.certificate import CertifiedRisk, RiskCertificate, risk_certificate
from admiss.bounds.counts import coefficient_count
from admiss.bounds.estimates import Estimate, estimate_bias, estimate_noise, estimate_range
from admiss.bounds.figures import plot_bias_estimation, plot_bounds
from admiss.bounds.from_data import DataRecommendation, recommend_from_data
from admiss.bounds.held_out_losses import cap_from_training
from admiss.bounds.moments import MomentBias, moment_bias, moment_gain
from admiss.bounds.setting import BoundSetting
from admiss.bounds.theorem import Bound, Recommendation, crossover, generalization_bound, recommend

__all__ = [
    "Bound",
    "BoundSetting",
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
