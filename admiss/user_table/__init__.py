"""Features and a target from a CSV or Parquet file that nobody has prepared.

:mod:`file <admiss.user_table.file>` reads columns, :mod:`notation <admiss.user_table.notation>` finds numbers
and dates in text, :mod:`target <admiss.user_table.target>` determines the task,
:mod:`features <admiss.user_table.features>` encodes the other columns, and
:mod:`table <admiss.user_table.table>` is the door.
"""

from admiss.user_table.column import MISSING_WORDS
from admiss.user_table.table import TableFile, read_table

__all__ = ["MISSING_WORDS", "TableFile", "read_table"]
