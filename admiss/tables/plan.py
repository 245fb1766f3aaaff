"""What the columns of a table are for, as a caller says."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from admiss.tables.column import SourceError, require_columns
from admiss.tables.notes import listed
from admiss.tables.schema import UNKNOWN


@dataclass(frozen=True)
class Plan:
    """What the columns of a table are for, see :func:`~admiss.tables.opening.open_source`."""

    target: str | None = None
    weight: str | None = None
    key: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    categories: Mapping[str, Iterable[Any]] | None = None
    unknown: str = "error"
    task: str = "auto"

    def __post_init__(self) -> None:
        if self.unknown not in UNKNOWN:
            raise ValueError(f"unknown must be 'error' or 'missing', not {self.unknown!r}.")
        if any(isinstance(given, str) for given in (self.features, self.drop, self.keep)):
            raise ValueError("features, drop and keep are lists of columns, not one text.")
        if len(set(self.roles)) < len(self.roles):
            raise ValueError(f"Target, weight and key must be different columns, not {listed(self.roles)}.")
        for name in self.features or ():
            if name in (self.target, self.weight):
                raise ValueError(f"{name!r} cannot be both a feature and the target or weights.")
        both = [name for name in self.drop if name in self.keep]
        if both:
            raise ValueError(f"{listed(both)} cannot be both dropped and kept: use --drop or --keep, not both.")
        if self.target in (*self.drop, *self.keep):
            raise ValueError(f"{self.target} is the target: --drop and --keep are for other columns.")

    @property
    def roles(self) -> list[str]:
        """Columns that are not features unless they are named."""
        return [name for name in (self.target, self.weight, self.key) if name is not None]

    @property
    def kept(self) -> set[str]:
        """Columns that are used whatever they hold."""
        return {*self.keep, *(self.features or ()), *(self.categories or ())}

    def chosen(self, names: Sequence[str], where: str) -> list[str]:
        """The columns that may be features."""
        asked = [*self.roles, *self.drop, *self.keep, *(self.features or ()), *(self.categories or ())]
        require_columns(asked, names, where)
        wanted = [n for n in names if n not in self.roles] if self.features is None else dict.fromkeys(self.features)
        chosen = [name for name in wanted if name not in self.drop]
        if not chosen:
            raise SourceError(f"{where} has no features{self.purpose}.")
        return chosen

    @property
    def purpose(self) -> str:
        """What features are for, in messages."""
        return f" to predict {self.target} from" if self.target else ""


def common_columns(files: Sequence[tuple[str, Sequence[str]]], plan: Plan) -> list[str]:
    """The columns that may be features, unless some of the files, given with their columns, lack some of them."""
    everything = list(dict.fromkeys(name for _, names in files for name in names))
    wanted = plan.chosen(everything, files[0][0])
    for where, names in files:
        lacking = [name for name in [*wanted, *plan.roles] if name not in names]
        if lacking:
            many = len(lacking) > 1
            raise SourceError(
                f"{where} has no column{'s' * many} {', '.join(map(repr, lacking))}, which other files have: add "
                f"{'them' if many else 'it'}, or leave {'them' if many else 'it'} out with drop (--drop)."
            )
    return wanted
