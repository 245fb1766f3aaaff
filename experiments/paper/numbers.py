"""Numbers printed in the paper, under the method names of this project.

The files in ``experiments/paper`` keep the paper's names; :data:`METHODS` translates them. Besides the printed tables
they hold the authors' averages over n >= 40 (``synthetic_r2_from_40_rows.csv``): the printed main table also averages
n = 20, which the text excludes. A reproduction is compared with the column ``compared``, which is empty if some of the
authors' runs exploded and made their average meaningless.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent

METHODS = {
    "Adaptive LR - best": "Adaptive LR - best", "Affine Intercept Only": "Affine intercept", "Affine": "Affine",
    "Finite": "Finite", "Joint Impute-then-Regress - best": "Joint - best",
    "Mean Impute-then-Regress - best": "Mean - best", "mice Impute-then-Regress - best": "mice - best",
    "CART MIA": "CART MIA", "RF MIA": "RF MIA", "RF": "RF MIA", "XGBoost": "XGBoost",
    "Complete Features": "Complete features - best", "mean Imp-then-Reg": "Mean - best",
    "mice Imp-then-Reg": "mice - best", "Adaptive LR - Affine intercept only": "Affine intercept",
    "Adaptive LR - Affine intercept": "Affine intercept", "Joint Imp-then-Reg": "Joint - best",
    "Oracle": "Oracle - best",
}  # fmt: skip
TOLERANCE = 0.01
TOLERANCE_OF_FORESTS = 0.015
FORESTS = ("RF MIA", "Joint - best", "Mean - best", "mice - best")


@dataclass(frozen=True)
class Printed:
    """A printed number, with its standard error if one is printed."""

    value: float
    error: float | None


@dataclass(frozen=True)
class Reference:
    """The authors' average over n >= 40, and the number to compare a reproduction with, or ``None``."""

    value: float
    compared: float | None
    remark: str


def tolerance(method: str) -> float:
    """Tolerated difference between a reproduction and the authors' average.

    Examples
    --------
    >>> tolerance("Affine"), tolerance("Mean - best")
    (0.01, 0.015)
    """
    return TOLERANCE_OF_FORESTS if method in FORESTS else TOLERANCE


def synthetic_r2() -> dict[tuple[str, str, str], Printed]:
    """Printed R2 by method, mechanism and signal: the main table and the one by adaptivity level."""
    return {
        (METHODS[row["method"]], row["mechanism"], row["signal"]): _printed(row, "r2")
        for name in ("synthetic_r2", "adaptive_levels_r2")
        for row in _rows(name)
    }


def synthetic_seconds() -> dict[tuple[str, str, str], Printed]:
    """Printed seconds by method, mechanism and signal, of the same two tables."""
    return {
        (METHODS[row["method"]], row["mechanism"], row["signal"]): _printed(row, "seconds")
        for name in ("synthetic_seconds", "adaptive_levels_seconds")
        for row in _rows(name)
    }


def synthetic_references() -> dict[tuple[str, str, str], Reference]:
    """The authors' averages over n >= 40 by method, mechanism and signal."""
    return {
        (METHODS[row["method"]], row["mechanism"], row["signal"]): Reference(
            float(row["r2"]), float(row["compared"]) if row["compared"] else None, row["remark"]
        )
        for row in _rows("synthetic_r2_from_40_rows")
    }


def real_design_accuracy() -> dict[tuple[str, str], Printed]:
    """Printed accuracy by method and design (``mar``, ``nmar``, ``am``, ``real``)."""
    rows = _rows("real_design_accuracy")
    return {(METHODS[row["method"]], row["setting"].lower()): _printed(row, "accuracy") for row in rows}


def semi_synthetic_by_fraction() -> dict[tuple[str, str, int], Printed]:
    """Printed R2 by method, design and number of features of the signal, out of 10, that can be missing."""
    return {
        (METHODS[row["method"]], row["setting"].lower(), round(10 * float(row["fraction_missing"]))): _printed(
            row, "r2"
        )
        for row in _rows("semi_synthetic_by_fraction")
    }


def _printed(row: dict[str, str], column: str) -> Printed:
    return Printed(float(row[column]), float(row["se"]) if row["se"] else None)


@cache
def _rows(name: str) -> tuple[dict[str, str], ...]:
    with (FOLDER / f"{name}.csv").open(newline="") as lines:
        return tuple(csv.DictReader(lines))
