"""Progress of long work, shown if standard error is a terminal."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
# Seconds between two messages.
PAUSE = 0.2


def progress(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """Pass items on, and show on a terminal how many are done and how long the rest may take.

    Examples
    --------
    >>> list(progress([1, 2, 3], 3, "counting"))
    [1, 2, 3]
    """
    with counter(label) as report:
        for done, item in enumerate(items, start=1):
            yield item
            report(done, total)


@contextmanager
def counter(label: str) -> Iterator[Callable[[int, int], None]]:
    """A function to report how much is done and of how much, which a terminal shows.

    Examples
    --------
    >>> with counter("counting") as report:
    ...     report(1, 3)
    """
    start = time.monotonic()
    with _line() as show:

        def report(done: int, total: int) -> None:
            left = (time.monotonic() - start) / done * (total - done)
            show(f"{label} {done:,}/{total:,}, {left:.0f} s left")

        yield report


@contextmanager
def gap_counter(label: str) -> Iterator[Callable[[float, float], None]]:
    """A function to report a cost and its lower bound, of which a terminal shows the gap.

    Examples
    --------
    >>> with gap_counter("searching") as report:
    ...     report(2.0, 1.5)
    """
    with _line() as show:
        yield lambda cost, bound: show(f"{label}: cost {cost:.6g}, gap {max(0.0, 1 - bound / cost) if cost else 0:.2%}")


@contextmanager
def _line() -> Iterator[Callable[[str], None]]:
    """A function that rewrites one line of the terminal at most every ``PAUSE``; the line is cleared at the end."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    start, shown = time.monotonic(), 0.0

    def show(text: str) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown > PAUSE and now - start > PAUSE:
            shown = now
            print(f"\r{text:<70}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            print("\r" + " " * 70 + "\r", end="", file=sys.stderr, flush=True)
