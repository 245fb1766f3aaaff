"""What happens while numba compiles: the clock of certificates stands still, and a terminal says why it takes seconds.

The events are those of ``numba.core.event``, which numba documents as experimental.
"""

import multiprocessing
import shutil
import sys
from contextlib import suppress

from numba.core.event import Event, Listener, register

from formulations.certificate import clock


class _Compilation(Listener):
    """Stops the clock while numba compiles, and says once on a terminal why the first fit takes seconds.

    Loops that a loop calls are compiled while it is. A lock of numba lets one thread compile at a time.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.is_said = False

    def on_start(self, event: Event) -> None:
        self.depth += 1
        if self.depth > 1:
            return
        clock.stop()
        function = getattr(event.data.get("dispatcher"), "py_func", None)
        home = str(getattr(function, "__module__", "")).partition(".")[0]
        if home in ("admiss", "formulations") and not self.is_said:
            self.is_said = True
            _say_on_a_terminal("compiling numerical code (once per machine) ...")

    def on_end(self, event: Event) -> None:
        self.depth = max(0, self.depth - 1)  # an interrupt may have kept its start from being counted
        if not self.depth:
            clock.resume()


def _say_on_a_terminal(text: str) -> None:
    """Print a line on standard error if it is a terminal, over a line of progress; worker processes print nothing."""
    with suppress(OSError, ValueError, AttributeError):  # standard error is closed, or there is none
        if sys.stderr.isatty() and multiprocessing.parent_process() is None:
            print(f"\r{text:<{shutil.get_terminal_size().columns - 1}}", file=sys.stderr, flush=True)


def listen() -> None:
    """Begin to listen; called once."""
    register("numba:compile", _Compilation())
