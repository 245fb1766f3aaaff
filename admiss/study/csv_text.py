r"""Text in CSV files that no spreadsheet takes for a formula.

Spreadsheets run cells that begin with ``=``, ``+``, ``-`` or ``@`` (also in their wide forms), even after spaces, tabs,
line ends and quotes. Such a text gets an apostrophe in front, unless it is a number; numbers stay as they are. A reader
who wants the text itself removes the first apostrophe of cells that match ``^'([\s'"]*[=+\-@]|[\t\r\n])``.
"""

import re

import polars as pl

FORMULA = r"""^(?:[\s'"]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])"""
NUMBER = r"^[+-]?(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s?%?$"


def harmless(text: str) -> str:
    """Text for a cell of a CSV file.

    Examples
    --------
    >>> harmless("=1+2"), harmless(" @SUM(A1)"), harmless("-0.5"), harmless("ridge - mean")
    ("'=1+2", "' @SUM(A1)", '-0.5', 'ridge - mean')
    """
    return f"'{text}" if re.search(FORMULA, text) and not re.search(NUMBER, text) else text


def harmless_table(table: pl.DataFrame) -> pl.DataFrame:
    """The table with text and names of columns for a CSV file."""
    texts = pl.col(pl.String)
    risky = texts.str.contains(FORMULA) & ~texts.str.contains(NUMBER)
    return table.with_columns(pl.when(risky).then("'" + texts).otherwise(texts).name.keep()).rename(harmless)
