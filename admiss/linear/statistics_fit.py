"""Fits of the squared loss from statistics, certified from the statistics alone.

The moments of the statistics take the place of those of the rows; the engine is the same. The bound is that of
:mod:`formulations.erm.moment_bound`: it needs moments of columns that are not dependent up to rounding, after the ridge
penalty. Otherwise the certificate has no bound but 0, and says so.
"""

import numpy as np

from admiss._version import __version__
from admiss.estimator.observed import power_of_two
from admiss.linear.design import Design
from admiss.linear.from_statistics import TrainingSums
from admiss.linear.moments import eliminate
from admiss.linear.penalty import OVERWHELMING, Penalty
from admiss.linear.squared_fit import fit_moments
from admiss.linear.stated_program import Fit
from formulations.arrays import FloatArray
from formulations.certificate import certify, clock
from formulations.erm.dual_bound import gap_tolerance
from formulations.erm.moment_bound import moment_bound

# Status of a fit whose moments are too inaccurate for a proof.
NOT_FROM_MOMENTS = "not proven: the moments of the columns are too close to dependent"
# Least eigenvalue of the correlations of the columns for a fit without penalty.
DEPENDENT = 1e-10


def solve_sums(sums: TrainingSums, design: Design, penalty: Penalty) -> Fit | None:
    """Coefficients of the columns of the design, and their certificate; None if the conditions are not met."""
    start = clock()
    unit = float(power_of_two(sums.summary().size[-1]))
    scaled, change = design.in_powers_of_two()
    stated = penalty.for_target(unit, unit**2).in_units(change).at_most(OVERWHELMING)
    column_map = sums.column_map(scaled, unit)
    moments, shift = column_map.moments(sums), column_map.shift
    if not stated.is_positive:
        _refuse_dependent(eliminate(moments, scaled.free, shift).H)
    found = fit_moments(moments, scaled.free, shift, stated)
    if found is None:
        return None
    w, null = stated.without_overwhelmed(found[0]), found[1]
    objective, bound = moment_bound(
        column_map.second_moments(sums),
        column_map.sizes(sums),
        sums.products.accuracy,
        moments.S,
        stated.l1,
        stated.l2,
        shift.applied(w, scaled.free),
    )
    tolerance = gap_tolerance(objective, null)
    certificate = certify(objective, bound, tolerance, NOT_FROM_MOMENTS, "admiss engine", __version__, start)
    return w / change * unit, certificate.in_units(unit**2, unit)


def _refuse_dependent(H: FloatArray) -> None:
    size = np.sqrt(np.diag(H))
    used = size > 0
    R = H[np.ix_(used, used)] / size[used][:, None] / size[used]
    if len(R) and np.linalg.eigvalsh(R)[0] < DEPENDENT:
        raise ValueError(
            "Without a penalty the columns are dependent up to the accuracy of their moments: use lam > 0, or fit in "
            "memory."
        )
