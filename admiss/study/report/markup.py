"""Parts of the page as HTML; all data pass through :func:`text`."""

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from html import escape
from typing import Any

from admiss.study.report.drawing import Drawing, inline_svg
from admiss.study.report.presentation import ReferenceTable
from admiss.study.report.summary import Filter, Line

NOTHING = "-"
# Longer text may be broken; a table of more rows scrolls.
LONG_TEXT, MOST_ROWS = 30, 30
SUMMARY_HEADER = (
    ("method", "Method"),
    ("cells", "Cells"),
    ("mean", "Mean score"),
    ("error", "s.e."),
    ("difference", "Minus reference"),
    ("difference_error", "s.e."),
    ("better", "Better on"),
    ("seconds", "CPU seconds"),
)


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
    return scrolling(caption, table, "wide tall" if len(rows) > MOST_ROWS else "wide")


def scrolling(label: str, content: str, kind: str = "wide") -> str:
    """A frame that scrolls, with the keyboard too."""
    return f'<div class="{kind}" role="region" tabindex="0" aria-label="{text(label)}">{content}</div>'


def _kind(values: Sequence[Any]) -> str:
    """Class of a column: text that does not begin like a number, and long text that may be broken."""
    texts = [value.lstrip("+-. ") for value in values if isinstance(value, str)]
    if not any(value and not value[0].isdigit() for value in texts):
        return ""
    return ' class="text long"' if max(map(len, texts)) > LONG_TEXT else ' class="text"'


def reference_table(table: ReferenceTable) -> str:
    """Means beside published ones, with three columns per setting; only the text if there are no rows."""
    if not table.rows:
        return f"<p>{text(table.text)}</p>"
    groups = "".join(f'<th scope="colgroup" colspan="3">{text(name)}</th>' for name in table.settings)
    names = ("here", table.source, "difference")
    columns = "".join(f'<th scope="col">{text(name)}</th>' for name in names) * len(table.settings)
    body = ""
    for method, cells in table.rows:
        body += f'<tr><th scope="row">{text(method)}</th>'
        for column, value in enumerate(cells):
            kind = ("here", "published", "difference")[column % 3]
            shown = text(value) if value is None or kind != "difference" else signed(value)
            body += f'<td class="{kind}">{shown}</td>'
        body += "</tr>"
    spans = "<colgroup></colgroup>" + '<colgroup span="3"></colgroup>' * len(table.settings)
    head = f'<tr><th scope="col" rowspan="2">Method</th>{groups}</tr><tr>{columns}</tr>'
    caption = f"<caption>{text(table.title)}</caption>"
    whole = f"<table class='reference'>{caption}{spans}<thead>{head}</thead><tbody>{body}</tbody></table>"
    return f"<p>{text(table.text)}</p>" + scrolling(table.title, whole)


def signed(value: float) -> str:
    """Format a difference with its sign."""
    shown = number(value)
    return f"+{shown}" if value > 0 and shown.strip("0.") else shown


def filter_controls(filters: Sequence[Filter], methods: Sequence[str], reference: str) -> str:
    """The controls above the table of means."""
    parts = [_control(setting, each) for setting, each in enumerate(filters)]
    options = "".join(_option(method, name, name == reference) for method, name in enumerate(methods))
    parts.append(f'<label class="control">Reference <select id="reference">{options}</select></label>')
    parts.append(
        '<label class="control"><input type="checkbox" id="common"> '
        "only instances on which all methods shown are done</label>"
    )
    parts.append('<button type="reset" class="control">Reset</button>')
    return "".join(parts)


def _control(setting: int, each: Filter) -> str:
    name = text(each.title)
    if each.control == "boxes":
        boxes = "".join(
            f'<label><input type="checkbox" data-setting="{setting}" data-level="{level}"'
            f"{' checked' if selected else ''}> {text(word)}</label>"
            for level, (word, selected) in enumerate(zip(each.words, each.selected, strict=True))
        )
        return f"<fieldset><legend>{name}</legend>{boxes}</fieldset>"
    if each.control == "range":
        levels = [word for word, value in zip(each.words, each.levels, strict=True) if value is not None]
        selects = "".join(
            f'<label>{end} <select data-setting="{setting}" data-end="{end}">'
            + "".join(_option(level, word, level == start) for level, word in enumerate(levels))
            + "</select></label>"
            for end, start in (("from", 0), ("to", len(levels) - 1))
        )
        return f"<fieldset><legend>{name}</legend>{selects}</fieldset>"
    options = _option("", "all", True) + "".join(_option(i, word, False) for i, word in enumerate(each.words))
    return f'<label class="control">{name} <select data-setting="{setting}">{options}</select></label>'


def _option(value: object, shown: str, selected: bool) -> str:
    return f'<option value="{text(str(value))}"{" selected" if selected else ""}>{text(shown)}</option>'


def summary_table(lines: Sequence[Line]) -> str:
    """The table of means before any click; ``script.js`` rewrites its body."""
    head = "".join(
        f'<th scope="col" data-column="{name}"><button type="button">{title}</button></th>'
        for name, title in SUMMARY_HEADER
    )
    body = "".join(map(_summary_row, lines))
    caption = "<caption>Means by method</caption>"
    table = f'<table id="summary">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return scrolling("Means by method", table)


def _summary_row(line: Line) -> str:
    difference = NOTHING if line.difference is None else signed(line.difference)
    better = NOTHING if line.better is None else f"{number(100 * line.better, 1)} %"
    cells = (line.cells, line.mean, line.error, difference, line.difference_error, better, line.seconds)
    method = text(line.method)
    values = "".join(f"<td>{text(value)}</td>" for value in cells)
    return f'<tr data-method="{method}"><th scope="row">{method}</th>{values}</tr>'


def figure_element(drawing: Drawing) -> str:
    """A figure with its caption, and its numbers in a collapsed table."""
    numbers = plain_table(f"{drawing.title}: numbers", drawing.header, drawing.rows)
    return (
        f'<figure id="{text(drawing.name)}">{scrolling(drawing.title, inline_svg(drawing), "picture")}'
        f"<figcaption><strong>{text(drawing.title)}.</strong> {text(drawing.caption)}</figcaption>"
        f"<details><summary>Numbers of this figure</summary>{numbers}</details></figure>"
    )
