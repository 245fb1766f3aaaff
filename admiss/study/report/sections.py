"""Sections: the tables of a study as text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A table with its title, and a text to read with it; ``conclusion`` is repeated in the README of results."""

    title: str
    text: str
    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    conclusion: str = ""

    @property
    def name(self) -> str:
        """The title as the name of a file.

        Examples
        --------
        >>> Section("R2 by n", "", [], []).name
        'r2-by-n'
        """
        return file_name(self.title)


def file_name(words: str) -> str:
    """Words as the name of a file: lower case, with hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines of a Markdown table."""
    return ["| " + " | ".join(map(str, cells)) + " |" for cells in (header, ["---"] * len(header), *rows)]
