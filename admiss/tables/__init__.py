"""Tables that nobody has prepared, as features and a target.

:func:`read_table` reads one file into memory and decides what each column is; :func:`open_source` reads files, data
frames, arrays and Dask in chunks of bounded memory, with columns that a schema fixes before the first chunk.
:mod:`column <admiss.tables.column>` has the rules that both share: missing values, numbers, days, levels of text.
"""

from admiss.tables.column import MISSING_WORDS
from admiss.tables.opening import open_source
from admiss.tables.table import TableFile, read_table

__all__ = ["MISSING_WORDS", "TableFile", "open_source", "read_table"]
