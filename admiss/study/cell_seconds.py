"""Seconds that cells take, learnt from those that have ended.

The logarithm of the seconds of a cell is linear in the properties of its method and its instance, up to noise:

    log seconds = level + first + function + parameters + method                          of the method
                + text fields + sum over numbers x of (slope + slope of the method) log x of the instance

Cells that are the first of their function in a process take longer, since it imports and compiles. A number that is not
always positive enters in standard units instead of its logarithm. All other coefficients have normal priors around
zero: a method without a cell so far takes as long as those that resemble it, and a size that has not been
reached is extrapolated with the slope of the others. The posterior is normal, and so are draws of predictions.

By the same prior, pilot cells are those that tell most about the others: one after the other, the cell whose logarithm
has the largest variance given the ones before (a Cholesky factorisation with pivots).
"""

import json
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from admiss.study.plan import Cell, instance_recipe

Array = NDArray[np.float64]
Item = TypeVar("Item")
# Shorter times are not told apart: a cell costs as much for its way to a worker and back.
SHORTEST = 1e-3
# Cells from which the properties are read, and among which pilot cells are chosen.
SAMPLE = 1000
# The pilot has a tenth of the cells, but not more than this number: each may make rows that are made again later.
PILOT = 100
# Ended cells that are kept to learn from.
KEPT = 1500
# Values of a text field, or of all parameters, that have coefficients; slopes of methods.
VALUES, SLOPES = 100, 300
# Standard deviations of coefficients and of noise in log seconds.
LEVEL, FIRST, FUNCTION, PARAMETER, METHOD, TEXT, SLOPE, OWN_SLOPE, NOISE = 5.0, 0.5, 0.7, 0.5, 1.0, 0.7, 1.0, 0.4, 0.3
# Mean of the coefficient of first cells; those of the others are zero.
FIRST_MEAN = 0.3
# Number of cells to which the prior of the noise is equal.
NOISE_CELLS = 5.0


class Design:
    """The properties of cells as rows of a matrix, in units of the standard deviations of their coefficients."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._methods: dict[str, Array] = {}
        self._instances: dict[int, tuple[Any, Array, dict[str, float]]] = {}
        sample = sampled(cells, SAMPLE)
        methods = list({cell.method.name: _leaves(cell.recipe["method"]) for cell in sample}.values())
        fields = [instance_recipe(cell.instance) for cell in sample]
        self._columns: dict[tuple[str, ...], tuple[int, float]] = {}
        self._add(LEVEL, ())
        self._add(FIRST, ("first",))
        counts = Counter(leaf for leaves in methods for leaf in leaves)
        shared = [leaf for leaf, count in counts.most_common(VALUES) if 1 < count < len(methods)]
        for leaf in shared:
            self._add(FUNCTION if leaf[0] == "run" else PARAMETER, leaf)
        names = list(dict.fromkeys(cell.method.name for cell in sample))
        for name in names:
            self._add(METHOD, ("method", name))
        self._numbers: dict[str, tuple[bool, float, float]] = {}
        for field in dict.fromkeys(field for values in fields for field in values):
            self._add_field(field, [values[field] for values in fields if field in values])
        if len(names) * len(self._numbers) <= SLOPES:
            for name in names:
                for field in self._numbers:
                    self._add(OWN_SLOPE, ("slope", field, name))

    def _add(self, spread: float, name: tuple[str, ...]) -> None:
        self._columns.setdefault(name, (len(self._columns), spread))

    def _add_field(self, field: str, values: list[Any]) -> None:
        different = set(map(str, values))
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            if len(different) > 1:
                positive = min(values) > 0
                units = np.log(values) if positive else np.asarray(values, dtype=float)
                spread = 1.0 if positive else float(units.std()) * SLOPE / TEXT
                if math.isfinite(spread) and spread > 0:
                    self._numbers[field] = (positive, float(units.mean()), spread)
                    self._add(SLOPE, ("slope", field))
        elif 1 < len(different) <= VALUES:
            for value in different:
                self._add(TEXT, ("field", field, value))

    def row(self, cell: Cell) -> Array:
        """Properties of a cell."""
        name = cell.method.name
        if name not in self._methods:
            self._methods[name] = self._vector([((), 1.0), (("method", name), 1.0),
                                                *((leaf, 1.0) for leaf in _leaves(cell.recipe["method"]))])  # fmt: skip
        if id(cell.instance) not in self._instances:
            if len(self._instances) > SAMPLE:
                self._instances.clear()
            # The instance is kept with its units: another one has another address.
            self._instances[id(cell.instance)] = (cell.instance, *self._units(instance_recipe(cell.instance)))
        _, vector, units = self._instances[id(cell.instance)]
        own = self._vector([(("slope", field, name), value) for field, value in units.items()])
        return self._methods[name] + vector + own

    def _units(self, fields: Mapping[str, Any]) -> tuple[Array, dict[str, float]]:
        """Properties of an instance, and its numbers in the units of slopes."""
        units = {}
        for field, (positive, centre, spread) in self._numbers.items():
            value = fields.get(field)
            if isinstance(value, int | float) and (value > 0 or not positive):
                units[field] = ((math.log(value) if positive else value) - centre) / spread
        texts = [(("field", field, str(value)), 1.0) for field, value in fields.items()]
        return self._vector([*texts, *((("slope", field), value) for field, value in units.items())]), units

    def _vector(self, entries: Sequence[tuple[tuple[str, ...], float]]) -> Array:
        vector = np.zeros(len(self._columns))
        for name, value in entries:
            if name in self._columns:
                index, spread = self._columns[name]
                vector[index] += spread * value
        return vector

    @cached_property
    def first(self) -> Array:
        """The property of the first cell of a function in a process."""
        return self._vector([(("first",), 1.0)])

    def growth(self, cell: Cell) -> float:
        """Logarithm of the seconds if they were proportional to every positive number of the instance."""
        _, units = self._units(instance_recipe(cell.instance))
        return sum(value for field, value in units.items() if self._numbers[field][0])

    def rows(self, cells: Sequence[Cell]) -> Array:
        """Properties of cells, one row each."""
        return np.array([self.row(cell) for cell in cells]).reshape(len(cells), len(self._columns))


def _leaves(method: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The function and the parameters of a method."""
    parameters = method["parameters"]
    return [("run", str(method["run"])), *(("parameter", *leaf) for leaf in _flat(parameters, ""))]


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flat(item, f"{path}/{name}")
    else:
        yield path, json.dumps(value, default=str)


