"""Files that appear under their name only once they are complete."""

import os
import uuid
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file and its parent folders; no reader ever sees a part of the content under this name.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder, "new", "file"), b"content")
    ...     Path(folder, "new", "file").read_bytes()
    b'content'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not a file of tempfile, which the other users of a shared folder could not read.
    unfinished = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with unfinished.open("xb") as file:
            file.write(content)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
