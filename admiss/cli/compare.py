"""The command ``admiss compare``: partitioners side by side, as text, a figure, a JSON file and a page."""

import argparse
import json
import uuid
from collections.abc import Iterator, Sequence
from glob import has_magic
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from admiss.atomic_write import NamedFile, check_outputs, flush, write_atomically
from admiss.cli.source_options import add_pass_options, opened, statistics_of, tree_statistics
from admiss.compare.comparison import Comparison
from admiss.compare.partitions import compare_partitions
from admiss.compare.setting import DEFAULT_METHODS, METHODS, TASKS, Setting, described
from admiss.datasets import make_interacting, make_synthetic
from admiss.extras import optional_import
from admiss.finite.base import LEAF_MODELS
from admiss.plots import plot_comparison
from admiss.tables import MISSING_WORDS, read_table
from admiss.terminal.table import aligned, table_width, wrapped
from admiss.versions import versions
from formulations.arrays import IntArray
from formulations.leaves.cost import RIDGE_SCALES
from formulations.log_link import LogLink
from formulations.losses import LOSSES

LEAF_LOSSES = [name for name, loss in LOSSES.items() if loss.task == "regression" and not issubclass(loss, LogLink)]
HEADERS = {"above_bound_percent": "above %"} | {
    f"{kind}_{score}": f"{words} {kind}"
    for kind in ("cv", "test")
    for score, words in (("R2", "R2"), ("log_loss", "log-loss"), ("AUC", "AUC"), ("accuracy", "accuracy"))
}
ABOVE = "above %: training cost above the best bound proven for such partitions, in per cent of that bound."
FORMS = {"leaves": ".0f", "cost": ".6g", "bound": ".6g", "above_bound_percent": ".2f", "seconds": ".2f"}
DESCRIPTION = """\
Divide missingness patterns into leaves with one linear model per leaf, by several partitioners at the same leaf cost,
and compare their costs, proofs and predictions. Without --data two generated data sets are compared: one with
interacting patterns, on which greedy splitting misses the optimum, and the paper's MCAR data, on which it hardly does.
"""
DATA = """\
A CSV or Parquet file, one row per observation. Text becomes one column per value, dates become numbers, and what was
done with each column is said; --drop and --keep overrule it. Empty cells are missing, and so are
{words}, in small or capital letters.

A folder or a quoted pattern of Parquet files is compared from one pass over its row groups, in memory that does not
depend on the number of rows; --stream does the same with a single file. This is for regression with the squared loss
and trees, and without test rows: scores are those of cross-validation.
"""
TIME = """\
--time-limit is for everything that is done with one data set: fits, cross-validation, references, curves, trees close
to the optimum, proofs. Every step gets a share of what is left, references first. Exact methods return the best
partition found in their share, with its gap; a step that does not finish is named, and its numbers are "-". A single
fit of a reference or of a greedy tree is not cut short. Reading data and writing files are not included, nor the
compilation of numerical code by the very first run on a machine.
"""


def add_parser(commands: Any, summary: str) -> None:
    """Declare the options."""
    listed = "\n".join(f"  {name:<13} {words}" for name, (_, words) in METHODS.items())
    missing = " ".join(word for word in MISSING_WORDS if word)
    examples = """\
  admiss compare --data houses.csv --target price --max-depth 2 --test-share 0
  # the exact tree of this comparison, as a model
  admiss fit --data houses.csv --target price --max-depth 2 --model tree \\
      --cv 0 --out tree.joblib
  # classes, with a page of the results
  admiss compare --data clients.csv --target churn --task classification \\
      --html churn.html"""
    parser = commands.add_parser(
        "compare",
        help=summary,
        description=DESCRIPTION,
        epilog=f"data:\n{DATA.format(words=missing)}\nmethods:\n{listed}\n\ntime:\n{TIME}\nexamples:\n{examples}",
        formatter_class=_Formatter,
    )
    default, add = Setting(), parser.add_argument
    add("--data", metavar="FILE", help="a CSV or Parquet file, or a folder or pattern of Parquet files, see below")
    add("--stream", action="store_true", help="read --data in chunks, see below")
    add("--target", metavar="COLUMN", help="the column of --data to predict")
    add("--task", choices=["auto", *TASKS], default="auto", help="auto decides by the values of the target and says so")
    add("--drop", nargs="+", default=[], metavar="COLUMN", help="columns of --data to leave out")
    add("--keep", nargs="+", default=[], metavar="COLUMN", help="columns of --data to use that would be left out")
    add(
        "--methods", nargs="+", default=list(DEFAULT_METHODS), metavar="METHOD", choices=list(METHODS),
        help=f"partitioners to compare, see below (default: {' '.join(DEFAULT_METHODS)})",
    )  # fmt: skip
    add("--no-references", action="store_true", help="leave out mean imputation and gradient boosting of scikit-learn")
    add("--max-depth", type=int, default=default.max_depth, help="largest number of splits on the way to a leaf")
    add("--max-leaves", type=int, help="largest number of leaves; unlimited by default")
    add("--min-rows", type=int, help="smallest number of rows in a leaf; 10 (d + 1) by default")
    add("--ridge", type=float, default=default.ridge, help="penalty on the squared weights of a leaf")
    add("--ridge-scale", choices=RIDGE_SCALES, default=default.ridge_scale, help="the ridge as given, or times rows")
    add("--leaf-model", choices=LEAF_MODELS, default=default.leaf_model, help="model in the leaves")
    add("--no-center", action="store_true", help="let 0 stand for missing values, not the mean of the observed ones")
    add("--no-scale", action="store_true", help="let the ridge depend on the units of the features")
    add("--loss", choices=LEAF_LOSSES, help="loss of a leaf; squared by default, logistic for classes")
    add("--rows", type=int, default=1000, help="training rows of the generated data")
    add("--test-share", type=float, default=0.25, help="share of the rows of --data held out as test; 0 for none")
    add("--folds", type=int, default=default.folds, help="folds of the cross-validation; 0 for none")
    add("--time-limit", type=float, default=default.time_limit, help="seconds for each data set, see below")
    add("--seed", type=int, default=default.seed, help="seed of data, folds and test rows")
    add("--verify", action="store_true", help="prove costs and bounds again in exact arithmetic")
    add("--out", default="admiss-compare", metavar="PREFIX", help="PREFIX.png and PREFIX.json are written")
    add("--html", metavar="FILE", help="write the comparison as a page that opens from disk")
    add_pass_options(parser)
    parser.set_defaults(handler=compare_pages)


