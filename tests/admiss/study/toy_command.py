"""The study commands with the toy study."""

import argparse
import sys
from collections.abc import Sequence

from toy_study import TOY

from admiss.cli.study.commands import add_study_commands, catalogued, run_command
from admiss.study.report.presentation import Catalogue, Presentation

TOYS: Catalogue = {TOY.name: Presentation(TOY)}


def main(arguments: Sequence[object], catalogue: Catalogue = TOYS) -> int:
    parser = argparse.ArgumentParser(prog="toy")
    add_study_commands(parser.add_subparsers(required=True), catalogued(lambda: catalogue))
    return run_command(parser, list(map(str, arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
