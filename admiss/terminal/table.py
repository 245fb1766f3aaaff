"""A small table: a dict of columns that prints itself.

``pandas.DataFrame(table)`` and ``polars.DataFrame(table)`` convert it; neither is required here.
"""

from typing import Any

import numpy as np

# Largest number of printed rows; of a longer table the first and the last ones.
PRINTED_ROWS = 100
# Largest number of printed characters of a cell.
PRINTED_WIDTH = 60


class Table(dict[str, Any]):
    """Columns of equal length by name, printed as aligned text.

    Examples
    --------
    >>> Table(feature=["age", "income"], coefficient=[1.25, -0.5])
    feature  coefficient
    age             1.25
    income          -0.5
    """

    def __init__(self, **columns: Any) -> None:
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        if len({len(values) for values in arrays.values()}) > 1:
            raise ValueError("The columns of a table must have the same length.")
        super().__init__(arrays)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.values()), ()))

    def __repr__(self) -> str:
        columns = []
        half = PRINTED_ROWS // 2
        for name, values in self.items():
            numeric = values.dtype.kind in "fiu"
            long = len(values) > PRINTED_ROWS
            shown = [*values[:half], *values[-half:]] if long else values
            cells = [name, *(f"{value:.6g}" if values.dtype.kind == "f" else str(value) for value in shown)]
            cells = [cell if len(cell) <= PRINTED_WIDTH else cell[: PRINTED_WIDTH - 3] + " .." for cell in cells]
            if long:
                cells.insert(half + 1, "..")
            width = max(map(len, cells))
            columns.append([cell.rjust(width) if numeric else cell.ljust(width) for cell in cells])
        return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))
