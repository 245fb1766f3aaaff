"""The command ``admiss fit``: a model of files that need not fit in memory."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from admiss.cli.source_options import DATA, add_source_options, opened, statistics_of, tree_statistics
from admiss.statistics.hash_folds import MOST_FOLDS, HashFolds
from admiss.tables.column import listed
from admiss.terminal.table import wrapped

MODELS = {
    "static": "weights that do not depend on the pattern of missing values",
    "affine_intercept": "an intercept that depends on it linearly: the best constant imputation",
    "affine": "weights that depend on it linearly",
    "tree": "a linear model in each leaf of the best tree of missing values, with a proof",
    "greedy": "the same in the leaves of a greedy tree",
}
DESCRIPTION = """\
Fit a regression by one pass over files: sums over rows suffice for the squared loss, for the folds of cross-validation
too. The model is that of the same rows in memory. A target of class labels is fitted in memory, up to {most} rows.
"""
# Rows of class labels, whose fit needs all of them: with 20 features and 5 folds, 130 s of a core.
MOST_LABELLED = 200_000
EXAMPLES = """\
  admiss fit --data 'rows/*.parquet' --target y --model affine --out m.joblib
  admiss fit --data visits/ --target cost --model tree --max-depth 4 \\
      --folds-key patient --out m.joblib
  admiss predict --model m.joblib --data new.parquet --out predicted.parquet
"""


def add_parser(commands: Any, summary: str) -> None:
    """Declare the options."""
    listed = "\n".join(f"  {name:<17} {words}" for name, words in MODELS.items())
    parser = commands.add_parser(
        "fit",
        help=summary,
        description=DESCRIPTION.format(most=f"{MOST_LABELLED:,}"),
        epilog=f"models:\n{listed}\n\ndata:\n{DATA}\nexamples:\n{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_source_options(parser)
    add = parser.add_argument
    add("--model", choices=list(MODELS), default="affine_intercept", help="see below (affine_intercept)")
    add("--cv", type=int, default=5, metavar="FOLDS", help="folds that select penalty and depth; 0 for none (5)")
    add("--max-depth", type=int, default=3, help="largest depth of a tree (3)")
    add("--max-leaves", type=int, help="largest number of leaves of a tree; unlimited by default")
    add("--min-rows", type=int, help="smallest number of rows in a leaf; 10 (d + 1) by default")
    add("--lam", type=float, default=1.0, help="penalty of linear models with --cv 0 (1.0)")
    add("--ridge", type=float, default=10.0, help="penalty in the leaves of trees with --cv 0 (10.0)")
    add("--settle", action="store_true", help="read the data again for leaves of trees that sums cannot prove")
    add("--out", required=True, metavar="FILE", help="the model, for admiss predict and joblib")
    parser.set_defaults(handler=fit_pages)


def fit_pages(options: argparse.Namespace) -> Iterator[str]:
    """Accumulate, fit, write, and yield the text to print."""
    from admiss.statistics.row_statistics import RowStatistics
    from admiss.streaming.file_model import FileModel
    from admiss.streaming.one_pass import SourceRows

    out = Path(options.out)
    if not out.parent.is_dir() or out.is_dir():
        raise ValueError(f"--out must be a file in a folder that exists, not {options.out!r}.")
    if options.cv != 0 and not 2 <= options.cv <= MOST_FOLDS:
        raise ValueError(f"--cv must be 0, or from 2 to {MOST_FOLDS:,}, not {options.cv}.")
    tree = options.model in ("tree", "greedy")
    if options.settle and not tree:
        raise ValueError("--settle is for trees: the bounds of linear models follow from sums.")
    if tree and options.max_depth < 1:
        raise ValueError(f"--max-depth must be at least 1, not {options.max_depth}.")
    if not tree and (options.max_leaves, options.min_rows) != (None, None):
        raise ValueError("--max-leaves and --min-rows are for trees.")
    source = opened(options, [("--out", out)])
    names = source.schema.names
    yield wrapped(f"{len(names)} feature{'s' * (len(names) > 1)}: {listed(names)}")
    yield from map(wrapped, [*source.notes, *source.schema.notes])
    if source.schema.task == "classification":
        yield from _fit_labels(options, source)
        return
    model = _model(options, "regression")
    folds = HashFolds(options.cv, options.folds_key) if options.cv else None
    if tree:
        empty = tree_statistics(source, options.max_depth, folds)
    else:
        empty = RowStatistics(options.model, tree_depth=None, folds=folds)
    statistics, summary = statistics_of(source, empty, options)
    observed = summary.n_observed.sum() / (summary.n_rows * len(summary.n_observed))
    yield f"{summary.n_rows:,} rows with a target, {1 - observed:.1%} of the features missing"
    model.fit_statistics(statistics, **{"settle": SourceRows(source)} if options.settle else {})
    if options.cv:
        yield wrapped(f"selected: {', '.join(map(_selected, model.best_params_.items()))}")
        if summary.deviation[-1] > 0:
            yield f"R2 in cross-validation: {1 + model.best_score_ / summary.deviation[-1] ** 2:.3f}"
    yield str(model.certificate_)
    FileModel(model, source.schema).save(out)
    yield f"written: {out}"


def _fit_labels(options: argparse.Namespace, source: Any) -> Iterator[str]:
    """Fit a classifier to rows in memory, and write it."""
    from admiss.streaming.file_model import FileModel
    from admiss.tables.opening import collect
    from admiss.tables.source import named_frame

    for option in ("settle", "workers", "scheduler"):
        if getattr(options, option):
            raise ValueError(f"--{option} is for targets that are numbers: {options.target} has class labels.")
    model = _model(options, "classification")
    table = collect(source, options.task, MOST_LABELLED)
    yield from map(wrapped, table.notes[len(source.notes) : len(table.notes) - len(source.schema.notes)])
    yield f"{len(table.y):,} rows with a target, {np.isnan(table.X).mean():.1%} of the features missing"
    if options.cv:
        model.set_params(cv=HashFolds(options.cv, table.keys))
    model.fit(named_frame(table.X, table.names), table.y, sample_weight=table.weight)
    if options.cv:
        yield wrapped(f"selected: {', '.join(map(_selected, model.best_params_.items()))}")
        yield f"log-loss in cross-validation: {-model.best_score_:.3f}"
    yield str(model.certificate_)
    FileModel(model, source.schema).save(Path(options.out))
    yield f"written: {options.out}"


def _selected(parameter: tuple[str, Any]) -> str:
    name, value = parameter
    return f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"


def _model(options: argparse.Namespace, task: str) -> Any:
    """The estimator of a model."""
    import admiss
    from admiss.partition import Greedy, OptimalTree

    kind = "Classifier" if task == "classification" else "Regressor"
    if options.model not in ("tree", "greedy"):
        if options.cv:
            return getattr(admiss, f"Adaptive{kind}CV")(options.model)
        return getattr(admiss, f"Adaptive{kind}")(options.model, lam=options.lam)
    limits = {"max_depth": options.max_depth, "max_leaves": options.max_leaves, "min_rows": options.min_rows}
    partitioner = {"tree": OptimalTree, "greedy": Greedy}[options.model](**limits)
    if options.cv:
        return getattr(admiss, f"Finite{kind}CV")(partitioner, max_depths=list(range(1, options.max_depth + 1)))
    return getattr(admiss, f"Finite{kind}")(partitioner, ridge=options.ridge)
