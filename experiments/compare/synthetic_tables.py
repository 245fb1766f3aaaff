"""Tables of the synthetic study beside the paper's.

Levels are those of the authors' instances, in their form of R2, averaged over the 49 x 8 grid by interpolation
(:mod:`experiments.compare.interpolation`). Fresh draws of the text have other signals, whose levels differ by more
than methods do: for them only paired differences between methods are given.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from experiments.compare import paper_numbers
from experiments.compare.interpolation import (
    FRACTIONS,
    SIZES,
    Averages,
    NotCoveredError,
    grid_averages,
    grid_weights,
    mean_and_error,
)
from experiments.compare.tables import ABSENT, Section, choices_section, digits, signed
from experiments.study import Study

SETTINGS = (("mcar", "linear"), ("mcar", "nn"), ("censoring", "linear"), ("censoring", "nn"))
MAIN = ("Adaptive LR - best", "Joint - best", "Mean - best", "mice - best", "CART MIA", "RF MIA", "XGBoost")
LEVELS = ("Affine intercept", "Affine", "Finite")
REFERENCE = "Mean - best"
AUTHORS, TEXT = "AuthorsInstance", "TextInstance"


def synthetic_sections(table: pl.DataFrame, study: Study) -> list[Section]:
    """All tables of the study."""
    others = [name for name in _methods(table) if name not in (*MAIN, *LEVELS)]
    return [
        _levels(table, "Synthetic R2", MAIN),
        _levels(table, "Synthetic R2 by adaptivity level", LEVELS),
        _other_methods(table, others),
        _by_size(table, "R2 by n", "r2_authors", (*LEVELS, *MAIN), 3),
        _by_fraction(table),
        _by_size(table, "Depth of the finite model by n", "depth", ("Finite",), 2),
        _seconds(table, others),
        choices_section(of_kind(table, AUTHORS), study, ["mechanism", "signal"]),
        _fresh_draws(table),
    ]


def of_kind(table: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Rows of a kind of instances."""
    return table.filter(pl.col("kind") == kind)


def of_setting(table: pl.DataFrame, kind: str, mechanism: str, signal: str) -> pl.DataFrame:
    """Rows of a kind of instances, a mechanism and a signal."""
    rows = of_kind(table, kind)
    return rows.filter(pl.col("mechanism") == mechanism, pl.col("signal") == signal) if len(rows) else rows


def _methods(table: pl.DataFrame) -> list[str]:
    return sorted(of_kind(table, AUTHORS)["method"].unique().to_list())


def _averages(
    table: pl.DataFrame,
    place: tuple[str, str],
    methods: Sequence[str],
    value: str,
    sizes: Sequence[int] = SIZES,
    fractions: Sequence[float] = FRACTIONS,
) -> Averages | None:
    """Averages on the authors' instances, or ``None`` where the cells run do not give them."""
    try:
        return grid_averages(of_setting(table, AUTHORS, *place), methods, value, sizes, fractions)
    except NotCoveredError:
        return None


def _levels(table: pl.DataFrame, title: str, methods: Sequence[str]) -> Section:
    """Our averages, the printed ones, the authors' over n >= 40, and whether the difference is within the tolerance."""
    printed, references = paper_numbers.synthetic_r2(), paper_numbers.synthetic_references()
    rows = []
    for method in methods:
        for place in SETTINGS:
            reference = references[method, *place]
            averages = _averages(table, place, [method], "r2_authors")
            value, error = mean_and_error(averages.by_unit[method]) if averages else (None, None)
            compared, allowed = reference.compared, paper_numbers.tolerance(method)
            difference = None if value is None or compared is None else value - compared
            if compared is None:
                verdict = "not compared"
            else:
                verdict = ABSENT if difference is None else "yes" if abs(difference) <= allowed else "no"
            ours = [str(averages.cells if averages else 0), digits(value), digits(error)]
            theirs = [digits(printed[method, *place].value), digits(reference.value), digits(compared)]
            rows.append([method, *place, *ours, *theirs, signed(difference), digits(allowed), verdict])
    text = (
        "Averages over n = 40, 60, .., 1000 and missing fractions .1, .., .8 on the authors' instances, interpolated "
        "from the cells (n, p) that were run, linearly in p and in log n; R2 in the authors' form. The standard error "
        "is over the five signals, which are the authors' own: it says how much other signals would move a level, not "
        "how far the two averages may be apart. 'compared' is the authors' average over n >= 40 without runs that "
        "exploded."
    )
    header = ["method", "mechanism", "signal", "cells", "R2", "s.e.", "printed", "authors n >= 40", "compared"]
    return Section(title, text, [*header, "difference", "tolerance", "within"], rows)


def _other_methods(table: pl.DataFrame, methods: Sequence[str]) -> Section:
    rows = []
    for method in methods:
        for place in SETTINGS:
            averages = _averages(table, place, [method], "r2_authors")
            value, error = mean_and_error(averages.by_unit[method]) if averages else (None, None)
            rows.append([method, *place, str(averages.cells if averages else 0), digits(value), digits(error)])
    text = "Averages as in the table above, of methods for which the paper prints none."
    return Section(
        "Synthetic R2 of other methods", text, ["method", "mechanism", "signal", "cells", "R2", "s.e."], rows
    )


