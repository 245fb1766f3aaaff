"""Reduced grids against those of the authors, on the authors' instances.

    reduced    the grids of the study ``synthetic`` at laptop scale
    authors    the authors' values in one cross-validation of 5 folds, on 40 instances
    nested     the authors' nested searches, timed on 20 instances but not compared

The name of a method ends with its grid in brackets. Forests and trees have the same search in "authors" and "nested":
their grids were not nested.
"""

from typing import Any

import polars as pl

from admiss.baselines import GRIDS
from admiss.study import Method, Product, Study
from admiss.study.report.sections import Section
from experiments.scales import SCALES
from experiments.studies.columns import METRICS, with_selected_depth
from experiments.studies.grids.methods import nested_adaptive, nested_joint
from experiments.studies.methods.families import (
    AUTHORS_PENALTIES,
    PENALTIES,
    REDUCED,
    adaptive_methods,
    joint_methods,
    native_methods,
    tuned_methods,
)
from experiments.studies.synthetic.grid import spread_instances

GRID_NAMES = ("reduced", "authors", "nested")
FIELDS = ["n", "mechanism", "signal", "missing_fraction", "replicate"]


def _named(methods: list[Method], grid: str) -> list[Method]:
    return [Method(f"{method.name} [{grid}]", method.run, method.parameters) for method in methods]


def _searches(grids: dict[str, Any], penalties: dict[str, Any]) -> list[Method]:
    """The methods that are compared: all with a reduced grid except the joint forest."""
    return [
        *adaptive_methods("authors", penalties)[:2],
        *tuned_methods("Mean", "mean", grids),
        *tuned_methods("mice", "together", grids),
        *native_methods(grids)[1:],
    ]


def _nested() -> list[Method]:
    tree, boosting = GRIDS["authors"]["tree"], GRIDS["authors"]["xgboost"]
    return _named(
        [
            Method("Affine intercept", nested_adaptive, {"adaptivity": "affine_intercept", **AUTHORS_PENALTIES}),
            Method("Affine", nested_adaptive, {"adaptivity": "affine", **AUTHORS_PENALTIES}),
            Method("Joint - linear", nested_joint, {"kind": "linear", "grid": {}, "protocol": "authors"}),
            Method("Joint - tree", nested_joint, {"kind": "tree", "grid": tree, "protocol": "authors"}),
            Method("Joint - XGBoost", nested_joint, {"kind": "xgboost", "grid": boosting, "protocol": "authors"}),
        ],
        "nested",
    )


def products(scale: str) -> list[Product]:
    """The grid of a scale; an odd step reaches every setting."""
    instances = spread_instances()
    compared, timed = (instances[:1], instances[:1]) if scale == "smoke" else (instances[::23], instances[::47])
    reduced, authors = (
        _named(_searches(REDUCED, PENALTIES), "reduced"),
        _named(_searches(GRIDS["authors"], AUTHORS_PENALTIES), "authors"),
    )
    if scale == "smoke":
        return [Product(compared, [*reduced[:2], *authors[:2]]), Product(timed, _nested()[2:4])]
    joint = _named(joint_methods("authors", REDUCED), "reduced")
    return [Product(compared, [*reduced, *authors]), Product(timed, [*joint, *_nested()])]


STUDY = Study(
    name="grids",
    scales=SCALES,
    title="Reduced grids against the authors'",
    description="What the reduced grids of laptop scale change in R2, and what the authors' searches cost.",
    products=products,
    metrics=METRICS,
    derived=with_selected_depth,
    settings=("mechanism", "signal", "n"),
    seconds=1800.0,
)


def grids_sections(table: pl.DataFrame) -> list[Section]:
    """Differences in R2 between grids over the same instances, and CPU seconds of each."""
    done = table.filter(pl.col("status") == "done").select("method", "r2_authors", "seconds", *FIELDS)
    split = done.with_columns(
        pl.col("method").str.replace(r" \[.*\]$", "").alias("name"),
        pl.col("method").str.extract(r"\[(.*)\]$").alias("grid"),
    )
    rows = []
    for name in sorted(split["name"].unique()):
        by_grid = {grid: split.filter((pl.col("name") == name) & (pl.col("grid") == grid)) for grid in GRID_NAMES}
        both = by_grid["reduced"].join(by_grid["authors"], on=FIELDS, suffix="_authors")
        difference = (both["r2_authors"] - both["r2_authors_authors"]).to_numpy()
        seconds = [by_grid[grid]["seconds"].to_numpy() for grid in GRID_NAMES]
        times = [round(float(values.mean()), 2) if len(values) else None for values in seconds]
        mean = round(float(difference.mean()), 4) if len(both) else None
        error = round(float(difference.std(ddof=1)) / len(both) ** 0.5, 4) if len(both) > 1 else None
        rows.append([name, len(both) or None, mean, error, *times])
    text = "R2 with the reduced grid minus R2 with the authors', over the same instances, and mean CPU seconds."
    header = ["method", "instances", "difference", "standard error", *(f"seconds, {grid}" for grid in GRID_NAMES)]
    return [Section("Reduced grids against the authors'", text, header, rows)]
