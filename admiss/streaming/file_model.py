"""A fitted model with the columns that it was fitted on: what ``admiss fit`` writes."""

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import joblib

from admiss._version import __version__
from admiss.atomic_write import write_atomically
from admiss.tables.frames import eager
from admiss.tables.schema import Schema
from admiss.tables.source import named_frame


@dataclass(frozen=True)
class FileModel:
    """A fitted estimator and the schema of its features.

    Attributes
    ----------
    estimator : estimator
    schema : Schema
        How columns become features.
    version : str
        Version of admiss that fitted it.
    """

    estimator: Any
    schema: Schema
    version: str = __version__

    def predict(self, frame: Any) -> Any:
        """Predictions for a data frame with the columns of the files."""
        X = self.schema.without_target().encode(eager(frame, "the frame"), "the frame")
        return self.estimator.predict(named_frame(X, self.schema.names))

    def save(self, path: str | Path) -> None:
        """Write a file, which appears under its name once it is complete."""
        content = BytesIO()
        joblib.dump(self, content)
        write_atomically(Path(path), content.getvalue())


def load_model(path: str | Path) -> FileModel:
    """Read what :meth:`FileModel.save` has written. This executes code in the file: load only those that you trust."""
    if not Path(path).is_file():
        raise ValueError(f"There is no file {path}.")
    try:
        found = joblib.load(path)
    except Exception as error:  # whatever unpickling raises
        raise ValueError(f"{path} could not be loaded: write it again with admiss fit.") from error
    if not isinstance(found, FileModel):
        raise ValueError(f"{path} holds {type(found).__name__}, not a model that admiss fit has written.")
    return found
