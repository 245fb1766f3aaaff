"""Plans of studies: instances, methods, the cells in which they meet, and their outcomes.

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
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

from admiss._version import __version__
from admiss.atomic_write import EngineError as EngineError
from admiss.study.recipe import StudyError, check_sent, module_name, recipe_of
from admiss.versions import processor

# The scale of a study that has one.
ONE_SCALE = "all"
Scores = dict[str, Any]


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

    @cached_property
    def _text(self) -> str:
        return json.dumps(self.recipe, sort_keys=True)


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
    def instance_text(self) -> str:
        """The recipe of the instance as text."""
        return _instance_text(self.instance)

    @cached_property
    def key(self) -> str:
        """Hash of the recipe."""
        text = f'{{"instance": {self.instance_text}, "method": {self.method._text}}}'
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def seed(self) -> int:
        """Hash of the instance, as a seed."""
        return _seed(self.instance_text)


def instance_recipe(instance: Any) -> dict[str, Any]:
    """The kind and the fields of an instance; those with the metadata ``recipe=False`` do not identify it.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Normal:
    ...     n: int
    >>> instance_recipe(Normal(3))
    {'kind': 'Normal', 'n': 3}
    """
    if not is_dataclass(instance) or isinstance(instance, type):
        raise StudyError(f"An instance must be a dataclass with plain values, not {instance!r:.60}.")
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
    return _seed(_instance_text(instance))


def _instance_text(instance: Any) -> str:
    return json.dumps(instance_recipe(instance), sort_keys=True)


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


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


def check_products(products: Iterable[Product]) -> None:
    """Refuse methods, and kinds of instances, that have no recipe or cannot be sent to another process."""
    methods: dict[int, Method] = {}
    instances: dict[type, Any] = {}
    for part in products:
        methods |= {id(method): method for method in part.methods}
        instances |= {type(instance): instance for instance in part.instances}
    for method in methods.values():
        _ = method.recipe
        recipe_of(method.run, f"method {method.name!r}")
        check_sent(method, f"method {method.name!r}")
    for instance in instances.values():
        instance_recipe(instance)
        check_sent(instance, f"instance {instance!r:.60}")


@dataclass(frozen=True)
class Plan:
    """What the engine and the pages need of a study; :class:`~admiss.study.Study` explains the fields."""

    name: str
    title: str = ""
    description: str = ""
    products: Callable[[str], Sequence[Product]] = lambda scale: ()
    best: tuple[Best, ...] = ()
    settings: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ("score",)
    reference: str = ""
    scales: tuple[str, ...] = (ONE_SCALE,)
    derived: Callable[[Any], Any] | None = None
    seconds: float = 600.0
    gigabytes: float = 8.0

    def cells(self, scale: str) -> Iterator[Cell]:
        """Iterate over the distinct cells of a scale; cells of one instance are consecutive."""
        check_scale(self, scale)
        seen: set[str] = set()
        for part in self.products(scale):
            for instance in part.instances if part.methods else ():
                text = _instance_text(instance)
                for method in part.methods:
                    cell = Cell(instance, method)
                    vars(cell)["instance_text"] = text  # the cached one
                    if cell.key not in seen:
                        seen.add(cell.key)
                        yield cell


def check_scale(plan: Plan, scale: str | None) -> None:
    """Refuse an unknown scale; None is any."""
    if scale not in (None, *plan.scales):
        raise StudyError(f"Unknown scale {scale!r} of {plan.name}: choose one of {', '.join(plan.scales)}.")


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


@dataclass(frozen=True)
class Outcome:
    """The end of a cell."""

    status: str  # done or failed
    reason: str | None = None  # one line that says why it failed
    details: str | None = None  # the last lines of the traceback, or of the worker's output before it died
    scores: Scores = field(default_factory=dict)  # plain values; empty if it failed
    elapsed: float = 0.0  # seconds of wall-clock time
    origin: dict[str, str] = field(default_factory=dict)  # version and machine of the process that computed it
    pid: int = 0  # of that process
    dependencies: dict[str, str] = field(default_factory=dict)  # see admiss.study.dependencies
    rows: str = ""  # a sketch of the rows, see admiss.study.shared_rows; empty if there is none


@cache
def origin() -> dict[str, str]:
    """Version of admiss and machine of this process."""
    machine = f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    return {"version": __version__, "machine": machine}


def encodable(text: str) -> str:
    """Escape characters that UTF-8 cannot encode, such as undecodable bytes of file names.

    Examples
    --------
    >>> encodable("file \\udcff.csv")
    'file \\\\udcff.csv'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
