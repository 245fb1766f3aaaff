"""Tables that nobody has prepared, as features and a target.

One reader for files, data frames, arrays and Dask: :func:`open_source` gives rows in chunks of bounded memory,
:func:`read_table` all of them at once, and :class:`TableEncoder` encodes frames in a pipeline.
:mod:`rules <admiss.tables.rules>` has the rules for columns, and :mod:`schema <admiss.tables.schema>` what they
decided, which is saved with a model.
"""

from admiss.tables.column import MISSING_WORDS as MISSING_WORDS
from admiss.tables.encoder import TableEncoder
from admiss.tables.opening import TableFile, open_source, read_table
from admiss.tables.schema import Schema

__all__ = ["Schema", "TableEncoder", "TableFile", "open_source", "read_table"]
