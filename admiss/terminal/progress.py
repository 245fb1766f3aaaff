"""Progress of long work, shown when a person looks at a terminal."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
# Seconds between two messages.
PAUSE = 0.2


def progress(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """Pass items on, and on a terminal say how many of them are done and how long the rest may take.

    Examples
    --------
    >>> list(progress([1, 2, 3], 3, "counting"))
    [1, 2, 3]
    """
    with counter(label) as tell:
        for done, item in enumerate(items, start=1):
            yield item
            tell(done, total)


@contextmanager
def counter(label: str) -> Iterator[Callable[[int, int], None]]:
    """A function that is told how much is done, of how much, and says so on a terminal.

    Examples
    --------
    >>> with counter("counting") as tell:
    ...     tell(1, 3)
    """
    began = time.monotonic()
    with _line() as show:

        def tell(done: int, total: int) -> None:
            left = (time.monotonic() - began) / done * (total - done)
            show(f"{label} {done:,}/{total:,}, {left:.0f} s left")

        yield tell


@contextmanager
def gap_teller(label: str) -> Iterator[Callable[[float, float], None]]:
    """A function that is told a cost and its lower bound, and says on a terminal what is not proven yet.

    Examples
    --------
    >>> with gap_teller("searching") as tell:
    ...     tell(2.0, 1.5)
    """
    with _line() as show:
        yield lambda cost, bound: show(f"{label}: cost {cost:.6g}, gap {max(0.0, 1 - bound / cost) if cost else 0:.2%}")


@contextmanager
def _line() -> Iterator[Callable[[str], None]]:
    """A function that rewrites one line of the terminal, not too often; the line is cleared in the end."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    began, shown = time.monotonic(), 0.0

    def show(text: str) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown > PAUSE and now - began > PAUSE:
            shown = now
            print(f"\r{text:<70}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            print("\r" + " " * 70 + "\r", end="", file=sys.stderr, flush=True)
