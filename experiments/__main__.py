"""The command ``python -m experiments``."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

# Before numpy is imported: benchmarks compare single threads.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from admiss.cli.study.commands import add_reader, add_study_commands, catalogued, run_command  # noqa: E402

if TYPE_CHECKING:
    from admiss.study.report.presentation import Catalogue

TOPICS = {
    "elastic-net": "penalised paths against glmnet, adelie, scikit-learn and cvxpy",
    "partitions": "exact partitions against pystreed, batched Cholesky and a dynamic program",
    "joint": "joint impute-then-regress: speed of its search, what it gains, tuning of a forest",
    "groups": "groups of patterns: time to a proof against a dynamic program, gap after a minute, and compilation",
    "waits": "defaults next to a linear model, LightGBM and CatBoost, and first fits of a process",
    "adversary": "the reallocation of patterns against an assignment of rows",
    "streaming": "statistics of rows in memory and fits by them, beside scikit-learn and glum",
    "intervals": "thresholds of 400 patterns against the stated program",
    "streaming-files": "models of Parquet files larger than memory beside a plain scan, SGD and glum",
}


def build_parser() -> argparse.ArgumentParser:
    """Build the commands and their options."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description="Research runs and benchmarks of admiss."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    studies = catalogued(catalogue)
    add_study_commands(commands, studies)
    words = "the numbers beside those of the paper (without a study: of all that were run)"
    add_reader(commands, "compare-paper", words, compare_paper, studies, nargs="?")
    bench = commands.add_parser("bench", help="benchmarks against the best peers, in CPU time of one thread")
    topics = bench.add_subparsers(dest="topic", required=True, metavar="TOPIC")
    for topic, words in TOPICS.items():
        options = topics.add_parser(topic, help=words, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        options.add_argument("--out", type=Path, default=Path(f"bench-{topic}"), help="folder of finished measurements")
        options.add_argument("--quick", action="store_true", help="small workloads, for a look")
        if topic == "streaming-files":
            options.add_argument("--rows", type=int, default=10**8, help="generated rows, 84 bytes each on disk")
            options.add_argument("--scratch", type=Path, help="folder of the generated files, which are deleted")
        options.set_defaults(handler=run_bench)
    return parser


def catalogue() -> "Catalogue":
    """Import the studies, which takes seconds."""
    from experiments.catalogue import CATALOGUE

    return CATALOGUE


def compare_paper(options: argparse.Namespace) -> str:
    """Compare studies with the paper."""
    from experiments.paper.commands import compare_studies

    return compare_studies(options)


def run_bench(options: argparse.Namespace) -> str:
    """Run the benchmarks of a topic; their tables are stored as CSV files in the folder of its measurements."""
    from experiments.bench.records import write_tables

    topic = import_module(f"experiments.bench.{options.topic.replace('-', '_')}")
    own = {name: getattr(options, name) for name in ("rows", "scratch") if hasattr(options, name)}
    report = str(topic.run(options.out, quick=options.quick, **own))
    write_tables(report, options.out, options.topic)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_command(build_parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
