"""Optional packages: one sentence with the command that installs what is absent."""

from collections.abc import Iterator
from contextlib import contextmanager


class MissingPackageError(ImportError):
    """An optional package is not installed.

    Examples
    --------
    >>> str(MissingPackageError("A figure", "matplotlib", "plots"))
    "A figure needs matplotlib: run pip install 'admiss[plots]'."
    """

    def __init__(self, purpose: str, package: str, extra: str) -> None:
        super().__init__(f"{purpose} needs {package}: run pip install 'admiss[{extra}]'.", name=package)


@contextmanager
def optional_import(purpose: str, extra: str) -> Iterator[None]:
    """Turn a failed import inside the block into a :class:`MissingPackageError`.

    ``purpose`` is the subject of its sentence, what needs the package, and ``extra`` that of admiss which installs it.
    """
    try:
        yield
    except MissingPackageError:
        raise
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "admiss", "formulations"):  # a mistake in the sources
            raise
        raise MissingPackageError(purpose, package, extra) from error
