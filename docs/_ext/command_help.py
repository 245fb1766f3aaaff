"""A directive that shows the help of a command of ``admiss``, as it prints it."""

import contextlib
import io
import os

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from admiss.cli.main import main


class CommandHelp(SphinxDirective):
    """The help of ``admiss`` with the given words."""

    optional_arguments = 9

    def run(self) -> list[nodes.Node]:
        os.environ["COLUMNS"] = "110"
        words, shown = self.arguments, io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
            main([*words, "--help"])
        if not shown.getvalue():
            raise self.error(f"'admiss {' '.join(words)} --help' prints nothing.")
        return [nodes.literal_block("", shown.getvalue(), language="text")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}
