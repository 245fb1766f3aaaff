"""The best constant prediction, and the multipliers that prove it.

    min over b of  sum_i s_i l(y_i, b)

A smooth loss has its derivative at 0 there, which is found by bisection. The absolute and the quantile loss have slopes
u for b < y_i and v for b > y_i: b is the weighted quantile of y of order -u / (v - u), halfway between two values if
both are, and the multipliers of the rows with y_i = b take what is left to make the sum 0.
"""

import math

import numpy as np
from scipy.optimize import brentq

from formulations.arrays import FloatArray
from formulations.losses import Loss
from formulations.rounding import UNIT

# Log-odds beyond which a class is certain: the probability of the other is below rounding.
CERTAIN = -math.log(UNIT)


def best_constant(y: FloatArray, s: FloatArray, loss: Loss) -> tuple[float, FloatArray]:
    """The constant b, and theta_i = s_i times a slope of the loss of row i at b, which add up to 0 up to rounding.

    Examples
    --------
    >>> from formulations.losses import Quantile
    >>> best_constant(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4), Quantile(0.7))[0]
    3.0
    """
    if loss.smooth:
        low, high = (float(y.min()), float(y.max())) if loss.task == "regression" else (-CERTAIN, CERTAIN)

        def slope(b: float) -> float:
            return float(s @ loss.derivative(y, np.full_like(y, b)))

        if slope(low) < 0 < slope(high):
            b = float(brentq(slope, low, high, xtol=2.0**-60 * (high - low), maxiter=1000, disp=False))
        else:
            b = low if slope(low) >= 0 else high
        return b, s * loss.derivative(y, np.full_like(y, b))
    below, above = (float(end[0]) for end in loss.domain(y))
    order = np.argsort(y, kind="stable")
    share, level = np.cumsum(s[order]) / s.sum(), -below / (above - below)
    rounding = 4 * len(y) * UNIT  # of a share
    ends = np.searchsorted(share, [level - rounding, level + rounding]).clip(max=len(y) - 1)
    b = float(y[order[ends]].mean())
    theta = s * np.where(y > b, below, above)
    tied = y == b
    if tied.any():
        theta[tied] = -s[tied] / s[tied].sum() * theta[~tied].sum()
    return b, theta
