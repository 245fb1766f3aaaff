"""The rows on which the contract checks an adaptivity class, and functions shared by its checks.

4 features, 9 of the 16 patterns with 5 to 16 rows each, correlated values around 1. Checks of a class alone pass these
rows to ``fit`` and ``columns`` as they are; estimators centre them first, and a class sees x - c in the user's units.

Models without a structure must agree to 1e-6 of the spread of y; models with a structure, which are solved by an
interior-point method, to 1e-4.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from admiss.adaptivity import Adaptivity
from admiss.bounds.counts import all_patterns, dense
from admiss.linear.estimators import AdaptiveRegressor
from formulations.arrays import BoolArray, FloatArray, IntArray

# The number of rows of each pattern, all different to distinguish the patterns.
PATTERN_ROWS = {
    "....": 16, "x...": 13, ".x..": 12, "..x.": 11, "...x": 10, "xx..": 9, "..xx": 8, "xxx.": 7, "xxxx": 5,
}  # fmt: skip
# The number of features: four tell one, two, three and all missing apart.
D = 4
# A penalty in the middle of its range: neither least squares nor nothing but the intercept.
LAM = 0.5
# What to do about a learner in fit that draws random numbers.
DRAWS_AT_RANDOM = (
    "a randomised learner in fit (a forest, k-means, an imputer that samples) needs a random_state, a parameter of the "
    "class with a number as its default"
)
# A penalty that leaves nothing but the free intercept.
HUGE = 1e6


@dataclass(frozen=True)
class ContractRows:
    """Rows of the checks: X with NaN, the complete values, the patterns, and a target that depends on both."""

    X: FloatArray
    values: FloatArray
    M: BoolArray
    y: FloatArray


def contract_rows() -> ContractRows:
    """The rows, the same in every call."""
    rng = np.random.RandomState(0)
    patterns = [[mark == "x" for mark in text] for text, count in PATTERN_ROWS.items() for _ in range(count)]
    M = rng.permutation(np.array(patterns))
    values = 1.0 + rng.standard_normal(M.shape) @ np.array(
        [[1, 0.5, 0, 0], [0, 1, 0.5, 0], [0, 0, 1, 0.5], [0, 0, 0, 1]]
    )
    weights = np.array([1.0, -1.0, 0.5, 2.0]) + np.where(M[:, [1]], 0.5, 0.0)
    y = 2.0 + (values * weights).sum(axis=1) + M @ np.array([0.5, 1.0, -1.0, 1.5]) + 0.5 * rng.standard_normal(len(M))
    return ContractRows(np.where(M, np.nan, values), values, M, y)


def rows_of_all_patterns(each: int = 1) -> tuple[FloatArray, BoolArray]:
    """Random rows of every pattern, and the patterns."""
    M = np.repeat(all_patterns(D).astype(bool), each, axis=0)
    return np.where(M, np.nan, np.random.RandomState(5).standard_normal(M.shape)), M


def fitted_class(adaptivity: Adaptivity, X: FloatArray, sample_weight: FloatArray | None = None) -> Adaptivity:
    """The class fitted to rows in the same way as by estimators."""
    weighted = has_fit_parameter(adaptivity, "sample_weight") and sample_weight is not None
    return adaptivity.fit(X, np.isnan(X), **({"sample_weight": sample_weight} if weighted else {}))


def fitted_with_size(adaptivity: Adaptivity) -> tuple[Adaptivity, int]:
    """The class fitted to the rows, and its number of basis functions."""
    rows = contract_rows()
    fitted = fitted_class(adaptivity, rows.X)
    return fitted, int(fitted.basis(rows.M.astype(float)).shape[1])


def fitted_model(adaptivity: Adaptivity | str, X: FloatArray, y: Any, weights: Any = None, **options: Any) -> Any:
    """A regressor with a penalty that makes its coefficients unique, of both kinds."""
    options = {"lam": LAM, "l1_ratio": 0.5, "adaptive_penalty": 1.0, **options}
    return AdaptiveRegressor(adaptivity, **options).fit(X, y, weights)


def centred(X: FloatArray) -> FloatArray:
    """Rows as estimators pass them to ``fit`` and ``columns``: features minus the means of their observed values."""
    return X - np.nanmean(X, axis=0)


def replaces_columns(adaptivity: Adaptivity) -> bool:
    """Whether the columns are not the products x_j (1 - m_j) phi_k(m)."""
    return type(adaptivity).columns is not Adaptivity.columns


def cells_of(adaptivity: Adaptivity, rows: ContractRows) -> IntArray:
    """The cell of each row, with its own free intercept; a single one unless the class has cells."""
    if not adaptivity.cells:
        return np.zeros(len(rows.y), dtype=np.int64)
    return np.asarray(dense(fitted_class(adaptivity, rows.X).basis(rows.M.astype(float))).argmax(axis=1))


def means_of(values: FloatArray, groups: IntArray) -> FloatArray:
    """The mean of the group of each value."""
    return (np.bincount(groups, values) / np.maximum(np.bincount(groups), 1))[groups]


def require(condition: Any, wrong: str) -> None:
    """Fail with a message that says what is wrong and what to do about it."""
    if not condition:
        raise AssertionError(wrong)


def require_close(
    adaptivity: Adaptivity, found: Any, expected: Any, wrong: str, tolerance: float | None = None
) -> None:
    """Fail if numbers in the units of y differ; y has a standard deviation of about 3."""
    allowed = tolerance or (1e-4 if adaptivity.has_structure() else 1e-6)
    difference = np.max(np.abs(np.asarray(found) - np.asarray(expected)), initial=0.0)
    require(difference <= 3 * allowed, f"{wrong} (they differ by {difference:.2g})")


def by_name(checks: list[Callable[[Adaptivity], None]]) -> dict[str, Callable[[Adaptivity], None]]:
    """Checks by name, in the given order."""
    return {check.__name__.removeprefix("check_"): check for check in checks}
