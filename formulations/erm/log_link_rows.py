"""Passes over rows with a log link: slopes, curvatures and risk at predictions, see :mod:`formulations.log_link`.

With the power p of the variance, a = p - 1 and b = 2 - p, the slope of a row is exp(b z) - y exp(-a z) times its share.
"""

import numpy as np

from formulations.jit import compiled, inlined

# Exponents beyond which predictions are cut off: a step that goes there is halved.
LARGEST_EXPONENT = 300.0


@inlined
def _exp(t):  # type: ignore[no-untyped-def]
    return 1.0 if t == 0.0 else np.exp(min(max(t, -LARGEST_EXPONENT), LARGEST_EXPONENT))


@compiled
def set_log_link_slopes(power, y, q, z, start, stop, slope):  # type: ignore[no-untyped-def]
    """The derivative of the risk in z_i, for a range of rows."""
    a, b = power - 1.0, 2.0 - power
    for i in range(start, stop):
        slope[i] = q[i] * (_exp(b * z[i]) - y[i] * _exp(-a * z[i]))


@compiled
def set_log_link_curvatures(power, y, q, z, weight):  # type: ignore[no-untyped-def]
    """The second derivative of the risk in each z_i."""
    a, b = power - 1.0, 2.0 - power
    for i in range(len(z)):
        weight[i] = q[i] * (b * _exp(b * z[i]) + a * y[i] * _exp(-a * z[i]))


@compiled
def log_link_risk_of(power, y, q, z):  # type: ignore[no-untyped-def]
    """The risk, up to a number that does not depend on z."""
    a, b = power - 1.0, 2.0 - power
    risk = 0.0
    for i in range(len(y)):
        up = _exp(b * z[i]) / b if b > 0.0 else z[i]
        down = _exp(-a * z[i]) / a if a > 0.0 else -z[i]
        risk += q[i] * (up + y[i] * down)
    return risk
