"""The number of writes to a store, kept twice: in the store, and in a text file beside it.

The write-ahead log of a store holds its latest cells until SQLite moves them into the store itself, at the latest when
a run ends. After a run that was killed, a store without its log is a valid, older store, in which nothing shows that
cells are missing, but the number in the text file is larger than the one in the store.

The text file is written after the store, and not forced to the disk: it may be behind, never ahead. Without the file,
for a store that was copied alone for instance, nothing is checked.
"""

import contextlib
import os
from pathlib import Path

from admiss.study.store_errors import companions

FILE = "writes.txt"


class WriteCount:
    """The text file of a store.

    Parameters
    ----------
    store : Path
    """

    def __init__(self, store: Path) -> None:
        self.store = store
        self.path = store.with_name(FILE)
        self._file: int | None = None

    def read(self) -> int:
        """The number of writes; zero if it is not known."""
        try:
            return int(self.path.read_bytes()[:20])
        except (OSError, ValueError):
            return 0

    def write(self, count: int) -> None:
        """Write the number; a file that cannot be written is behind, which does not matter."""
        with contextlib.suppress(OSError):
            if self._file is None:
                self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o666)
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, f"{count:>19}\n".encode())

    def forget(self) -> None:
        """Remove the file, of a store that is no longer there."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def loss(self, lost: int) -> str | None:
        """Sentence about writes that are not in the store, or None if there are none."""
        if lost <= 0:
            return None
        log, _ = companions(self.store)
        return (
            f"{self.store} lacks the last {lost:,} writes of a run that was stopped: finished cells may be lost, since "
            f"{log.name} was deleted or an older copy put in its place; restore it, or run again to compute them."
        )
