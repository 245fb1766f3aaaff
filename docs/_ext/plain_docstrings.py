"""Docstrings are plain text with formulas: the bars and underscores in them are no markup.

In prose, ``|w|`` would be a substitution of reStructuredText, and ``coef_`` a link. Both are escaped, except inside
double backquotes, in examples and in indented blocks. References into scikit-learn's own pages become words.
"""

import re
from typing import Any

from sphinx.application import Sphinx

LITERAL = re.compile(r"(``[^`]*``|`[^`]+`)")
REFERENCE = re.compile(r":(?:ref|term):`([^`<]*?)\s*(?:<[^`>]*>)?`")
BAR = re.compile(r"(?<!\\)\|")
LINK = re.compile(r"(?<=\w)_(?!\w)")


def escape(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape the prose of a docstring in place."""
    example = False
    for i, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        is_head = i + 1 < len(lines) and set(lines[i + 1].strip()) == {"-"}
        if not (example or is_head or _is_table(line)):
            lines[i] = "".join(_prose(part) if k % 2 == 0 else part for k, part in enumerate(_parts(line)))


def _parts(line: str) -> list[str]:
    return LITERAL.split(REFERENCE.sub(r"\1", line))


def _prose(text: str) -> str:
    name, colon, rest = text.partition(" : ")
    if colon and re.fullmatch(r"\s*[\w, *]+", name):  # a parameter, which numpydoc reads as it is
        return name + colon + _prose(rest)
    return LINK.sub(r"\\_", BAR.sub(r"\\|", text))


def _is_table(line: str) -> bool:
    return re.fullmatch(r"[\s=]*", line) is not None


def setup(app: Sphinx) -> dict[str, bool]:
    """Run before numpydoc reads the docstring."""
    app.connect("autodoc-process-docstring", escape, priority=100)
    return {"parallel_read_safe": True}
