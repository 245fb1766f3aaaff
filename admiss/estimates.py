"""The mean of one value per unit, with its interval, and p values adjusted for their number.

For values d_1, .., d_J of units, with mean d and variance v (divisor J - 1):

    interval    d - t s, d + t s,    t the .975 quantile of Student's distribution with J - 1 degrees of freedom
    error       s^2 = v (1 / J + r)
    p value     P(|T| >= |d| / s)

Units that are independent have r = 0. Random splits of one data set, and the folds of a cross-validation, share its
rows: these have r = n_test / n_train (Nadeau and Bengio, 2003, Inference for the generalization error).

Several p values are adjusted together (Holm, 1979): in the order p_1 <= .. <= p_m the adjusted p_k is the maximum of
min(1, (m - j + 1) p_j) over j <= k. Rejections at 5 % are then all right with probability 95 % or more, however the
tests depend on each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

# The convention of the papers that are compared with.
LEVEL = 0.95
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A mean over units with its 95 % interval and the p value of 0, each None if undefined."""

    mean: float
    low: float | None
    high: float | None
    p: float | None
    units: int
    identical: bool = False


def estimate(values: Numbers, overlap: float = 0.0) -> Estimate:
    """Mean of one value per unit, with its interval.

    Parameters
    ----------
    values : array
        At least one.
    overlap : float
        The ratio r of this module.

    Examples
    --------
    >>> found = estimate(np.array([1.0, 2.0, 3.0]))
    >>> found.mean, round(found.low, 3), round(found.high, 3), round(found.p, 4)
    (2.0, -0.484, 4.484, 0.0742)
    """
    units, mean = len(values), float(np.mean(values))
    if units == 1:
        return Estimate(mean, None, None, None, 1)
    if not np.any(values):
        return Estimate(0.0, 0.0, 0.0, 1.0, units)
    deviation = float(np.std(values, ddof=1))
    # scores of 1e6 eps that are rounded differently are the same
    if deviation <= 1e-9 * abs(mean):
        return Estimate(mean, None, None, None, units, identical=True)
    error = deviation * float(np.sqrt(1 / units + overlap))
    half = float(student.ppf((1 + LEVEL) / 2, units - 1)) * error
    return Estimate(mean, mean - half, mean + half, 2 * float(student.sf(abs(mean) / error, units - 1)), units)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values for their number.

    Examples
    --------
    >>> holm([0.03, 0.01, 0.4])
    [0.06, 0.03, 0.4]
    """
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
