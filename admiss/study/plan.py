"""Plans of studies: instances, methods, and the cells in which they meet.

    instance    a recipe: a generator or a data set, a mechanism, a seed. A frozen dataclass with a method ``make()``
                that returns the rows. Its property ``files``, if it has one, are the data files that it reads.
    method      a name, a function of the rows and a seed that returns scores, and its parameters.
    plan        a union of products of instances and methods, at each of some scales.

A cell is identified by the hash of its instance and its method with its parameters. Its seed is a hash of the instance
alone: all methods see the same rows and folds, and a cell has the same numbers on any worker, in any order.

Some methods are choices among others by their score in cross-validation. They cost nothing, and are rows of the table
(:class:`Best`), not cells.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cached_property
from itertools import product
from typing import Any, Protocol

from admiss.atomic_write import EngineError as EngineError
from admiss.study.recipe import module_name, recipe_of

# The scale of a study that has one.
ONE_SCALE = "all"
Scores = dict[str, Any]


class StudyError(EngineError, ValueError):
    """Objects that make no study, in one sentence."""


class Instance(Protocol):
    """A recipe for rows: a frozen dataclass; fields with the metadata ``recipe=False`` do not identify it."""

    def make(self) -> Any:
        """Make the rows."""


@dataclass(frozen=True)
class Method:
    """A named way to score rows.

    Attributes
    ----------
    name : str
        Name in tables.
    run : callable
        A function of a module, which other processes can import: ``run(rows, seed, **parameters)`` returns a dict of
        plain values with at least ``score`` and ``seconds`` (CPU).
    parameters : dict
        Plain values, estimators, functions and classes, see :mod:`admiss.study.recipe`.
    """

    name: str
    run: Callable[..., Scores]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def recipe(self) -> dict[str, Any]:
        """Name, function and parameters in plain values."""
        run = f"{module_name(self.run)}.{self.run.__qualname__}"
        parameters = recipe_of(dict(self.parameters), f"method {self.name!r}")
        return {"name": self.name, "run": run, "parameters": parameters}


@dataclass(frozen=True)
class Best:
    """The member with the largest ``cv_score``; its seconds are those of all members.

    Attributes
    ----------
    name : str
        Name of the choice in tables.
    members : tuple of str
        Names of the methods to choose from.
    """

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """An instance and a method."""

    instance: Any
    method: Method

    @property
    def recipe(self) -> dict[str, Any]:
        """Instance and method in plain values."""
        return {"instance": instance_recipe(self.instance), "method": self.method.recipe}

    @cached_property
    def key(self) -> str:
        """Hash of the recipe."""
        return _hash(self.recipe).hex()[:32]

    @cached_property
    def seed(self) -> int:
        """Hash of the instance, as a seed."""
        return instance_seed(self.instance)


def instance_recipe(instance: Any) -> dict[str, Any]:
    """The kind and the fields of an instance.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Normal:
    ...     n: int
    >>> instance_recipe(Normal(3))
    {'kind': 'Normal', 'n': 3}
    """
    if not is_dataclass(instance) or isinstance(instance, type):
        raise TypeError(f"An instance must be a dataclass with plain values, not {instance!r}.")
    kind = kind_name(type(instance))
    left_out = {part.name for part in fields(instance) if not part.metadata.get("recipe", True)}
    own = {name: value for name, value in asdict(instance).items() if name not in left_out}
    return {"kind": kind, **recipe_of(own, f"instance {kind}")}


def kind_name(kind: type) -> str:
    """The name of a class of instances in recipes; a class that was renamed keeps its first one."""
    return str(getattr(kind, "_recipe_kind", kind.__name__))


def instance_seed(instance: Any) -> int:
    """A number below 2^32 that depends on the recipe alone.

    Parameters
    ----------
    instance : dataclass
        An instance of a study.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from admiss.study import instance_seed
    >>> @dataclass(frozen=True)
    ... class Draw:
    ...     n: int
    >>> instance_seed(Draw(100)) == instance_seed(Draw(100)) != instance_seed(Draw(200))
    True
    """
    return int.from_bytes(_hash(instance_recipe(instance))[:4], "little")


def _hash(recipe: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).digest()


@dataclass(frozen=True)
class Product:
    """All pairs of some instances and some methods.

    Attributes
    ----------
    instances : sequence
        Instances, as in :class:`~admiss.study.Study`.
    methods : sequence of Method
        Methods that are applied to each of them.
    """

    instances: Sequence[Any]
    methods: Sequence[Method]


@dataclass(frozen=True)
class Plan:
    """A grid with a name.

    Attributes
    ----------
    name, title, description : str
    products : callable
        From a scale to the products whose union is the grid.
    best : tuple of Best
        Choices among methods.
    settings : tuple of str
        Fields of instances by which tables are grouped and filtered, the most important first.
    metrics : tuple of str
        Names of numbers that are compared, larger ones being better; the first one is the ``score`` of a cell.
    reference : str
        The method that others are compared with.
    scales : tuple of str
        Names of the scales, the smallest first, which is the default.
    derived : callable
        From the table of the study (a polars frame) to the table with further columns.
    seconds, gigabytes : float
        Limits per cell.
    """

    name: str
    title: str = ""
    description: str = ""
    products: Callable[[str], Sequence[Product]] = lambda scale: ()
    best: tuple[Best, ...] = ()
    settings: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ("score",)
    reference: str = ""
    scales: tuple[str, ...] = (ONE_SCALE,)
    derived: Callable[[Any], Any] = lambda table: table
    seconds: float = 600.0
    gigabytes: float = 8.0

    def cells(self, scale: str) -> Iterator[Cell]:
        """Iterate over the distinct cells of a scale; cells of one instance are consecutive."""
        if scale not in self.scales:
            raise ValueError(f"Unknown scale {scale!r}: choose one of {', '.join(self.scales)}.")
        seen: set[str] = set()
        for part in self.products(scale):
            for instance in part.instances:
                for method in part.methods:
                    cell = Cell(instance, method)
                    if cell.key not in seen:
                        seen.add(cell.key)
                        yield cell


def combinations(instance: Callable[..., Any], **values: Iterable[Any]) -> list[Any]:
    """Instances with all combinations of values of their fields, the last field varying fastest.

    Parameters
    ----------
    instance : callable
        A class of instances.
    **values : iterables
        The values of each field, by its name.

    Examples
    --------
    >>> combinations(complex, real=[1, 2], imag=[0, 5])
    [(1+0j), (1+5j), (2+0j), (2+5j)]
    """
    return [instance(**dict(zip(values, chosen, strict=True))) for chosen in product(*values.values())]