def _by_size(table: pl.DataFrame, title: str, value: str, methods: Sequence[str], places: int) -> Section:
    """Averages over missing fractions at each n that was run."""
    rows = []
    for place in SETTINGS:
        for n in _run(table, place, "n"):
            found = [_averages(table, place, [method], value, sizes=[int(n)]) for method in methods]
            rows.append([*place, str(int(n)), _cells(found), *_means(found, methods, places)])
    text = "Averages over missing fractions .1, .., .8 on the authors' instances, interpolated linearly in p."
    return Section(title, text, ["mechanism", "signal", "n", "cells", *methods], rows)


def _by_fraction(table: pl.DataFrame) -> Section:
    """Averages over n at each missing fraction that was run."""
    methods = (*LEVELS, *MAIN)
    rows = []
    for place in SETTINGS:
        for p in _run(table, place, "missing_fraction"):
            found = [_averages(table, place, [method], "r2_authors", fractions=[p]) for method in methods]
            rows.append([*place, digits(p, 1), _cells(found), *_means(found, methods, 3)])
    text = "Averages over n = 40, 60, .., 1000 on the authors' instances, interpolated linearly in log n."
    return Section("R2 by missing fraction", text, ["mechanism", "signal", "p", "cells", *methods], rows)


def _run(table: pl.DataFrame, place: tuple[str, str], column: str) -> list[float]:
    rows = of_setting(table, AUTHORS, *place)
    return sorted(rows[column].unique().to_list()) if len(rows) else []


def _cells(found: Sequence[Averages | None]) -> str:
    """The number of (n, p) of the averages in a row; a range where methods differ."""
    counts = sorted({averages.cells for averages in found if averages})
    return "0" if not counts else str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _means(found: Sequence[Averages | None], methods: Sequence[str], places: int) -> list[str]:
    pairs = zip(found, methods, strict=True)
    return [
        digits(mean_and_error(averages.by_unit[name])[0], places) if averages else ABSENT for averages, name in pairs
    ]


def _seconds(table: pl.DataFrame, others: Sequence[str]) -> Section:
    printed = paper_numbers.synthetic_seconds()
    rows = []
    for method in (*LEVELS, *MAIN, *others):
        for place in SETTINGS:
            averages = _averages(table, place, [method], "seconds")
            ours = mean_and_error(averages.by_unit[method])[0] if averages else None
            theirs = printed[method, *place].value if (method, *place) in printed else None
            ratio = theirs / ours if ours and theirs else None
            cells = str(averages.cells if averages else 0)
            rows.append([method, *place, cells, digits(ours), digits(theirs), digits(ratio, 1)])
    text = (
        "CPU seconds of one thread for a fit with its search, averaged over the grid as R2 is, beside the seconds that "
        "the paper prints for another machine and larger grids. The seconds of a choice are those of all its members."
    )
    return Section(
        "Synthetic seconds", text, ["method", "mechanism", "signal", "cells", "seconds", "printed", "ratio"], rows
    )


def _fresh_draws(table: pl.DataFrame) -> Section:
    """Differences from mean imputation on fresh draws of the text, beside the authors'."""
    references = paper_numbers.synthetic_references()
    rows = []
    for method in (*LEVELS, *(name for name in MAIN if name != REFERENCE)):
        for mechanism, signal in SETTINGS:
            drawn = of_setting(table, TEXT, mechanism, signal)
            theirs, base = references[method, mechanism, signal], references[REFERENCE, mechanism, signal]
            expected = None
            if theirs.compared is not None and base.compared is not None:
                expected = theirs.compared - base.compared
            count, difference, error, over = _paired(drawn, method)
            rows.append(
                [method, mechanism, signal, str(count), over, signed(difference), digits(error), signed(expected)]
            )
    text = (
        f"R2 (as in scikit-learn) less that of {REFERENCE} on the same fresh draws, with the standard error over "
        "instances; beside it the difference between the authors' averages over n >= 40. Over 'grid': interpolated as "
        "above; over 'run': the plain mean over the instances, where their n and p do not reach the ends of the grid."
    )
    header = ["method", "mechanism", "signal", "instances", "over", "difference", "s.e.", "authors"]
    return Section("Differences on fresh draws", text, header, rows)


def _paired(drawn: pl.DataFrame, method: str) -> tuple[int, float | None, float | None, str]:
    """Instances that both methods have, the mean difference, its standard error, and what it is averaged over.

    Draws are independent. With weights w_i that sum to one, the standard error of sum_i w_i g_i is
    sd(g) sqrt(sum_i w_i^2); sd(g) includes what differs from cell to cell, so that it is rather too large.
    """
    columns = ["n", "missing_fraction", "replicate"]
    done = drawn.filter(pl.col("status") == "done", pl.col("score").is_finite())
    scores = [pl.col("score").filter(pl.col("method") == name).mean().alias(name) for name in (method, REFERENCE)]
    both = done.group_by(columns).agg(scores).drop_nulls().sort(columns) if len(done) else done
    if both.is_empty():
        return 0, None, None, ABSENT
    gains = (both[method] - both[REFERENCE]).to_numpy()
    cells = list(zip(both["n"].to_list(), both["missing_fraction"].round(6).to_list(), strict=True))
    try:
        of_cells, over = grid_weights(cells), "grid"
    except NotCoveredError:
        of_cells, over = {cell: cells.count(cell) / len(cells) for cell in set(cells)}, "run"
    weights = np.array([of_cells.get(cell, 0.0) / cells.count(cell) for cell in cells])
    error = float(gains.std(ddof=1) * np.sqrt((weights**2).sum())) if len(gains) > 1 else None
    return len(gains), float(weights @ gains), error, over
