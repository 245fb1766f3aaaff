"""Averages over the paper's grid of sizes and missing fractions, interpolated from the cells run.

The paper averages over n = 40, 60, .., 1000 and p = .1, .2, .., .8. A run has some of these (n, p). With r(n, p) the
mean over what was run at (n, p), r is interpolated linearly in p at each n that was run, and then linearly in log n:

    r(n, .)  = piecewise linear in p through the fractions run at n
    r(., p)  = piecewise linear in log n through the sizes run
    average  = mean of r over the targets (49 sizes x 8 fractions) = sum over cells run of w(n, p) r(n, p)

The average is a weighted sum of the cells, with weights that sum to one and depend on the cells alone:
w(n, p) = a(n) b_n(p), where a(n) is the mean over target sizes of the hat function of n (in log n), b_n(p) that over
target fractions of the hat function of p among the fractions run at n. On a tensor of sizes and fractions this is
bilinear interpolation. There is no extrapolation: a size whose fractions do not span the targets is left out, and
:class:`NotCoveredError` is raised if the remaining sizes do not span the targets.

Standard errors. Cells are not independent: in the authors' instances five signals (replicate - 1 mod 5) of each kind
are used again at every n and p, with one or two shuffles each. The unit is therefore the signal. With A_s the
weighted sum over the cells of signal s alone, the average is mean_s A_s and its standard error sd_s(A_s) / sqrt(5);
that of a difference between two methods is computed from the five differences. An (n, p) counts only if it has all
five, of any shuffle, for every method that is compared (one may be failed or not run yet): a mean over fewer signals
would be at another level.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

Numbers = npt.NDArray[np.float64]

SIZES = tuple(range(40, 1001, 20))
FRACTIONS = tuple(tenths / 10 for tenths in range(1, 9))
SIGNALS = 5


class NotCoveredError(ValueError):
    """The cells that were run do not determine an average."""


@dataclass(frozen=True)
class Averages:
    """Averages of some methods on the same cells.

    Attributes
    ----------
    by_unit : dict
        From a method to one average per signal.
    cells : int
        Number of (n, p) used.
    """

    by_unit: Mapping[str, Numbers]
    cells: int


def mean_and_error(by_unit: Numbers) -> tuple[float, float | None]:
    """Mean over units and its standard error (``None`` with one unit).

    Examples
    --------
    >>> mean_and_error(np.array([1.0, 3.0]))
    (2.0, 1.0)
    """
    error = float(by_unit.std(ddof=1) / math.sqrt(len(by_unit))) if len(by_unit) > 1 else None
    return float(by_unit.mean()), error


def grid_averages(
    rows: pl.DataFrame,
    methods: Sequence[str],
    value: str,
    sizes: Sequence[int] = SIZES,
    fractions: Sequence[float] = FRACTIONS,
) -> Averages:
    """Interpolated averages, signal by signal, of methods on the cells that all of them have.

    Parameters
    ----------
    rows : DataFrame
        Rows of the authors' instances of one mechanism and one kind of signal.
    methods : sequence of str
    value : str
        A column: ``r2_authors``, ``score``, ``seconds``, ``depth``, ..
    sizes, fractions : sequences
        The targets.
    """
    cells = _cells_with_all_signals(rows, methods, value)
    weights = grid_weights(cells, sizes, fractions)
    by_unit = {
        method: np.array([sum(w * cells[cell][method, s] for cell, w in weights.items()) for s in range(SIGNALS)])
        for method in methods
    }
    return Averages(by_unit, len(weights))


def _cells_with_all_signals(
    rows: pl.DataFrame, methods: Sequence[str], value: str
) -> dict[tuple[int, float], dict[tuple[str, int], float]]:
    """The mean over shuffles by (n, p), method and signal, for the (n, p) that have them all."""
    if value not in rows.columns:
        raise NotCoveredError(f"The table has no column {value!r}.")
    if rows.is_empty():
        return {}
    unit = ((pl.col("replicate") - 1) % SIGNALS).alias("unit")
    number = pl.col(value).cast(pl.Float64)
    done = rows.filter(pl.col("method").is_in(list(methods)), pl.col("status") == "done", number.is_finite())
    by = ["n", pl.col("missing_fraction").round(6), "method", unit]
    cells: dict[tuple[int, float], dict[tuple[str, int], float]] = {}
    for n, p, method, index, mean in done.group_by(by).agg(number.mean()).sort(["n", "missing_fraction"]).iter_rows():
        cells.setdefault((n, p), {})[method, index] = mean
    wanted = len(set(methods)) * SIGNALS
    return {cell: means for cell, means in cells.items() if len(means) == wanted}


def grid_weights(
    cells: Iterable[tuple[int, float]], sizes: Sequence[int] = SIZES, fractions: Sequence[float] = FRACTIONS
) -> dict[tuple[int, float], float]:
    """Weights of the cells run in the average over the targets; cells left out have none.

    Examples
    --------
    >>> grid_weights([(40, 0.1), (40, 0.3), (1000, 0.1), (1000, 0.3)], sizes=[40], fractions=[0.1, 0.2])
    {(40, 0.1): 0.75, (40, 0.3): 0.25}
    """
    fractions_at: dict[int, list[float]] = {}
    for n, p in sorted(set(cells)):
        fractions_at.setdefault(n, []).append(p)
    by_fraction = {n: hat_weights(run, fractions) for n, run in fractions_at.items() if _reaches(run, fractions)}
    if not _reaches(list(by_fraction), sizes):
        raise NotCoveredError(
            f"The average needs cells at n from {min(sizes)} to {max(sizes)}, each with missing fractions from "
            f"{min(fractions)} to {max(fractions)} and all signals, but has them only at n = "
            f"{', '.join(map(str, by_fraction)) or '(none)'}: run more cells."
        )
    by_size = hat_weights(np.log(list(by_fraction)), np.log(sizes))
    return {
        (n, p): float(a * b)
        for (n, along_p), a in zip(by_fraction.items(), by_size, strict=True)
        for p, b in zip(fractions_at[n], along_p, strict=True)
        if a * b > 0
    }


def _reaches(run: Sequence[float], targets: Sequence[float]) -> bool:
    slack = 1e-9  # 0.1 * 8 and 0.8 may differ in the last digit
    return len(run) > 0 and min(run) <= min(targets) + slack and max(run) >= max(targets) - slack


def hat_weights(run: Sequence[float] | Numbers, targets: Sequence[float] | Numbers) -> Numbers:
    """Mean over targets of the hat functions of increasing positions: the weight of each position."""
    positions = np.asarray(run, float)
    hats = [np.interp(targets, positions, corner) for corner in np.eye(len(positions))]
    return np.asarray(np.mean(hats, axis=1))
