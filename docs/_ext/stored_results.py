"""A directive that shows a stored table: no number of a result is typed into the documentation.

    ```{stored-table} synthetic/claims.csv
    :columns: claim, verdict, value, 95 % interval
    :where: mechanism=censoring
    ```

reads ``experiments/results/synthetic/claims.csv``, keeps the columns named, in that order, and the rows with the given
values (``a=b; c=d``). A file, a column or a value that does not exist is an error of the build.
"""

import csv
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


class StoredTable(SphinxDirective):
    """A table of ``experiments/results``."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"columns": directives.unchanged, "where": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        path = RESULTS / self.arguments[0]
        self.env.note_dependency(str(path))
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            names, rows = list(reader.fieldnames or []), list(reader)
        for condition in filter(None, self.options.get("where", "").split(";")):
            name, value = (part.strip() for part in condition.split("=", 1))
            self._check(name, names)
            rows = [row for row in rows if row[name] == value]
        columns = [name.strip() for name in self.options["columns"].split(",")] if "columns" in self.options else names
        for name in columns:
            self._check(name, names)
        if not rows:
            raise self.error(f"No row of {path.name} satisfies {self.options['where']!r}.")
        return [_table(columns, [[row[name] for name in columns] for row in rows])]

    def _check(self, name: str, names: list[str]) -> None:
        if name not in names:
            raise self.error(f"{self.arguments[0]} has no column {name!r}: it has {', '.join(names)}.")


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
