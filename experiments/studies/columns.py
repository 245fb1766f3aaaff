"""Columns of tables that the paper's methods add: a second form of R2, and the selected depth of finite models."""

import polars as pl

# R2 as scikit-learn computes it, and in the form that the authors of the paper report.
METRICS = ("score", "r2_authors")


def with_selected_depth(table: pl.DataFrame) -> pl.DataFrame:
    """Add the depth limit that was selected, which the model need not reach, for models that have a depth."""
    if not {"chosen", "depth"} <= set(table.columns):
        return table
    limit = pl.col("chosen").str.json_path_match("$.max_depth").cast(pl.Int64, strict=False)
    return table.with_columns(pl.when(pl.col("depth").is_not_null()).then(limit).alias("selected_depth"))
