"""Progress of long work, shown when a person looks at a terminal."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def progress(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """Pass items on, and on a terminal say how many of them are done and how long the rest may take.

    Examples
    --------
    >>> list(progress([1, 2, 3], 3, "counting"))
    [1, 2, 3]
    """
    if not sys.stderr.isatty():
        yield from items
        return
    began, shown = time.monotonic(), 0.0
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - shown > 0.2 or done == total:
            shown = now
            left = (now - began) / done * (total - done)
            print(f"\r{label} {done}/{total}, {left:.0f} s left ", end="", file=sys.stderr, flush=True)
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