class _Formatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Shows defaults that are text or numbers, and descriptions as written."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default is None or isinstance(action.default, bool | list) or action.default is argparse.SUPPRESS:
            return action.help
        return super()._get_help_string(action)


def compare_pages(options: argparse.Namespace) -> Iterator[str]:
    """Run the comparison, and yield the text to print."""
    setting = Setting(
        max_depth=options.max_depth,
        max_leaves=options.max_leaves,
        min_rows=options.min_rows,
        ridge=options.ridge,
        ridge_scale=options.ridge_scale,
        leaf_model=options.leaf_model,
        center=not options.no_center,
        scale=not options.no_scale,
        loss=options.loss,
        time_limit=options.time_limit,
        folds=options.folds,
        references=not options.no_references,
        seed=options.seed,
    )
    methods = tuple(dict.fromkeys(options.methods))
    _check(options)
    setting.check(methods)
    comparisons: list[Comparison] = []
    compared = _compare_source if _reads_chunks(options) else _compare_tables
    printed = 0
    outputs = _outputs(options)
    for item in compared(options, setting, methods, list(outputs.values())):
        if isinstance(item, str):
            printed += 1
            yield wrapped(item)
            continue
        comparison = item
        comparisons.append(comparison)
        yield _table(comparison)
        sentences = [ABOVE, *comparison.notes[printed - 1 :], comparison.verdict()]  # behind the title
        printed = 0
        if comparison.near is not None:
            sentences += comparison.near.lines()
        yield from map(wrapped, filter(None, sentences))
        yield ""
        if comparison.interrupted:
            yield "interrupted: unfinished methods are left out"
            break
    yield from _written(comparisons, {name: path for name, (_, path) in outputs.items()})


def _outputs(options: argparse.Namespace) -> dict[str, NamedFile]:
    """The files to write, by their kind, with the option that names each."""
    prefix = Path(options.out)
    files = {kind: ("--out", prefix.with_name(f"{prefix.name}.{kind}")) for kind in ("json", "png")}
    return files if options.html is None else {**files, "html": ("--html", Path(options.html))}


def _compare_tables(
    options: argparse.Namespace, setting: Setting, methods: tuple[str, ...], outputs: Sequence[NamedFile]
) -> Iterator[str | Comparison]:
    """For each data set its title and notes, and the comparison."""
    check_outputs(outputs, [] if options.data is None else [("--data", Path(options.data))])
    for title, task, notes, data in _data(options):
        yield f"{title}: {described(*data[:2], task)}"
        yield from notes
        yield compare_partitions(
            *data, task=task, methods=methods, setting=setting, title=title, notes=tuple(notes), verify=options.verify
        )


def _reads_chunks(options: argparse.Namespace) -> bool:
    """Whether --data is read in chunks."""
    data = options.data
    if data is None:
        if options.stream or options.folds_key or options.workers or options.scheduler:
            raise ValueError("--stream, --folds-key, --workers and --scheduler are for --data FILE.")
        return False
    if options.stream or Path(data).is_dir() or (has_magic(data) and not Path(data).is_file()):
        return True
    if options.folds_key or options.workers or options.scheduler:
        raise ValueError("--folds-key, --workers and --scheduler are for --stream, a folder or a pattern.")
    return False


