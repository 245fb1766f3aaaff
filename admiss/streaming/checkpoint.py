"""A pass over a source on disk: statistics of the chunks that are finished, and which these are.

A folder holds ``progress.json`` and the file of statistics that it names. A new file of statistics is written first and
named by a new ``progress.json`` afterwards, each completely or not at all: whenever a process is killed or a disk is
full, the folder holds the statistics of exactly the chunks that it lists. A lock keeps a second process out.
"""

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from admiss.atomic_write import write_atomically
from admiss.errors import EngineError
from admiss.folder_lock import locked
from admiss.streaming.statistics import RowStatistics

LAYOUT = 1
PROGRESS = "progress.json"


class CheckpointError(ValueError):
    """A checkpoint that does not belong to a pass, in one sentence that says what to do."""


@dataclass(frozen=True)
class Checkpoint:
    """What is on disk.

    Attributes
    ----------
    folder : Path
    settings : str
        Digest of what is accumulated.
    chunks : tuple of str
        Digests of the finished chunks, in order.
    statistics : str
        Name of the file of statistics; empty before the first chunk.
    complete : bool
        Whether these are all chunks.
    """

    folder: Path
    settings: str
    chunks: tuple[str, ...] = ()
    statistics: str = ""
    complete: bool = False

    def loaded(self, adaptivity: Any) -> RowStatistics | None:
        """The statistics of the finished chunks, or None if there are none."""
        return RowStatistics.load(self.folder / self.statistics, adaptivity) if self.statistics else None

    def saved(self, statistics: RowStatistics, chunks: Sequence[str], *, complete: bool) -> "Checkpoint":
        """Write the statistics of more chunks."""
        name = f"statistics-{uuid.uuid4().hex}.npz"
        new = replace(self, chunks=tuple(chunks), statistics=name, complete=complete)
        try:
            statistics.save(self.folder / name)
            content = {"layout": LAYOUT, "settings": new.settings, "complete": complete, "statistics": name}
            text = json.dumps(content | {"chunks": new.chunks}, indent=1)
            write_atomically(self.folder / PROGRESS, text.encode())
        except BaseException:
            (self.folder / name).unlink(missing_ok=True)
            raise
        for old in self.folder.glob("statistics-*"):
            if old.name != name:
                old.unlink()
        return new


@contextmanager
def opened(folder: Path, settings: str) -> Iterator[Checkpoint]:
    """The checkpoint in a folder, which is made if it does not exist and locked until the end."""
    try:
        lock = locked(folder)
    except EngineError as error:
        raise CheckpointError(f"The checkpoint {folder} cannot be used: {error}") from error
    with closing(lock):
        yield _read(folder, settings)


def _read(folder: Path, settings: str) -> Checkpoint:
    path = folder / PROGRESS
    if not path.exists():
        return Checkpoint(folder, settings)
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        found = Checkpoint(
            folder, content["settings"], tuple(content["chunks"]), content["statistics"], content["complete"]
        )
        layout = content["layout"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is not the progress of a pass: delete the folder to start again.") from error
    if layout != LAYOUT:
        raise CheckpointError(f"{path} was written by another version of admiss: delete the folder to start again.")
    if found.settings != settings:
        raise CheckpointError(
            f"{folder} holds a pass with other settings or columns: choose another folder, or delete it to start again."
        )
    return found
