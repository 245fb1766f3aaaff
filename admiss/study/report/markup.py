"""Parts of the page as HTML; all data pass through :func:`~admiss.web_page.markup.text`."""

from collections.abc import Sequence

from admiss.study.report.drawing import Drawing, inline_svg
from admiss.study.report.presentation import ReferenceTable
from admiss.study.report.summary import Filter, Line
from admiss.study.sections import Section
from admiss.web_page.markup import NOTHING, details, number, plain_table, prose, scrolling, text, two_lines

SUMMARY_HEADER = (
    ("method", "Method"),
    ("cells", "Cells"),
    ("mean", "Mean"),
    ("error", "s.e."),
    ("difference", "Minus reference"),
    ("difference_error", "s.e."),
    ("better", "Better on"),
    ("seconds", "CPU seconds"),
)


def reference_table(table: ReferenceTable) -> str:
    """Means beside published ones, with three columns per setting; nothing if there are no rows."""
    if not table.rows:
        return ""
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
    return f"<h3>{text(table.title)}</h3>{prose(table.text)}{scrolling(table.title, whole)}"


def section_part(section: Section, heading: bool = True) -> str:
    """A section, with its heading if wanted; nothing if it has no rows."""
    if not section.rows:
        return ""
    table = plain_table(section.title, section.header, section.rows)
    head = f"<h3>{text(section.title)}</h3>" if heading else ""
    return f"{head}{prose(section.conclusion) if section.conclusion else ''}{prose(section.text)}{table}"


def signed(value: float, places: int = 3) -> str:
    """Format a difference with its sign."""
    shown = number(value, places)
    return f"+{shown}" if value > 0 and shown.strip("0.") else shown


def filter_controls(filters: Sequence[Filter], methods: Sequence[str], reference: str, metrics: Sequence[str]) -> str:
    """The controls above the table of means."""
    parts = []
    if len(metrics) > 1:
        options = "".join(_option(metric, name, metric == 0) for metric, name in enumerate(metrics))
        parts.append(f'<label class="control">Metric <select id="metric">{options}</select></label>')
    parts += [_control(setting, each) for setting, each in enumerate(filters)]
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


def summary_table(lines: Sequence[Line], places: int) -> str:
    """The table of means before any click; ``script.js`` rewrites its body."""
    head = "".join(
        f'<th scope="col" data-column="{name}"><button type="button">{title}</button></th>'
        for name, title in SUMMARY_HEADER
    )
    body = "".join(_summary_row(line, places) for line in lines)
    caption = "<caption>Means by method</caption>"
    table = f'<table id="summary">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return scrolling("Means by method", table)


def _summary_row(line: Line, places: int) -> str:
    def shown(value: float | None) -> str:
        return NOTHING if value is None else number(value, places)

    difference = NOTHING if line.difference is None else signed(line.difference, places)
    better = NOTHING if line.better is None else f"{number(100 * line.better, 1)} %"
    cells = (line.cells, shown(line.mean), shown(line.error), difference, shown(line.difference_error), better)
    method = text(line.method)
    values = "".join(f"<td>{text(value)}</td>" for value in (*cells, line.seconds))
    return f'<tr data-method="{method}"><th scope="row">{method}</th>{values}</tr>'


def figure_element(drawing: Drawing) -> str:
    """A figure with its caption, and its numbers in a collapsed table; narrow screens show its narrow version."""
    numbers = plain_table(f"{drawing.title}: numbers", drawing.header, drawing.rows)
    shown, folded = two_lines(drawing.caption)
    more = details("How to read this", f"<p>{text(folded)}</p>", "print") if folded else ""
    kind = "picture" if drawing.narrow is None else "picture on-wide"
    picture = scrolling(drawing.title, inline_svg(drawing, drawing.figure), kind)
    if drawing.narrow is not None:
        picture += f'<div class="picture on-narrow">{inline_svg(drawing, drawing.narrow, "-narrow")}</div>'
    return (
        f'<figure id="{text(drawing.name)}">{picture}'
        f"<figcaption><strong>{text(drawing.title)}.</strong> {text(shown)}{more}</figcaption>"
        f"{details('Numbers of this figure', numbers)}</figure>"
    )
