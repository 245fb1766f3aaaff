"""The command ``admiss new-class``: files for a new adaptivity class and its test."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from admiss.testing.template import new_class_files

PAGE = Path(__file__).parents[1] / "adaptivity" / "WRITE_YOUR_OWN.md"
DESCRIPTION = """\
Write two files to start from: an adaptivity class NAME with a basis, names and a docstring in the usual order, and a
test that runs the contract of adaptivity classes and a first comparison. Both run as written; look for TODO.
"""


def add_parser(commands: Any, summary: str) -> None:
    """Declare the options."""
    parser = commands.add_parser(
        "new-class",
        help=summary,
        description=DESCRIPTION,
        epilog="example:\n  admiss new-class CountAdaptive --folder ideas\n  cd ideas\n"
        f"  python -m pytest test_count_adaptive.py\n\nfrom nothing to a tested class:\n  {PAGE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="name of the class, CountAdaptive for instance")
    parser.add_argument(
        "--folder", default=".", metavar="DIR", help="where to write; created if absent (default: here)"
    )
    parser.set_defaults(handler=new_class_pages)


def new_class_pages(options: argparse.Namespace) -> Iterator[str]:
    """Write both files or none, and yield the next steps."""
    folder = Path(options.folder)
    files = {folder / file: text for file, text in new_class_files(options.name).items()}
    existing = [str(path) for path in files if path.exists()]
    if existing:
        raise ValueError(f"{existing[0]} already exists and is not overwritten: choose another name or --folder.")
    for part in (folder, *folder.parents):
        if part.exists() and not part.is_dir():
            raise ValueError(f"--folder {folder} cannot be created, since {part} is a file: name a folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise ValueError(f"--folder {folder} cannot be written to ({error.strerror}): name another.") from error
    for path in files:
        yield f"written: {path}"
    test = list(files)[1].name
    yield f"test it: {'' if folder == Path('.') else f'cd {folder} && '}python -m pytest {test}"
    yield f"read on: {PAGE}"
