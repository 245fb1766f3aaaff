"""A number of seconds divided among the steps of a comparison, and the end of a step that takes longer.

    share of a step = seconds left * its weight / weight of the steps that are still to come, itself included,
                      but at least a quarter of the seconds left

What a step does not use is left to those after it. A block under :class:`TimeLimit` is ended by an exception in the
main thread, raised by the handler of a simulated interrupt; compiled code is left to finish first. In other threads,
which have no such handlers, steps end by themselves, and only what comes after them is left out.
"""

import _thread
import signal
import threading
import time
from collections.abc import Iterable
from types import FrameType, TracebackType
from typing import Any, Self

import numpy as np


class TimeIsUpError(BaseException):
    """A step has used its share of the time."""


class TimeBudget:
    """Seconds to divide among steps of given weights.

    Parameters
    ----------
    seconds : float, optional
        Unlimited by default.
    weights : iterable of float
        Weights of all steps.

    Examples
    --------
    >>> budget = TimeBudget(None, [1, 2])
    >>> budget.share(1) is None
    True
    """

    def __init__(self, seconds: float | None, weights: Iterable[float]) -> None:
        self.end = None if seconds is None else time.monotonic() + seconds
        self.weight = float(sum(weights))

    def share(self, weight: float) -> float | None:
        """Seconds for the next step, None if time is unlimited."""
        part = np.clip(weight / self.weight, 0.25, 1.0) if self.weight > 0 else 1.0
        self.weight -= weight
        left = self.left()
        return None if left is None else left * float(part)

    def left(self) -> float | None:
        """Seconds until the end."""
        return None if self.end is None else max(0.0, self.end - time.monotonic())


class TimeLimit:
    """Context in which :class:`TimeIsUpError` is raised once so many seconds have passed.

    Parameters
    ----------
    seconds : float, optional
        Unlimited by default.

    Examples
    --------
    >>> try:
    ...     with TimeLimit(0.01):
    ...         while True:
    ...             pass
    ... except TimeIsUpError:
    ...     print("ended")
    ended
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.ended = threading.Event()
        self.is_up = False
        self.watch: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self.seconds is not None:
            if self.seconds <= 0:
                raise TimeIsUpError
            if threading.current_thread() is threading.main_thread():
                self.previous = signal.signal(signal.SIGINT, self._handle)
                self.watch = threading.Thread(target=self._interrupt, daemon=True)
                self.watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.watch is not None:
            self.ended.set()
            self.watch.join()
            signal.signal(signal.SIGINT, self.previous)
        if error is not None and _is_time(error):
            raise TimeIsUpError from None

    def _interrupt(self) -> None:
        if not self.ended.wait(self.seconds):
            self.is_up = True
            while not self.ended.is_set():
                _thread.interrupt_main()
                self.ended.wait(0.1)  # then once more, if the exception was swallowed

    def _handle(self, number: int, frame: FrameType | None) -> Any:
        if not self.is_up:
            return self.previous(number, frame) if callable(self.previous) else None
        while frame is not None:
            if frame.f_code in (TimeLimit.__enter__.__code__, TimeLimit.__exit__.__code__):  # outside the block
                return None
            frame = frame.f_back
        raise TimeIsUpError


def _is_time(error: BaseException | None) -> bool:
    """Whether an error is, or comes from, the end of the time: an exception inside compiled code becomes another."""
    while error is not None and not isinstance(error, TimeIsUpError):
        error = error.__cause__ or error.__context__
    return error is not None
