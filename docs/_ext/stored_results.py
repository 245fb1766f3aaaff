"""Stored tables and numbers of results: none of them is typed into the documentation.

    ```{stored-table} synthetic/synthetic-r2.csv synthetic/synthetic-r2-by-adaptivity-level.csv
    :where: mechanism=mcar|censoring
    :rows: method
    :across: mechanism, signal
    :cell: {R2} ({authors n >= 40})
    ```

reads these files of ``experiments/results``, keeps the rows with one of the values given (``a=b|c; d=e``), and shows
them with ``:rows:`` on the left, the values of ``:across:`` on top and a cell for each pair. Without ``:across:`` it
shows ``:columns:`` (``name`` or ``name = heading``, separated by semicolons), or all.

    ```{stored-counts} synthetic/claims.csv shift/claims.csv
    :columns: verdict = raw; adjusted
    ```

counts the values of columns, with a line for each file and column. The role

    {stored}`synthetic/claims.csv; rule=greater; verdict=confirmed; count`

is a number in the text: after the file and the conditions comes ``count`` (of rows), or the column of the only row, or
``min column`` or ``max column``. A file, a column or a value that does not exist is an error.
"""

import csv
import re
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective, SphinxRole

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
# Cells with more characters are wrapped.
LONG = 40
FIELD = r"\{([^}]+)\}"
Row = dict[str, str]


class StoredNumber(SphinxRole):
    """A number of ``experiments/results``."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        name, *conditions, wanted = (part.strip() for part in self.text.split(";"))
        try:
            found = stored_number(kept(stored_rows(self.env, name), conditions), wanted)
        except (ValueError, OSError) as error:
            return [], [self.inliner.reporter.error(f"{self.text}: {error}", line=self.lineno)]
        return [nodes.inline("", found.lstrip("'"), classes=["stored"])], []


def stored_number(rows: list[Row], wanted: str) -> str:
    """A count, a cell, or an extreme of a column."""
    if wanted == "count":
        return str(len(rows))
    pick, _, column = wanted.partition(" ")
    if pick in ("min", "max") and column:
        values = [value for row in rows if (value := _value(row, column))]
        return {"min": min, "max": max}[pick](values, key=float)
    if len(rows) != 1:
        raise ValueError(f"{len(rows)} rows instead of one.")
    return _value(rows[0], wanted)


def stored_rows(env: BuildEnvironment, name: str) -> list[Row]:
    """The rows of a file, on which the page then depends."""
    path = RESULTS / name
    env.note_dependency(str(path))
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def kept(rows: list[Row], conditions: list[str]) -> list[Row]:
    """The rows that satisfy all conditions, in the order of the values given."""
    for condition in conditions:
        name, values = (part.strip() for part in condition.split("=", 1))
        order = values.split("|")
        for value in order:
            if not any(_value(row, name) == value for row in rows):
                raise ValueError(f"No row has {name} = {value!r}.")
        rows = sorted((row for row in rows if row[name] in order), key=lambda row: order.index(row[name]))
    return rows


def _value(row: Row, name: str) -> str:
    if name not in row:
        raise ValueError(f"There is no column {name!r}, only {', '.join(row)}.")
    return row[name]


class StoredTable(SphinxDirective):
    """A table of ``experiments/results``."""

    required_arguments, optional_arguments = 1, 9
    option_spec: ClassVar[dict[str, Any]] = dict.fromkeys(
        ("where", "rows", "across", "cell", "columns"), directives.unchanged_required
    )

    def run(self) -> list[nodes.Node]:
        try:
            return [_table(*self._shown())]
        except (ValueError, OSError) as error:
            raise self.error(f"{self.arguments[0]}: {error}") from None

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        rows = [row for name in self.arguments for row in stored_rows(self.env, name)]
        rows = kept(rows, self._list("where", ";"))
        return self._pivoted(rows) if "across" in self.options else self._plain(rows)

    def _pivoted(self, rows: list[Row]) -> tuple[list[str], list[list[str]]]:
        left, across = self._list("rows"), self._list("across")
        cells: dict[tuple[str, ...], dict[str, str]] = {}
        for row in rows:
            place = ", ".join(_value(row, name) for name in across)
            fields = [_value(row, name) for name in re.findall(FIELD, self.options["cell"])]
            text = re.sub(FIELD, "{}", self.options["cell"]).format(*fields).replace(" ()", "") if fields[0] else ""
            cells.setdefault(tuple(_value(row, name) for name in left), {})[place] = text
        top = list(dict.fromkeys(place for entries in cells.values() for place in entries))
        return [*left, *top], [[*key, *(entries.get(place, "") for place in top)] for key, entries in cells.items()]

    def _plain(self, rows: list[Row]) -> tuple[list[str], list[list[str]]]:
        columns = self._columns() or [(name, name) for name in rows[0]]
        return [heading for _, heading in columns], [[_value(row, name) for name, _ in columns] for row in rows]

    def _columns(self) -> list[tuple[str, str]]:
        """Names and headings."""
        parts = [part.partition(" = ") for part in self._list("columns", ";")]
        return [(name, heading or name) for name, _, heading in parts]

    def _list(self, option: str, separator: str = ",") -> list[str]:
        return [part.strip() for part in self.options.get(option, "").split(separator) if part.strip()]


class StoredCounts(StoredTable):
    """How often each value of a column occurs, file by file."""

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        counts = {}
        for name in self.arguments:
            rows = stored_rows(self.env, name)
            for column, heading in self._columns():
                counts[Path(name).parent.name, heading] = Counter(_value(row, column) for row in rows)
        values = list(dict.fromkeys(value for each in counts.values() for value in sorted(each)))
        body = [[*key, str(each.total()), *(str(each[value]) for value in values)] for key, each in counts.items()]
        head = ["study", "verdicts", "all", *values]
        return (head, body) if len(self.arguments) > 1 else (head[1:], [row[1:] for row in body])


def _table(head: list[str], body: list[list[str]]) -> nodes.table:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in head), cols=len(head))
    group += nodes.thead("", _row(head))
    group += nodes.tbody("", *(_row(row) for row in body))
    return nodes.table("", group, classes=["stored"])


def _row(cells: list[str]) -> nodes.row:
    entries = [nodes.entry("", nodes.paragraph("", cell), classes=["words"] * (len(cell) > LONG)) for cell in cells]
    return nodes.row("", *entries)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives and the role."""
    app.add_directive("stored-table", StoredTable)
    app.add_directive("stored-counts", StoredCounts)
    app.add_role("stored", StoredNumber())
    return {"parallel_read_safe": True}
