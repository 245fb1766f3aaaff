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

from admiss.cli.study_commands import add_study_commands  # noqa: E402
from admiss.study.errors import EngineError  # noqa: E402
from admiss.study.outcome import encodable  # noqa: E402

TOPICS = {
    "elastic-net": "penalised paths against glmnet, scikit-learn and cvxpy",
    "partitions": "exact partitions against pystreed, batched Cholesky and dynamic programs",
    "joint": "joint impute-then-regress: speed of its search, what it gains, tuning of a forest",
    "stack": "fit of a stack against the cross-validation of affine weights",
    "adversary": "the reallocation of patterns against an assignment of rows",
}


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description="Research runs and benchmarks of admiss."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_study_commands(commands)
    bench = commands.add_parser("bench", help="benchmarks against the best peers, in CPU time of one thread")
    topics = bench.add_subparsers(dest="topic", required=True, metavar="TOPIC")
    for topic, words in TOPICS.items():
        options = topics.add_parser(topic, help=words, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        options.add_argument("--out", type=Path, default=Path(f"bench-{topic}"), help="folder of finished measurements")
        options.add_argument("--quick", action="store_true", help="small workloads, for a look")
        options.set_defaults(handler=run_bench)
    return parser


def run_bench(options: argparse.Namespace) -> str:
    """Run the benchmarks of a topic."""
    topic = import_module(f"experiments.bench.{options.topic.replace('-', '_')}")
    return str(topic.run(options.out, quick=options.quick))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is 0, 2 with one sentence where something is wrong, 130 when interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    options = build_parser().parse_args(arguments)
    options.arguments = arguments
    try:
        print(encodable(options.handler(options)), flush=True)
    except BrokenPipeError:  # the reader, head for instance, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (EngineError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interruption:
        print(str(interruption) or "interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
