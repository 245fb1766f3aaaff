"""The CPU seconds of a choice among methods, with work that its members share counted once.

Members of a choice that begin with the same imputation each have its seconds in their own ``seconds``, and beside them
as ``shared_seconds``. The table's row of the choice has the sum over members:

    seconds of the choice = sum over members of seconds - (members - 1) shared_seconds
"""

import polars as pl

from experiments.study import Study


def shared_seconds_once(table: pl.DataFrame, study: Study) -> pl.DataFrame:
    """The table with the seconds of choices mended; the same where no ``shared_seconds`` are stored."""
    if "shared_seconds" not in table.columns or table["shared_seconds"].null_count() == table.height:
        return table
    seconds = pl.col("seconds")
    for best in study.best:
        repeated = (len(best.members) - 1) * pl.col("shared_seconds").cast(pl.Float64).fill_null(0.0)
        chosen = (pl.col("method") == best.name) & pl.col("key").is_null()
        table = table.with_columns(pl.when(chosen).then(seconds - repeated).otherwise(seconds).alias("seconds"))
    return table
