"""One file of arrays with a header: versioned, and without pickle, so that reading it runs nothing."""

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from admiss.atomic_write import write_atomically
from admiss.statistics.blocks import Arrays

# Version of the format, and the name of the header among the arrays.
FORMAT, HEADER = 2, "header"


def save_arrays(path: str | os.PathLike[str], kind: str, header: dict[str, Any], arrays: Arrays) -> None:
    """Write a file, which appears under its name only once it is complete."""
    content = io.BytesIO()
    text = np.frombuffer(json.dumps({"kind": kind, "format": FORMAT, **header}).encode(), dtype=np.uint8)
    # numpy.savez by hand: it would pickle objects, and older versions take allow_pickle=False for one more array.
    with zipfile.ZipFile(content, "w") as archive:
        for name, array in {HEADER: text, **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    write_atomically(Path(path), content.getvalue())


def load_arrays(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a file, or an error in one sentence if it is not what was written."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(arrays.pop(HEADER).tobytes())
        is_kind, found = header.get("kind") == kind, header.get("format")
    except OSError:
        raise
    except Exception as error:  # a forged file can end anywhere: in a shape beyond memory, a password, deep nesting
        raise ValueError(f"{path} is not a file of {kind}, or it is damaged.") from error
    if not is_kind:
        raise ValueError(f"{path} is not a file of {kind}.")
    if found != FORMAT:
        raise ValueError(
            f"{path} has format {found}, and this version of admiss reads format {FORMAT}: collect it again."
        )
    return header, arrays
