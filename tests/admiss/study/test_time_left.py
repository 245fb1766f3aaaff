"""The time left: simulated runs with a clock of their own, and the pilot cells."""

import heapq
import math
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pytest

from admiss.study.cell_seconds import KEPT, CellSeconds, Design, pilot_first
from admiss.study.local import Schedule
from admiss.study.outcome import Outcome
from admiss.study.plan import Cell, Method
from admiss.study.time_left import PRECISE, Progress, duration

# Seconds to start a worker, to make rows, and to send a cell.
START, ROWS, OVERHEAD = 2.0, 0.02, 0.004


@dataclass(frozen=True)
class Sized:
    n: int
    replicate: int
    data: str = "a"


def some(rows, seed):
    return {}


def methods(count):
    """Methods of three families, each a function with parameters."""
    return [Method(f"m{i}", some, {"family": i % 3, "depth": i}) for i in range(count)]


def grid(sizes, replicates, own):
    return [Cell(Sized(n, replicate), method) for n in sizes for replicate in range(replicates) for method in own]


def simulate(cells, seconds, workers, *, limit=math.inf, before=(), told=True):
    """Run cells on a clock of their own: part done, seconds left, estimates, words, whether the pilot is running."""
    times = {cell.key: min(limit, time) for cell, time in zip(cells, seconds, strict=True)}
    order, pilot = (cells, 0) if before else pilot_first(cells)
    now = [0.0]
    progress = Progress(order, len(cells) + len(before), pilot=pilot, before=before,
                        workers=workers if told else None, seconds=limit, clock=lambda: now[0])  # fmt: skip
    schedule = Schedule(order, workers)
    running, moments, instances = [], [], [None] * workers

    def take(worker, time):
        cell = schedule.next(worker)
        if cell is not None:
            time += OVERHEAD + ROWS * (instances[worker] != cell.instance)
            instances[worker] = cell.instance
            heapq.heappush(running, (time + times[cell.key], worker, cell))

    for worker in range(workers):
        take(worker, START)
    while running:
        now[0], worker, cell = heapq.heappop(running)
        status = "failed" if times[cell.key] == limit else "done"
        progress.report(cell, Outcome(status, elapsed=times[cell.key], pid=worker + 1))
        if progress.done % max(1, len(cells) // 20) == 0:
            part = progress.done / progress.total
            moments.append((now[0], part, progress.time_left(), progress.words(), bool(progress.pilot)))
        take(worker, now[0])
    assert not progress.left
    return [(part, now[0] - time, *rest) for time, part, *rest in moments]


def growing(cells, generator, noise=0.2):
    """Method times from milliseconds to tens of them at n = 100, which grow as n to the power of 1 to 2."""
    names = sorted({cell.method.name for cell in cells})
    base = dict(zip(names, np.geomspace(1e-3, 0.03, len(names)), strict=True))
    power = dict(zip(names, generator.uniform(1, 2, len(names)), strict=True))
    return [base[cell.method.name] * (cell.instance.n / 100) ** power[cell.method.name] * math.exp(noise * z)
            for cell, z in zip(cells, generator.normal(size=len(cells)), strict=True)]  # fmt: skip


def by_method(cells, generator, noise=0.1):
    names = sorted({cell.method.name for cell in cells})
    base = dict(zip(names, np.exp(generator.normal(size=len(names)) - 2), strict=True))
    return [base[cell.method.name] * math.exp(noise * z)
            for cell, z in zip(cells, generator.normal(size=len(cells)), strict=True)]  # fmt: skip


def heavy(cells, generator):
    """The largest of a hundred cells takes six times as long as their median."""
    return by_method(cells, generator, noise=0.8)


def recorded(cells, generator):
    """Medians of the 18 methods of the study on generated data at its smallest scale, with the noise of that run."""
    return [RECORDED[int(cell.method.name[1:])] * math.exp(0.2 * z)
            for cell, z in zip(cells, generator.normal(size=len(cells)), strict=True)]  # fmt: skip


def tiny(cells, generator):
    return [0.0005] * len(cells)


def limited(cells, generator):
    """A third of the methods always reaches the limit."""
    return [1e3 if int(cell.method.name[1:]) % 3 == 0 else 0.3 for cell in cells]


RECORDED = [
    0.056,
    0.071,
    0.052,
    0.064,
    0.016,
    0.276,
    0.098,
    0.138,
    0.009,
    0.274,
    0.093,
    0.01,
    0.277,
    0.094,
    0.241,
    0.04,
    1.087,
    0.119,
]
SHAPES = {
    "recorded": (grid((40,), 5, methods(18)), recorded, math.inf),
    "sizes from small to large": (grid((100, 200, 400, 800, 1600, 3200), 5, methods(8)), growing, math.inf),
    "sizes, few cells": (grid((100, 200, 400, 800, 1600), 2, methods(10)), growing, math.inf),
    "more methods than a tenth of the cells": (grid((40,), 5, methods(18)), by_method, math.inf),
    "heavy tail": (grid((40, 80), 50, methods(6)), heavy, math.inf),
    "tiny": (grid((40,), 50, methods(10)), tiny, math.inf),
    "time limit": (grid((40, 80), 10, methods(9)), limited, 10.0),
}


def check(moments, first=0.1, last=0.9):
    """After the pilot the median is within a factor of two; before, a bound from below that is not far too large."""
    for part, left, (least, middle, most), words, pilot in moments:
        assert least <= middle <= most
        if pilot:
            assert words == "estimating the time left" or words.startswith("more than")
            assert least / PRECISE < 1.5 * left
        elif first <= part <= last:
            assert left / 2 < middle < 2 * left, (part, left, middle)


# With few cells for each worker, the last one may take as long as all others.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "workers"),
    [(shape, workers) for shape, (cells, *_) in SHAPES.items() for workers in (1, 2, 8) if len(cells) >= 20 * workers],
)
def test_the_time_left_is_within_a_factor_of_two_after_a_tenth_of_the_cells(shape, workers):
    cells, times, limit = SHAPES[shape]
    for seed in range(3):
        moments = simulate(cells, times(cells, np.random.default_rng(seed)), workers, limit=limit)
        check(moments)
        if workers == 1:
            assert not any(pilot for part, *_, pilot in moments if part >= 0.1)


