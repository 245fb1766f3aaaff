"""Messages through a pipe: eight bytes that give the length, then the pickled object."""

import pickle
import struct
from typing import IO, Any

LENGTH = struct.Struct("<Q")


def write_frame(pipe: IO[bytes], message: Any) -> None:
    """Send a message."""
    content = pickle.dumps(message)
    pipe.write(LENGTH.pack(len(content)) + content)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> Any:
    """The next message; raises ``EOFError`` at the end of the pipe, also in the middle of a message."""
    (length,) = LENGTH.unpack(_read(pipe, LENGTH.size))
    return pickle.loads(_read(pipe, length))


def _read(pipe: IO[bytes], size: int) -> bytes:
    pieces = []
    while size:
        piece = pipe.read(size)
        if not piece:
            raise EOFError("the other end of the pipe was closed")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
