"""A directive that shows the help of a command of ``admiss``, as it prints it."""

import contextlib
import io
import os
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import admiss
from admiss.cli.main import main

# The folder in which the package lies on the machine that builds the site: pages do not show it.
FOLDER = str(Path(admiss.__file__).parents[1]) + os.sep


class CommandHelp(SphinxDirective):
    """The help of ``admiss`` with the given words."""

    optional_arguments = 9

    def run(self) -> list[nodes.Node]:
        os.environ["COLUMNS"] = "110"
        shown = help_text(self.arguments)
        if not shown:
            raise self.error(f"'admiss {' '.join(self.arguments)} --help' prints nothing.")
        return [nodes.literal_block("", shown, language="text")]


def help_text(words: list[str]) -> str:
    """What ``admiss`` with these words and ``--help`` prints, without the folder of this machine."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        main([*words, "--help"])
    return shown.getvalue().replace(FOLDER, "")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}