def test_the_number_of_workers_is_heard():
    cells, times, _ = SHAPES["heavy tail"]
    check(simulate(cells, times(cells, np.random.default_rng(0)), 4, told=False))


def test_cells_of_earlier_runs_are_learnt_from():
    cells, times, _ = SHAPES["sizes from small to large"]
    seconds = times(cells, np.random.default_rng(0))
    known = list(zip(cells, seconds, strict=True))[::3]
    rest = [index for index in range(len(cells)) if index % 3]
    moments = simulate([cells[index] for index in rest], [seconds[index] for index in rest], 2, before=known)
    check(moments, first=0.0)


def test_before_anything_has_ended_nothing_is_claimed():
    cells = grid((40,), 2, methods(3))
    progress = Progress(cells, len(cells))
    assert progress.words() == "estimating the time left"
    assert Progress([], 3).words() == "0 s left"


def test_a_line_a_minute_in_a_pipe(capsys):
    cells, now = grid((40,), 30, methods(2)), [0.0]
    progress = Progress(cells, len(cells), workers=1, clock=lambda: now[0])
    for cell in cells:
        now[0] += 3.0
        progress.report(cell, Outcome("done", elapsed=3.0, pid=1))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["21/60 cells, 0 failed, about 2 min left", "42/60 cells, 0 failed, about 54 s left"]


def test_pilot_cells_are_of_every_method_and_of_the_ends_of_sizes():
    cells = grid((100, 200, 400, 800), 5, methods(10))
    order, count = pilot_first(cells)
    assert sorted(cell.key for cell in order) == sorted(cell.key for cell in cells)
    pilot = order[:count]
    assert count == 20
    assert {cell.method.name for cell in pilot} == {cell.method.name for cell in cells}
    assert {cell.instance.n for cell in pilot} == {100, 800}
    for part in (pilot, order[count:]):  # cells of an instance are together
        instances = [instance for instance, _ in groupby(part, key=lambda cell: cell.instance)]
        assert len(set(instances)) == len(instances)
    early = {cell.key for cell in pilot}
    assert order[count:] == [cell for cell in cells if cell.key not in early]


def test_few_cells_and_instances_of_any_fields():
    @dataclass(frozen=True)
    class Odd:
        name: str
        sizes: tuple
        share: float = 0.0
        flag: bool = True

    cells = [Cell(Odd(f"{i}", (i, 2), i - 1.5), method) for i in range(3) for method in methods(2)]
    for some_cells in (cells, cells[:1]):
        order, _ = pilot_first(some_cells)
        seconds = CellSeconds(Design(order))
        seconds.add(order[0], 0.0)
        draws = seconds.draws(order, [1.0], 5, np.random.default_rng(0))
        assert draws.shape == (5, len(order))
        assert np.isfinite(draws).all()
        assert (draws[:, 0] > 1.0).all()


def test_memory_does_not_grow_with_ended_cells():
    cells = grid((40,), 3, methods(2))
    seconds = CellSeconds(Design(cells))
    for index in range(3 * KEPT):
        seconds.add(cells[index % len(cells)], index)
    assert len(seconds.ended) == KEPT
    assert sum(ended.log > math.log(KEPT) for ended in seconds.ended) > KEPT / 2


def test_durations_in_words():
    assert [duration(seconds) for seconds in (0.4, 99, 101, 5_990, 6_000, 1e6)] == [
        "0 s", "99 s", "2 min", "1 h 40 min", "1 h 40 min", "277 h 47 min"
    ]  # fmt: skip
