"""Pages from templates: one file that opens from disk and needs no network, as its content security policy says.

Text is escaped by the templates; figures are elements of SVG, see :mod:`admiss.report.figures`.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from admiss.atomic_write import write_atomically
from admiss.extras import optional_import
from admiss.terminal.table import ABSENT, number

# A paragraph shows whole sentences up to about two lines; what follows is folded.
TWO_LINES = 190
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9'(])")


def write_page(template: str, path: Path, **context: Any) -> None:
    """Write the page of a template, completely or not at all."""
    with optional_import("A page", "plots"):
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"shown": shown, "two_lines": two_lines, "kinds": column_kinds}
    page = environment.get_template(template).render(context)
    # text from files may hold halves of surrogate pairs, which UTF-8 does not have
    write_atomically(path, page.encode("utf-8", "xmlcharrefreplace"))


def shown(value: object) -> str:
    """A value of a table as text; numbers have three decimals.

    Examples
    --------
    >>> shown("<b>"), shown(0.12345), shown(None), shown(12345), shown(-0.0001)
    ('<b>', '0.123', '-', '12,345', '0.000')
    """
    if value is None:
        return ABSENT
    if isinstance(value, float):
        return number(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def two_lines(words: str) -> tuple[str, str]:
    """Split a text after the last sentence that ends within two lines.

    Examples
    --------
    >>> two_lines("Short.")
    ('Short.', '')
    >>> first, rest = two_lines("A sentence. " + "Many words. " * 40)
    >>> len(first), len(rest)
    (179, 311)
    """
    if len(words) <= TWO_LINES:
        return words, ""
    ends = [found.end() for found in SENTENCE.finditer(words) if found.start() < TWO_LINES]
    end = ends[-1] if ends else 0
    return words[:end].rstrip(), words[end:].rstrip()


def column_kinds(rows: Sequence[Sequence[object]]) -> list[str]:
    """Class of each column: text that does not begin like a number, long text that may be broken, or nothing."""
    kinds = []
    for column in zip(*rows, strict=True):
        texts = [value.lstrip("+-.<[ ") for value in column if isinstance(value, str)]
        is_text = any(text and not text[0].isdigit() for text in texts)
        kinds.append("" if not is_text else "text long" if max(map(len, texts)) > 30 else "text")
    return kinds