def _compare_source(
    options: argparse.Namespace, setting: Setting, methods: tuple[str, ...], outputs: Sequence[NamedFile]
) -> Iterator[str | Comparison]:
    """The title and the comparison of files that need not fit in memory, from one pass."""
    from admiss.compare.statistics import compare_statistics
    from admiss.statistics.hash_folds import HashFolds

    if options.task == "classification" or options.verify:
        raise ValueError("--task classification and --verify need all rows: compare a part of them in one file.")
    source = opened(argparse.Namespace(**{**vars(options), "data": [options.data]}), outputs)
    if source.schema.task == "classification":
        raise ValueError(
            f"{options.target} has class labels, whose comparison needs all rows: compare a part of them in one file, "
            "or use --task regression if they are numbers."
        )
    folds = HashFolds(setting.folds, options.folds_key) if setting.folds else None
    groups = not set(methods) <= {"none", "greedy", "tree"}
    empty = tree_statistics(source, options.max_depth, folds, groups)
    statistics, summary = statistics_of(source, empty, options)
    n_features = len(summary.n_observed)
    observed = summary.n_observed.sum() / (summary.n_rows * n_features)
    yield (
        f"{options.data}: {summary.n_rows:,} rows, {n_features} features, {1 - observed:.0%} missing; without test rows"
    )
    notes = (*source.notes, *source.schema.notes)
    yield from notes
    title = Path(options.data).name
    yield compare_statistics(statistics, methods=methods, setting=setting, title=title, notes=notes)


def _check(options: argparse.Namespace) -> None:
    """Refuse options that cannot work, in one sentence."""
    if (options.data is None) != (options.target is None):
        raise ValueError("--data FILE and --target COLUMN belong together.")
    if options.data is None and (options.drop or options.keep or options.task != "auto"):
        raise ValueError("--task, --drop and --keep are for --data FILE.")
    if not 0 <= options.test_share < 1:
        raise ValueError(f"--test-share must be at least 0 and less than 1, not {options.test_share}.")
    if options.verify:
        with optional_import("--verify", "verify"):
            import flint  # noqa: F401
    for option, path in (("--out", options.out), ("--html", options.html)):
        if path is not None and (not Path(path).name or Path(path).is_dir()):
            raise ValueError(f"{option} must end with a name for the files, not {path!r}.")
        if path is not None and not Path(path).parent.is_dir():
            raise ValueError(f"There is no folder {Path(path).parent} for {option}.")


def _data(options: argparse.Namespace) -> Iterator[tuple[str, str, list[str], tuple[Any, Any, Any, Any]]]:
    """Title, task, notes, and training and test rows of each data set."""
    if options.data is None:
        for title, make in (("interacting patterns", make_interacting), ("MCAR as in the paper", make_synthetic)):
            made = make(n=options.rows, random_state=options.seed)
            yield title, "regression", [], (made.X_train, made.y_train, made.X_test, made.y_test)
        return
    table = read_table(options.data, options.target, task=options.task, drop=options.drop, keep=options.keep)
    if options.test_share == 0:
        yield Path(options.data).name, table.task, table.notes, (table.features(), table.y, None, None)
        return
    rows, test = _split(table.y, table.task, options.test_share, options.seed)
    data = table.features(rows), table.y[rows], table.features(test), table.y[test]
    yield Path(options.data).name, table.task, table.notes, data


def _split(y: Any, task: str, share: float, seed: int) -> tuple[IntArray, IntArray]:
    """Training and test rows, stratified by class as far as there are rows."""
    rows, strata = np.arange(len(y)), None
    if len(y) < 2:
        raise ValueError("One row is too few: training and test rows are needed.")
    if task == "classification":
        _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        codes = np.where(counts[codes] < 2, counts.argmax(), codes)  # a single row may be on either side
        if len(np.unique(codes)) <= min(int(share * len(y)), int((1 - share) * len(y))) and counts.max() > 1:
            strata = codes
    train, test = train_test_split(rows, test_size=share, random_state=seed, stratify=strata)
    return train, test


def _table(comparison: Comparison) -> str:
    """The table with rounded numbers."""
    columns, numeric = {}, set()
    for column, values in comparison.table.items():
        name, form = HEADERS.get(column, column), FORMS.get(column, ".3f")
        if values.dtype.kind in "fiu":
            numeric.add(name)
            columns[name] = [format(value, form) if np.isfinite(value) else "-" for value in values]
        else:
            columns[name] = [str(value).replace(" + ", "+") for value in values]
    return aligned(columns, numeric, table_width(), optional=("seconds", "bound"))


def _written(comparisons: list[Comparison], files: dict[str, Path]) -> Iterator[str]:
    """Write the JSON file, then the page and the figure, each completely or not at all."""
    content = {"versions": versions(), "comparisons": [comparison.to_dict() for comparison in comparisons]}
    write_atomically(files["json"], json.dumps(content, indent=1).encode())
    yield f"written: {files['json']}"
    if "html" in files:
        from admiss.compare.page import write_page

        try:
            write_page(comparisons, files["html"])
            yield f"written: {files['html']}"
        except ImportError as error:
            yield f"no page: {error}"
    picture = files["png"]
    unfinished = picture.with_name(f".{uuid.uuid4().hex}.png")
    try:
        plot_comparison(comparisons, unfinished)
        with unfinished.open("rb+") as file:
            flush(file)
        unfinished.replace(picture)
        yield f"written: {picture}"
    except ImportError as error:
        yield f"no picture: {error}"
    finally:
        unfinished.unlink(missing_ok=True)
