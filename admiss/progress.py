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
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    began, shown = time.monotonic(), 0.0

    def tell(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown > PAUSE and now - began > PAUSE:
            shown = now
            left = (now - began) / done * (total - done)
            print(f"\r{label} {done:,}/{total:,}, {left:.0f} s left ", end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        if shown:
            print("\r" + " " * 70 + "\r", end="", file=sys.stderr, flush=True)
