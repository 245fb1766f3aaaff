"""Progress of long work on standard error.

On a terminal, one line is rewritten while work goes on, and cleared at its end. Elsewhere (a file, a pipe, a notebook)
nothing is shown, since users of the library have not asked for it, unless a command runs: inside
:func:`command_progress` a plain line says now and then what is being done, the first after two seconds. Work that
reports nothing for two seconds is shown there too, on a terminal as well, with the seconds since the start.
"""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from math import sqrt
from typing import TypeVar

T = TypeVar("T")
# A message as it is at the moment: time passes while it is shown.
Message = Callable[[], str]
# Seconds between two messages on a terminal.
PAUSE = 0.2
# Seconds after which a command shows what it is doing.
SILENCE = 2.0
# Seconds between two plain lines of a command at first, and the factor by which they grow, up to a minute.
LINE_PAUSE, LINE_GROWTH = 10.0, 1.5


def progress(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """Pass items on, and show how many are done and how long the rest may take.

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
def counter(label: str) -> Iterator[Callable[..., None]]:
    """A function to report how much is done and of how much, with a further note.

    The time left is said if items have taken about the same time so far, and until it has passed.

    Examples
    --------
    >>> with counter("counting") as report:
    ...     report(1, 3)
    """
    pace = _Pace()
    with _line(label) as show:

        def report(done: int, total: int, note: str = "") -> None:
            pace.add(done)
            show(lambda: f"{label} {done:,}/{total:,}{note}{pace.words(total)}")

        yield report


class _Pace:
    """The seconds that items have taken.

    With r_1, .., r_k the seconds per item between k reports, their mean is taken for that of the items to come if its
    standard error, sd(r) / sqrt(k), is at most half of it. One report tells nothing of the others.
    """

    def __init__(self) -> None:
        self.start = self.reported = time.monotonic()
        self.done = 0
        self.reports = 0
        self.mean = 0.0  # of r
        self.squares = 0.0  # sum of squared deviations from the mean (Welford, 1962)

    def add(self, done: int) -> None:
        """Take note that so many items are done now."""
        now = time.monotonic()
        if done > self.done:
            each = (now - self.reported) / (done - self.done)
            before = each - self.mean
            self.reports += 1
            self.mean += before / self.reports
            self.squares += before * (each - self.mean)
            self.reported, self.done = now, done

    def words(self, total: int) -> str:
        """The time left, or nothing if it is unknown or has passed already."""
        k = self.reports
        if k < 2 or sqrt(self.squares / (k - 1) / k) > self.mean / 2:
            return ""
        each = (self.reported - self.start) / self.done
        left = each * (total - self.done) - (time.monotonic() - self.reported)
        return f", {duration(left)} left" if left >= 0 else ""


def duration(seconds: float) -> str:
    """Seconds as text.

    Examples
    --------
    >>> duration(42), duration(300), duration(9000)
    ('42 s', '5 min', '2 h 30 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60:,} h {minutes % 60:02d} min"


@contextmanager
def gap_counter(label: str) -> Iterator[Callable[[float, float], None]]:
    """A function to report a cost and its lower bound, of which the gap is shown.

    Examples
    --------
    >>> with gap_counter("searching") as report:
    ...     report(2.0, 1.5)
    """
    with _line(label) as show:

        def report(cost: float, bound: float) -> None:
            text = f"{label}: cost {cost:.6g}, gap {max(0.0, 1 - bound / cost) if cost else 0:.2%}"
            show(lambda: text)

        yield report


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """Show a label while work goes on that cannot report.

    Examples
    --------
    >>> with waiting("compiling"):
    ...     pass
    """
    with _line(label):
        shown = threading.Timer(PAUSE, _terminal.rewrite, [label])
        if sys.stderr.isatty():
            shown.start()
        try:
            yield
        finally:
            shown.cancel()
            if shown.is_alive():
                shown.join()


class _Terminal:
    """The line of a terminal that is rewritten."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.width = 0
        self.time = time.monotonic()

    def rewrite(self, text: str) -> None:
        """Replace the line."""
        with self.lock:
            text = text[: shutil.get_terminal_size().columns - 1]
            print(f"\r{text:<{self.width}}", end="", file=sys.stderr, flush=True)
            self.width = len(text)
            self.time = time.monotonic()

    def clear(self) -> None:
        """Remove the line if there is one."""
        with self.lock:
            if self.width:
                print("\r" + " " * self.width + "\r", end="", file=sys.stderr, flush=True)
                self.width = 0


_terminal = _Terminal()
# The latest messages of the work of a running command, from the outermost to the innermost; None without a command.
_messages: list[list[Message]] | None = None


@contextmanager
def _line(label: str) -> Iterator[Callable[[Message], None]]:
    """A function that shows a message, on a terminal at most every ``PAUSE``; the line is cleared at the end."""
    start, in_terminal, messages = time.monotonic(), sys.stderr.isatty(), _messages
    message, shown = [lambda: label], 0.0

    def show(text: Message) -> None:
        nonlocal shown
        message[0] = text
        now = time.monotonic()
        if in_terminal and now - shown > PAUSE and now - start > PAUSE:
            shown = now
            _terminal.rewrite(text())

    if messages is not None:
        messages.append(message)
    try:
        yield show
    finally:
        if messages is not None:
            messages[:] = [other for other in messages if other is not message]
        if in_terminal:
            _terminal.clear()


@contextmanager
def command_progress(label: str) -> Iterator[Callable[[str], None]]:
    """Show what takes more than two seconds, on any kind of standard error.

    Yields a function that prints a text on standard output, without the line of the terminal in its way.
    """
    global _messages
    before, _messages = _messages, [[lambda: label]]
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(_messages, ended), daemon=True)
    watch.start()

    def say(text: str) -> None:
        with _terminal.lock:
            _terminal.clear()
            print(text, flush=True)

    try:
        yield say
    finally:
        ended.set()
        watch.join()
        _messages = before
        _terminal.clear()


def _watch(messages: list[list[Message]], ended: threading.Event) -> None:
    """Show the latest message now and then."""
    start = time.monotonic()
    due, pause = start + SILENCE, LINE_PAUSE
    while not ended.wait(min(SILENCE / 4, 0.5)):
        now = time.monotonic()
        text = f"{messages[-1][0]()} [{now - start:.0f} s]"
        with suppress(OSError, ValueError):  # standard error is closed
            if not sys.stderr.isatty():
                if now > due:
                    print(text, file=sys.stderr, flush=True)
                    due, pause = now + pause, min(pause * LINE_GROWTH, 60.0)
            elif now - max(start, _terminal.time) > SILENCE:
                _terminal.rewrite(text)
