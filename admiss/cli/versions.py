"""The command ``admiss versions``."""

import argparse
from collections.abc import Iterator
from typing import Any

from admiss.versions import show_versions


def add_parser(commands: Any, summary: str) -> None:
    """Declare the command."""
    commands.add_parser("versions", help=summary).set_defaults(handler=_versions)


def _versions(options: argparse.Namespace) -> Iterator[str]:
    show_versions()
    return iter(())
