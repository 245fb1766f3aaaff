"""Parameters in full: types that a docstring takes from another object, and defaults from the signature.

Docstrings say "As in ``AdaptiveRegressor``" rather than repeat a paragraph. In the reference every parameter and every
attribute is described where it stands, so such entries are replaced by those that they refer to. Defaults are written
behind the types, from the signature, so that they cannot be out of date. Methods that take rows and nothing else, such
as ``predict``, mean the same by them everywhere, and are given that description.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SECTIONS = ("Parameters", "Attributes")
# Where the names in "As in .." are looked up, after the module of the object itself.
PLACES = ("admiss", "admiss.adaptivity", "admiss.partition", "admiss.bounds", "admiss.baselines", "admiss.datasets")
ROWS = {
    "X": ("array or data frame of shape (n, d)", "Features; NaN, NA or null where missing."),
    "y": ("array of shape (n,)", "Targets: numbers, or labels of classes."),
    "sample_weight": ("array of shape (n,), optional", "Weights of the rows; all 1 by default."),
}
HEAD = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : (.*))?")
REFERENCE = re.compile(r"(?::\w+:`~?([\w.]+)`|``([\w.]+)``)")
SENTENCE = re.compile(r"As in (?:(?::\w+:`[^`]+`|``[^`]+``)(?:,| and)? ?)+[;,.]?\s*")


@dataclass(frozen=True)
class Entry:
    """Some parameters, what type they have, and the text below; an empty type if none is given."""

    names: tuple[str, ...]
    type: str
    body: tuple[str, ...]

    def lines(self) -> list[str]:
        head = ", ".join(self.names) + (f" : {self.type}" if self.type else "")
        return [head, *(f"    {line}" if line else "" for line in self.body)]


def completed(obj: Any, lines: list[str]) -> list[str]:
    """The docstring of an object with all parameters and attributes in full."""
    done: list[str] = []
    for title, part in _sections(lines):
        if title not in SECTIONS:
            done += part
            continue
        done += part[:2]
        followed = (one for entry in _entries(part[2:]) for one in _followed(obj, title, entry))
        for full in _merged([full for one in followed for full in _with_default(obj, one)]):
            done += full.lines()
        done.append("")
    return done


def with_rows(method: Any, lines: list[str]) -> list[str]:
    """The docstring of a method with its parameters, if they are rows and it does not describe them itself."""
    names = [name for name in inspect.signature(method).parameters if name != "self"]
    parts = list(_sections(lines))
    if not names or not set(names) <= set(ROWS) or "Parameters" in [title for title, _ in parts]:
        return lines
    section = ["Parameters", "----------"]
    for name in names:
        section += Entry((name,), ROWS[name][0], (ROWS[name][1],)).lines()
    return [*parts[0][1], "", *section, "", *(line for _, part in parts[1:] for line in part)]


def entries(obj: Any, title: str = "Parameters") -> dict[str, Entry]:
    """The entries of a section of an object's docstring, in full, by name."""
    lines = completed(obj, (inspect.getdoc(obj) or "").splitlines())
    found = (entry for head, part in _sections(lines) if head == title for entry in _entries(part[2:]))
    return {name.lstrip("*"): entry for entry in found for name in entry.names}


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    heads = [
        i for i, line in enumerate(lines[:-1]) if re.fullmatch(r"[A-Z][\w ]+", line) and set(lines[i + 1]) == {"-"}
    ]
    yield "", lines[: heads[0]] if heads else lines
    for start, end in zip(heads, [*heads[1:], len(lines)], strict=False):
        yield lines[start], lines[start:end]


def _entries(lines: list[str]) -> Iterator[Entry]:
    """Entries begin at lines that are not indented."""
    heads = [i for i, line in enumerate(lines) if line and not line.startswith(" ")]
    for start, end in zip(heads, [*heads[1:], len(lines)], strict=False):
        match = HEAD.fullmatch(lines[start])
        if match is None:
            raise ValueError(f"This line of a docstring is no list of parameters: {lines[start]!r}.")
        body = [line.removeprefix("    ") for line in lines[start + 1 : end]]
        while body and not body[-1]:
            body.pop()
        yield Entry(tuple(match[1].split(", ")), (match[2] or "").strip(), tuple(body))


