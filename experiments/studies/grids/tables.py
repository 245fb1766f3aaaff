"""Table of the study of grids: differences in R2, and seconds."""

import polars as pl

from admiss.study.sections import Section

GRID_NAMES = ("reduced", "authors", "nested")
FIELDS = ["n", "mechanism", "signal", "missing_fraction", "replicate"]


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
