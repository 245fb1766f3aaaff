"""HTML of text, numbers and tables; all data pass through :func:`text`."""

import math
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from html import escape
from pathlib import Path
from typing import Any

# Style sheet of all pages, which their own follow.
SHARED_STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
NOTHING = "-"
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9'(])")


def text(value: object) -> str:
    """Escape a value for an element or an attribute; numbers have three decimals.

    Examples
    --------
    >>> text("<b>"), text(0.12345), text(None), text(12345), text(-0.0001)
    ('&lt;b&gt;', '0.123', '-', '12,345', '0.000')
    """
    if value is None:
        return NOTHING
    if isinstance(value, float):
        return escape(number(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return escape(str(value))


def element(name: str, content: str = "", **attributes: object) -> str:
    """An element of SVG around markup; ``kind`` is its class, and lengths have one decimal.

    Examples
    --------
    >>> element("rect", kind="bar", x=1.25, width=10), element("text", text("<"), text_anchor="end")
    ('<rect class="bar" x="1.2" width="10"/>', '<text text-anchor="end">&lt;</text>')
    """
    start = name
    for key, value in attributes.items():
        words = str(round(value, 1) if isinstance(value, float) else value)
        start += f' {"class" if key == "kind" else key.replace("_", "-")}="{escape(words)}"'
    return f"<{start}>{content}</{name}>" if content else f"<{start}/>"


def number(value: float, digits: int = 3) -> str:
    """Format a number with fixed decimals, and the sign of what is shown; halves are rounded up, as in JavaScript.

    Examples
    --------
    >>> number(6.25, 1), number(-1234.5, 0), number(-0.0001)
    ('6.3', '-1,235', '0.000')
    """
    if not math.isfinite(value):
        return str(value)
    shown = f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,f}"
    return shown.removeprefix("-") if not shown.strip("-0.,") else shown


def plain_table(caption: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table whose first column names the rows."""
    kinds = [_kind([row[column] for row in rows]) for column in range(len(header))]
    head = "".join(f'<th scope="col"{kind}>{text(name)}</th>' for name, kind in zip(header, kinds, strict=True))
    body = ""
    for row in rows:
        cells = (f"<td{kind}>{text(value)}</td>" for value, kind in zip(row[1:], kinds[1:], strict=True))
        body += f'<tr><th scope="row"{kinds[0]}>{text(row[0])}</th>{"".join(cells)}</tr>'
    table = f"<table><caption>{text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return scrolling(caption, table, "wide tall" if len(rows) > 30 else "wide")


def scrolling(label: str, content: str, kind: str = "wide") -> str:
    """A frame that scrolls, with the keyboard too."""
    return f'<div class="{kind}" role="region" tabindex="0" aria-label="{text(label)}">{content}</div>'


def details(title: str, content: str, kind: str = "") -> str:
    """A part that is shown on demand; one of the kind "print" is also on paper."""
    named = f' class="{kind}"' if kind else ""
    return f"<details{named}><summary>{text(title)}</summary>{content}</details>"


def two_lines(words: str, most: int = 190) -> tuple[str, str]:
    """Split a text after the last sentence that ends within two lines, of so many characters at most.

    Examples
    --------
    >>> two_lines("Short.")
    ('Short.', '')
    >>> shown, folded = two_lines("A sentence. " + "Many words. " * 40)
    >>> len(shown), len(folded)
    (179, 311)
    """
    if len(words) <= most:
        return words, ""
    ends = [found.end() for found in SENTENCE.finditer(words) if found.start() < most]
    end = ends[-1] if ends else 0
    return words[:end].rstrip(), words[end:].rstrip()


def prose(words: str) -> str:
    """A paragraph of which all beyond two lines is folded away."""
    shown, folded = two_lines(words)
    first = f"<p>{text(shown)}</p>" if shown else ""
    return first + (details("How to read this", f"<p>{text(folded)}</p>", "print") if folded else "")


def _kind(values: Sequence[Any]) -> str:
    """Class of a column: text that does not begin like a number, and long text that may be broken."""
    texts = [value.lstrip("+-.< ") for value in values if isinstance(value, str)]
    if not any(value and not value[0].isdigit() for value in texts):
        return ""
    return ' class="text long"' if max(map(len, texts)) > 30 else ' class="text"'
