"""Tables of the study of intervals: coverage, the lowest feature and pattern, widths, by case and by real set.

Coverage of groups of test rows is pooled over the draws of a case or the splits of a set: the lowest coverage of many
groups in one draw is low by chance.
"""

import json
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import polars as pl

from admiss.study.report.sections import Section
from admiss.terminal.table import ABSENT, number
from experiments.studies.intervals.grid import CASES, SETS
from experiments.studies.intervals.instances import INCLUDED
from experiments.studies.intervals.methods import METHODS

# Fewest pooled rows of a group that counts.
FEWEST = 500
# Fewest pooled rows of a group in a real set.
FEWEST_REAL = 100
SHIFTS = {
    "none": "",
    "one": ", one feature 10 -> 40 %",
    "all": ", all features 10 -> 40 %",
    "gone": ", a feature disappears",
}
MECHANISMS = {"mcar": "MCAR", "censoring": "censoring", "target": "depending on y"}


@dataclass(frozen=True)
class Pooled:
    """One method in one case.

    ``error`` is the standard error of the mean coverage over draws. ``lowest_feature`` and ``lowest_pattern`` are a
    group and its coverage, or None if no group has enough rows; ``width`` is that of finite sets.
    """

    draws: int
    coverage: float
    error: float
    lowest_feature: tuple[str, float] | None
    lowest_pattern: tuple[str, float] | None
    width: float | None
    infinite: float


def pooled(rows: pl.DataFrame, fewest: int = FEWEST) -> Pooled:
    """Pool the cells of one method in one case."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for text in rows["counts"]:
        for group, (n, covered) in json.loads(text).items():
            counts[group][0] += n
            counts[group][1] += covered
    shares = {group: covered / n for group, (n, covered) in counts.items() if n >= fewest}
    patterns = {group: share for group, share in shares.items() if group.startswith(("missing ", "nothing "))}
    features = {group: share for group, share in shares.items() if group not in patterns}
    coverage = rows["score"].to_numpy()
    widths = rows["width"].drop_nulls()
    return Pooled(
        len(rows), float(coverage.mean()), float(coverage.std(ddof=1) / np.sqrt(len(rows))) if len(rows) > 1 else 0.0,
        _lowest(features), _lowest(patterns), float(widths.mean()) if len(widths) else None,  # type: ignore[arg-type]
        float(rows["infinite"].mean()),  # type: ignore[arg-type]
    )  # fmt: skip


def _lowest(shares: dict[str, float]) -> tuple[str, float] | None:
    return min(((group, share) for group, share in shares.items()), key=lambda pair: pair[1]) if shares else None


def case_words(mechanism: str, shift: str) -> str:
    """A case in words; shifts outside the guarantee of (1, m) have a star.

    Examples
    --------
    >>> case_words("mcar", "one"), case_words("censoring", "gone")
    ('MCAR, one feature 10 -> 40 %', 'censoring, a feature disappears *')
    """
    star = "" if shift == "none" or (mechanism, shift) in INCLUDED else " *"
    return f"{MECHANISMS[mechanism]}{SHIFTS[shift]}{star}"


def by_case(table: pl.DataFrame) -> dict[tuple[str, str, int, str], Pooled]:
    """Pooled results by mechanism, shift, calibration rows and method."""
    rows = finished(table, "ConformalDraw")
    found = {}
    for mechanism, shift in CASES:
        part = rows.filter((pl.col("mechanism") == mechanism) & (pl.col("shift") == shift))
        for n in sorted(part["n"].unique().to_list()):
            for method in METHODS:
                cells = part.filter((pl.col("n") == n) & (pl.col("method") == method))
                if len(cells):
                    found[mechanism, shift, n, method] = pooled(cells)
    return found


def finished(table: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Cells of one kind of instances that are done."""
    if "counts" not in table.columns:
        return table.clear()
    return table.filter((pl.col("kind") == kind) & pl.col("counts").is_not_null())


def interval_sections(table: pl.DataFrame) -> list[Section]:
    """All tables of the study."""
    return [_generated(table), _real(table)]


def _generated(table: pl.DataFrame) -> Section:
    rows = [
        [case_words(mechanism, shift), f"{n:,}", method, str(each.draws), number(each.coverage), number(each.error),
         *_group(each.lowest_feature), *_group(each.lowest_pattern), number(each.width, 2), number(each.infinite)]
        for (mechanism, shift, n, method), each in by_case(table).items()
    ]  # fmt: skip
    text = (
        "Level 90 %. Mean coverage over draws with its standard error; the lowest coverage given that a feature is "
        f"missing or observed, and of a pattern, pooled over draws, of groups with at least {FEWEST} test rows; mean "
        "width of finite intervals in standard deviations of y; share of infinite ones. * The guarantee of (1, m) does "
        "not include the shift."
    )
    header = ["case", "calibration rows", "method", "draws", "coverage", "s.e.", "lowest feature", "feature"]
    return Section("Generated data", text, [*header, "lowest pattern", "pattern", "width", "infinite"], rows)


def _group(lowest: tuple[str, float] | None) -> list[str]:
    return [ABSENT, ABSENT] if lowest is None else [number(lowest[1]), lowest[0]]


def _real(table: pl.DataFrame) -> Section:
    rows, cells = [], finished(table, "ConformalSet")
    for dataset in SETS if len(cells) else ():
        for method in METHODS:
            part = cells.filter((pl.col("dataset") == dataset) & (pl.col("method") == method))
            if len(part):
                each = pooled(part, FEWEST_REAL)
                n = int(np.mean(part["n_calibration"].to_numpy()))
                numbers = [number(each.coverage), *_group(each.lowest_feature), number(each.width, 2)]
                rows.append([dataset, f"{n:,}", method, str(each.draws), *numbers, number(each.infinite)])
    text = (
        "Level 90 %, sets with their own missing values, splits of the same rows (their coverages are dependent). "
        f"Lowest coverage given that a feature is missing or observed, of groups with at least {FEWEST_REAL} pooled "
        "test rows. Width as above; for classes the mean size of sets that leave a class out, and 'infinite' is the "
        "share of sets with all classes."
    )
    header = [
        "set",
        "calibration rows",
        "method",
        "splits",
        "coverage",
        "lowest feature",
        "feature",
        "width",
        "infinite",
    ]
    return Section("Real sets", text, header, rows)