def _followed(obj: Any, title: str, entry: Entry) -> Iterator[Entry]:
    """The entries that "As in .." refers to; what is said beyond it is kept, at the names that it mentions."""
    text = " ".join(entry.body)
    sentence = SENTENCE.match(text)
    if entry.type or sentence is None:
        yield entry
        return
    remark = text[sentence.end() :]
    remark = remark[:1].upper() + remark[1:]
    mentioned = [name for name in entry.names if f"``{name}" in remark]
    mentioned = mentioned or [name for name in entry.names if not name.endswith("_in_")]
    for name in entry.names:
        sources = [_resolved(obj, a or b) for a, b in REFERENCE.findall(sentence[0])]
        found = [own for source in sources for own in (_own(source, title, name),) if own is not None]
        if not found:
            raise ValueError(f"{name} is not described in {sentence[0].strip()!r}.")
        body = found[0].body + (("", remark) if remark and name in mentioned else ())
        yield replace(found[0], names=(name,), body=body)


def _merged(found: list[Entry]) -> list[Entry]:
    """Neighbours that say the same become one entry."""
    merged: list[Entry] = []
    for entry in found:
        if merged and entry.body and (merged[-1].type, merged[-1].body) == (entry.type, entry.body):
            merged[-1] = replace(entry, names=merged[-1].names + entry.names)
        else:
            merged.append(entry)
    return merged


def _own(obj: Any, title: str, name: str) -> Entry | None:
    """The entry of one name without its default, which may differ between objects."""
    lines = (inspect.getdoc(obj) or "").splitlines()
    for head, part in _sections(lines):
        if head == title or (head in SECTIONS and title == "Attributes"):
            for entry in _entries(part[2:]):
                if name in entry.names:
                    return next(one for one in _followed(obj, head, entry) if name in one.names)
    return None


def _resolved(obj: Any, name: str) -> Any:
    if "." in name:
        module, _, name = name.rpartition(".")
        return getattr(import_module(module), name)
    for module in (obj.__module__, *PLACES):
        if hasattr(import_module(module), name):
            return getattr(import_module(module), name)
    raise ValueError(f"Nothing is called {name!r} in the modules that docstrings refer to.")


def _with_default(obj: Any, entry: Entry) -> Iterator[Entry]:
    try:
        parameters = inspect.signature(obj).parameters
    except (TypeError, ValueError):
        parameters = {}  # type: ignore[assignment]
    defaults = [_default(parameters[name]) if name in parameters else "" for name in entry.names]
    if not any(defaults) or "default" in entry.type:
        yield entry
    elif len(set(defaults)) == 1:
        yield replace(entry, type=_joined(entry.type, defaults[0]))
    else:
        for name, default in zip(entry.names, defaults, strict=True):
            yield replace(entry, names=(name,), type=_joined(entry.type, default))


def _default(parameter: inspect.Parameter) -> str:
    value = parameter.default
    if value is inspect.Parameter.empty:
        return ""
    shown = repr(value)
    return "optional" if "<" in shown else f"default {shown}"


def _joined(kind: str, default: str) -> str:
    if not default or (default in ("default None", "optional") and "optional" in kind):
        return kind
    return ", ".join(part for part in (kind.removesuffix(", optional"), default) if part)


def _process(app: "Sphinx", what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if what in ("class", "function"):
        lines[:] = completed(obj, lines)
    elif what == "method" and obj.__module__.startswith("admiss."):
        lines[:] = with_rows(obj, lines)


def setup(app: "Sphinx") -> dict[str, bool]:
    """Run before anything else reads the docstring."""
    app.connect("autodoc-process-docstring", _process, priority=50)
    return {"parallel_read_safe": True}
