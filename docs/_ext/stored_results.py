"""A directive that shows stored tables: no number of a result is typed into the documentation.

    ```{stored-table} synthetic/synthetic-r2.csv synthetic/synthetic-r2-by-adaptivity-level.csv
    :where: mechanism=mcar|censoring
    :rows: method
    :across: mechanism, signal
    :cell: {R2} ({authors n >= 40})
    ```

reads these files of ``experiments/results``, keeps the rows with one of the values given (``a=b|c; d=e``), and shows
them with ``:rows:`` on the left, the values of ``:across:`` on top and a cell for each pair. Without ``:across:`` it
shows ``:columns:`` (``name`` or ``name = heading``, separated by semicolons), or all. A file, a column or a value
that does not exist is an error.
"""

import csv
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
Row = dict[str, str]


class StoredTable(SphinxDirective):
    """A table of ``experiments/results``."""

    required_arguments, optional_arguments = 1, 9
    option_spec: ClassVar[dict[str, Any]] = dict.fromkeys(
        ("where", "rows", "across", "cell", "columns"), directives.unchanged_required
    )

    def run(self) -> list[nodes.Node]:
        rows = self._filtered([row for name in self.arguments for row in self._read(name)])
        return [_table(*(self._pivoted(rows) if "across" in self.options else self._plain(rows)))]

    def _read(self, name: str) -> list[Row]:
        path = RESULTS / name
        self.env.note_dependency(str(path))
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def _filtered(self, rows: list[Row]) -> list[Row]:
        for condition in self._list("where", ";"):
            name, values = (part.strip() for part in condition.split("=", 1))
            for value in values.split("|"):
                if not any(self._value(row, name) == value for row in rows):
                    raise self.error(f"No row of {self.arguments[0]} has {name} = {value!r}.")
            order = values.split("|")
            rows = sorted((row for row in rows if row[name] in order), key=lambda row: order.index(row[name]))
        return rows

    def _pivoted(self, rows: list[Row]) -> tuple[list[str], list[list[str]]]:
        left, across = self._list("rows"), self._list("across")
        cells: dict[tuple[str, ...], dict[str, str]] = {}
        for row in rows:
            place = ", ".join(self._value(row, name) for name in across)
            missing = not self._value(row, self.options["cell"].split("{")[1].split("}")[0])
            text = "" if missing else self.options["cell"].format(**row).replace(" ()", "")
            cells.setdefault(tuple(self._value(row, name) for name in left), {})[place] = text
        top = list(dict.fromkeys(place for entries in cells.values() for place in entries))
        return [*left, *top], [[*key, *(entries.get(place, "") for place in top)] for key, entries in cells.items()]

    def _plain(self, rows: list[Row]) -> tuple[list[str], list[list[str]]]:
        columns = [part.partition(" = ") for part in self._list("columns", ";")] or [(name, "", "") for name in rows[0]]
        head = [heading or name for name, _, heading in columns]
        return head, [[self._value(row, name) for name, _, _ in columns] for row in rows]

    def _list(self, option: str, separator: str = ",") -> list[str]:
        return [part.strip() for part in self.options.get(option, "").split(separator) if part.strip()]

    def _value(self, row: Row, name: str) -> str:
        if name not in row:
            raise self.error(f"{self.arguments[0]} has no column {name!r}: it has {', '.join(row)}.")
        return row[name]


def _table(head: list[str], body: list[list[str]]) -> nodes.table:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in head), cols=len(head))
    group += nodes.thead("", _row(head))
    group += nodes.tbody("", *(_row(row) for row in body))
    return nodes.table("", group, classes=["stored"])


def _row(cells: list[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in cells))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("stored-table", StoredTable)
    return {"parallel_read_safe": True}
