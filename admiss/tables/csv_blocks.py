"""Blocks of whole lines of a CSV file, tokenized by pyarrow where it gives the cells that the standard library gives.

That is so if every line has the cells of the header, and if quotation marks enclose whole cells within a line.
"""

import re
from typing import Any

import numpy as np


def without_quotes(block: str, separator: str) -> str | None:
    """The lines with x for quoted cells, or None if a quotation mark is elsewhere or a line may be part of a row.

    Examples
    --------
    >>> without_quotes('1,"a ""b"", c"', ","), without_quotes('1,5"', ",")
    ('1,x', None)
    """
    if "\r" in block and block.count("\r") != block.count("\r\n"):
        return None
    if '"' not in block:
        return block
    mark = re.escape(separator)
    rest = re.sub(rf'(?m)(^|{mark})"[^"\r\n]*(?:""[^"\r\n]*)*"(?={mark}|\r?$)', r"\1x", block)
    return None if '"' in rest else rest


def arrow_columns(block: str, rest: str, names: list[str], separator: str) -> dict[str, Any] | None:
    """The cells of a block as arrays of pyarrow without empty rows, or None if the standard library must read it.

    ``rest`` is the block :func:`without_quotes`.
    """
    try:
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import csv
    except ImportError:
        return None
    if separator not in ",;\t|:~":
        return None
    has_blanks = f"{separator} " in rest or "\n " in rest or rest.startswith(" ")
    if has_blanks and rest is not block:
        return None  # blanks before a cell are left out, those within quotation marks are not
    content = block.encode()
    try:
        table = csv.read_csv(
            pa.BufferReader(content),
            csv.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=names),
            csv.ParseOptions(delimiter=separator),
            csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
    except pa.ArrowInvalid:
        return None
    columns = [column.combine_chunks() for column in table.columns]
    if has_blanks:
        columns = [pc.utf8_ltrim(column, " ") for column in columns]
    empty = np.arange(len(table))
    for column in columns:
        cells = pc.utf8_trim_whitespace(column.take(pa.array(empty)))
        empty = empty[pc.equal(cells, "").to_numpy(zero_copy_only=False)]
        if not len(empty):
            return dict(zip(names, columns, strict=True))
    filled = pa.array(np.delete(np.arange(len(table)), empty))
    return {name: column.take(filled) for name, column in zip(names, columns, strict=True)}
