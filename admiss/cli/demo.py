"""The command ``admiss demo``: the classes of the hierarchy on generated data."""

import argparse
from typing import Any

from admiss.demo import demo_pages


def add_parser(commands: Any, summary: str) -> None:
    """Declare the options."""
    parser = commands.add_parser("demo", help=summary, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000, help="training rows")
    parser.add_argument("--missing", type=float, default=0.3, metavar="SHARE", help="share of missing values")
    parser.add_argument("--lam", type=float, default=5.0, help="strength of the penalty")
    parser.add_argument("--seed", type=int, default=0, help="seed of the data")
    parser.set_defaults(handler=lambda options: demo_pages(options.rows, options.missing, options.lam, options.seed))
