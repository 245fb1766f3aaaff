"""The command ``python -m experiments``."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# Before numpy is imported: benchmarks compare single threads.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description="Research runs and benchmarks of admiss."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    bench = commands.add_parser("bench", help="benchmarks against the best peers, in CPU time of one thread")
    topics = bench.add_subparsers(dest="topic", required=True, metavar="TOPIC")
    elastic = topics.add_parser(
        "elastic-net",
        help="penalised paths against glmnet, scikit-learn and cvxpy",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    elastic.add_argument("--out", type=Path, default=Path("bench-elastic-net"), help="folder of finished measurements")
    elastic.add_argument("--quick", action="store_true", help="one small workload, for a look")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    options = build_parser().parse_args(arguments)
    from experiments.bench import elastic_net

    print(elastic_net.run(options.out, quick=options.quick))
    return 0


if __name__ == "__main__":
    sys.exit(main())
