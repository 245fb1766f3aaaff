"""Progress of simulated runs, with a clock of their own."""

from dataclasses import dataclass

import pytest

from admiss.study.outcome import Outcome
from admiss.study.plan import Cell, Method
from admiss.study.progress import Progress, duration


@dataclass(frozen=True)
class Numbered:
    replicate: int


def some(rows, seed):
    return {}


def grid(replicates, names):
    return [Cell(Numbered(replicate), Method(name, some)) for replicate in range(replicates) for name in names]


@pytest.mark.parametrize("workers", [1, 4])
def test_seconds_of_methods_and_workers_are_learnt(workers):
    seconds = {"fast": 1.0, "slow": 59.0}
    cells = grid(40, seconds)
    now = [0.0]
    progress = Progress(cells, len(cells), clock=lambda: now[0])
    assert progress.words() == "estimating the time left"
    for cell in cells[:40]:  # half of each
        now[0] += seconds[cell.method.name] / workers
        progress.report(cell, Outcome("done", elapsed=seconds[cell.method.name]))
    assert progress.words() == f"about {20 // workers} min left"
    for cell in cells[40:]:
        progress.report(cell, Outcome("done", elapsed=seconds[cell.method.name]))
    assert progress.words() == "0 s left"


def test_cells_of_earlier_runs_are_learnt_from():
    cells = grid(10, ["fast", "slow"])
    before = [(cell, 1.0 if cell.method.name == "fast" else 100.0) for cell in cells[:2]]
    now = [0.0]
    progress = Progress(cells[2:], len(cells), before=before, failed=1, clock=lambda: now[0])
    assert progress.words() == "estimating the time left"
    now[0] += 2.0
    progress.report(cells[2], Outcome("done", elapsed=1.0))
    assert (progress.done, progress.failed) == (3, 1)
    assert progress.words() == f"about {duration(2 * (8 + 9 * 100))} left"


def test_methods_without_an_ended_cell_take_as_long_as_the_others():
    cells = grid(2, ["one", "two"])
    now = [10.0]
    progress = Progress(cells, len(cells), clock=lambda: now[0])
    now[0] += 10.0
    progress.report(cells[0], Outcome("failed", "why", elapsed=10.0))
    assert progress.words() == "about 30 s left"


def test_a_line_a_minute_in_a_pipe(capsys):
    cells = grid(60, ["one"])
    now = [0.0]
    progress = Progress(cells, 60, clock=lambda: now[0])
    for cell in cells:
        now[0] += 3.0
        progress.report(cell, Outcome("done", elapsed=3.0, pid=1))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["21/60 cells, 0 failed, about 2 min left", "42/60 cells, 0 failed, about 54 s left"]


def test_durations_in_words():
    assert [duration(seconds) for seconds in (0.4, 99, 101, 5_990, 6_000, 1e6)] == [
        "0 s", "99 s", "2 min", "1 h 40 min", "1 h 40 min", "277 h 47 min"
    ]  # fmt: skip
