"""``admiss compare`` from one pass over files that need not fit in memory."""

import argparse
from collections.abc import Iterator, Sequence
from glob import has_magic
from pathlib import Path

from admiss.atomic_write import NamedFile
from admiss.cli.source_options import checked_pass, opened
from admiss.compare.comparison import Comparison
from admiss.compare.setting import Setting


def reads_chunks(options: argparse.Namespace) -> bool:
    """Whether --data is read in chunks."""
    data = options.data
    if data is None:
        if options.stream or options.checkpoint or options.folds_key or options.workers or options.scheduler:
            raise ValueError("--stream, --checkpoint, --folds-key, --workers and --scheduler are for --data FILE.")
        return False
    if options.stream or Path(data).is_dir() or (has_magic(data) and not Path(data).is_file()):
        return True
    if options.checkpoint or options.folds_key or options.workers or options.scheduler:
        raise ValueError(
            "--checkpoint, --folds-key, --workers and --scheduler are for --stream, a folder or a pattern."
        )
    return False


def compare_source(
    options: argparse.Namespace, setting: Setting, methods: tuple[str, ...], outputs: Sequence[NamedFile]
) -> Iterator[str | Comparison]:
    """The title, and the comparison."""
    from admiss.compare.statistics import compare_statistics
    from admiss.streaming import HashFolds, RowStatistics, accumulate

    if options.task == "classification" or options.keep or options.verify:
        raise ValueError(
            "--task classification, --keep and --verify need all rows: compare a part of them in one file."
        )
    setting.check(methods)
    folds = HashFolds(setting.folds, options.folds_key) if setting.folds else None
    groups = not set(methods) <= {"none", "greedy", "tree"}
    empty = RowStatistics([], tree_depth=None if groups else setting.max_depth, patterns=groups, folds=folds)
    source = opened(argparse.Namespace(**{**vars(options), "data": [options.data]}), Path(options.out), outputs)
    with checked_pass(options, Path(options.out)) as folder:
        passed = {"workers": options.workers, "scheduler": options.scheduler}
        statistics = accumulate(source, empty, checkpoint=folder, **passed)
        found = statistics.summary()
        observed = found.n_observed.sum() / (found.n_rows * len(found.n_observed))
        yield (
            f"{options.data}: {found.n_rows:,} rows, {len(found.n_observed)} features, {1 - observed:.0%} missing; "
            "without test rows"
        )
        yield compare_statistics(statistics, methods=methods, setting=setting, title=Path(options.data).name)