class _Ended(NamedTuple):
    row: Array
    log: float
    method: str


class CellSeconds:
    """Posterior of the seconds of cells.

    Parameters
    ----------
    design : Design
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.ended: list[_Ended] = []
        self._heard = 0
        self._random = random.Random(0)

    def add(self, cell: Cell, seconds: float, *, first: bool = False) -> None:
        """Learn from a cell that has ended; of many cells, a sample is kept that includes the pilot.

        The first cell of a function in a process takes longer, as it imports and compiles.
        """
        place = self._heard if self._heard < KEPT else self._random.randrange(PILOT, self._heard)
        self._heard += 1
        if place < KEPT:
            log = math.log(max(seconds, SHORTEST)) - first * FIRST_MEAN
            row = self.design.row(cell) + (self.design.first if first else 0.0)
            self.ended[place : place + 1] = [_Ended(row, log, cell.method.name)]

    def means(self, cells: Sequence[Cell]) -> Array:
        """Expected logarithms of the seconds of cells."""
        rows, logs = self._ended()
        means: Array = self.design.rows(cells) @ _posterior(rows, logs)[0]
        return means

    def _ended(self) -> tuple[Array, Array]:
        return np.array([ended.row for ended in self.ended]), np.array([ended.log for ended in self.ended])

    def draws(self, cells: Sequence[Cell], ages: Sequence[float], count: int, generator: np.random.Generator) -> Array:
        """Draw seconds of cells, one row per draw.

        Parameters
        ----------
        cells : sequence of Cell
        ages : sequence of float
            Seconds for which the first cells have been computed so far: they take longer.
        count : int
        generator : Generator
        """
        new, age = self.design.rows(cells), np.maximum(ages, SHORTEST)
        rows, logs = self._ended()
        coefficients, _, _ = _posterior(rows, logs)
        # Cells that have outlived their prediction count as somewhat longer than they are now.
        late = np.flatnonzero(np.log(age) > new[: len(age)] @ coefficients - NOISE)
        late_rows, late_logs = new[late], np.log(age[late]) + NOISE
        coefficients, root, noise = _posterior(np.vstack([rows, late_rows]), np.append(logs, late_logs))
        directions = np.linalg.solve(root, generator.normal(size=(root.shape[0], count)))
        means = (new @ (coefficients[:, None] + noise * directions)).T
        residuals = logs - rows @ coefficients
        errors = self._errors(residuals, [cell.method.name for cell in cells], count, generator)
        errors += min(noise, NOISE) * generator.normal(size=errors.shape) / 2
        seconds: Array = np.exp(np.minimum(means + errors, 50.0))
        first = seconds[:, : len(age)]
        first[:] = np.where(first > age, first, age * np.exp(np.abs(generator.normal(size=first.shape))))
        return seconds

    def _errors(self, residuals: Array, methods: Sequence[str], count: int, generator: np.random.Generator) -> Array:
        """Draw noise from residuals: mostly of the same method if it has several, otherwise of all."""
        own: dict[str, list[int]] = {}
        for index, ended in enumerate(self.ended):
            own.setdefault(ended.method, []).append(index)
        chosen = generator.integers(len(residuals), size=(count, len(methods)))
        for column, name in enumerate(methods):
            known = own.get(name, [])
            same = generator.random(count) < len(known) / (len(known) + NOISE_CELLS)
            if known:
                chosen[same, column] = generator.choice(known, size=int(same.sum()))
        return residuals[chosen]


def _posterior(rows: Array, logs: Array) -> tuple[Array, Array, float]:
    """Coefficients, the root of their precision in units of the noise, and the noise."""
    noise = NOISE
    for _ in range(3):  # the noise of the prior, then that of the residuals
        precision = rows.T @ rows + noise**2 * np.eye(rows.shape[1])
        root = np.asarray(np.linalg.cholesky(precision).T, dtype=np.float64)
        coefficients: Array = np.linalg.solve(root, np.linalg.solve(root.T, rows.T @ logs))
        errors = logs - rows @ coefficients
        noise = math.sqrt((NOISE_CELLS * NOISE**2 + errors @ errors) / (NOISE_CELLS + len(errors)))
    return coefficients, root, noise


def pilot_first(cells: Sequence[Cell]) -> tuple[list[Cell], int]:
    """Order cells such that those that tell most about the others come first: a tenth, whose number is returned too.

    Methods that are not among them follow; the rest stay as they are. Cells of large instances, which may take most of
    the time, are preferred.
    """
    count = math.ceil(len(cells) / 10)
    methods = len({cell.method.name for cell in cells})
    groups = [index for index, (_, same) in enumerate(groupby(cells, key=lambda cell: cell.instance)) for _ in same]
    candidates = sampled(range(len(cells)), SAMPLE)
    design = Design(cells)
    rows = design.rows([cells[index] for index in candidates])
    weights = np.exp(np.clip([design.growth(cells[index]) / 4 for index in candidates], -5.0, 5.0))
    pilot = [candidates[row] for row in _telling(rows, weights, min(max(count, methods), PILOT))]
    first, second = (_together(part, groups) for part in (pilot[:count], pilot[count:]))
    early = set(pilot)
    rest = [index for index in range(len(cells)) if index not in early]
    return [cells[index] for index in (*first, *second, *rest)], len(first)


def _together(cells: Sequence[int], groups: Sequence[int]) -> list[int]:
    """Order cells by the first one of their group, as a worker makes the rows of an instance once."""
    rank: dict[int, int] = {}
    for cell in cells:
        rank.setdefault(groups[cell], len(rank))
    return sorted(cells, key=lambda cell: (rank[groups[cell]], cell))


def _telling(rows: Array, weights: Array, count: int) -> list[int]:
    """Rows of largest weighted variance given the ones before."""
    variances = np.einsum("ij,ij->i", rows, rows)
    known, chosen = np.zeros((len(rows), 0)), []
    for _ in range(count):
        pivot = int(np.argmax(weights * variances))
        chosen.append(pivot)
        covariances = rows @ rows[pivot] - known @ known[pivot]
        column = covariances / math.sqrt(covariances[pivot] + NOISE**2)
        known = np.column_stack([known, column])
        variances = variances - column**2
        variances[chosen] = -np.inf
    return chosen


def sampled(items: Sequence[Item], count: int) -> list[Item]:
    """A sample of items in their order, the same each time; all of them if they are not more."""
    if len(items) <= count:
        return list(items)
    return [items[index] for index in sorted(random.Random(0).sample(range(len(items)), count))]
