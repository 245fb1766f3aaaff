"""The command ``python -m experiments``."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

# Before numpy is imported: benchmarks compare single threads.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

TOPICS = {
    "elastic-net": "penalised paths against glmnet, scikit-learn and cvxpy",
    "partitions": "exact partitions against pystreed, batched Cholesky and dynamic programs",
    "joint": "joint impute-then-regress: speed of its search, what it gains, tuning of a forest",
    "adversary": "the reallocation of patterns against an assignment of rows",
    "greedy-gap": "what greedy splitting loses, in training and out of sample",
}


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description="Research runs and benchmarks of admiss."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    bench = commands.add_parser("bench", help="benchmarks against the best peers, in CPU time of one thread")
    topics = bench.add_subparsers(dest="topic", required=True, metavar="TOPIC")
    for topic, words in TOPICS.items():
        options = topics.add_parser(topic, help=words, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        _add_options(options, f"bench-{topic}")
    bounds = commands.add_parser(
        "bounds",
        help="generalization bounds against the true risk of truncated least squares",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    _add_options(bounds, "bounds")
    return parser


def _add_options(parser: argparse.ArgumentParser, folder: str) -> None:
    parser.add_argument("--out", type=Path, default=Path(folder), help="folder of finished measurements")
    parser.add_argument("--quick", action="store_true", help="small workloads, for a look")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    options = build_parser().parse_args(arguments)
    name = "bounds" if options.command == "bounds" else f"bench.{options.topic.replace('-', '_')}"
    topic = import_module(f"experiments.{name}")
    print(topic.run(options.out, quick=options.quick))
    return 0


if __name__ == "__main__":
    sys.exit(main())
