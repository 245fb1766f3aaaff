"""The command ``admiss compare``: partitioners side by side, as text, a figure and a JSON file."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from admiss.atomic_write import write_atomically
from admiss.cli.user_table import read_table
from admiss.compare.partitions import DEFAULT_METHODS, METHODS, Comparison, Setting, compare_partitions
from admiss.datasets import make_interacting, make_synthetic
from admiss.extras import optional_import
from admiss.finite.leaf_features import LEAF_MODELS
from admiss.plots import plot_comparison
from admiss.versions import versions
from formulations.leaves.cost import RIDGE_SCALES

HEADERS = {"gap_percent": "gap %", "cv_R2": "R2 cv", "test_R2": "R2 test"}
LOSSES = ("squared", "absolute", "huber")
DESCRIPTION = """\
Divide missingness patterns into leaves with one linear model per leaf, by several partitioners at the same leaf cost,
and compare their costs, proofs and predictions. Without --data two generated data sets are compared: one with
interacting patterns, on which greedy splitting misses the optimum, and the paper's MCAR data, on which it hardly does.
"""


def add_compare_parser(commands: Any) -> None:
    """Declare the options."""
    listed = "\n".join(f"  {name:<13} {words}" for name, (_, words) in METHODS.items())
    parser = commands.add_parser(
        "compare",
        help="compare exact with greedy partitioning on generated data or on a file",
        description=DESCRIPTION,
        epilog=f"methods:\n{listed}\n\nexample:\n  admiss compare --data houses.csv --target price --max-depth 2",
        formatter_class=_Formatter,
    )
    parser.add_argument("--data", metavar="FILE", help="a CSV or Parquet file; empty cells, NA and NaN are missing")
    parser.add_argument("--target", metavar="COLUMN", help="the column of --data to predict")
    parser.add_argument(
        "--methods", nargs="+", default=list(DEFAULT_METHODS), metavar="METHOD", choices=list(METHODS),
        help="partitioners to compare, see below",
    )  # fmt: skip
    parser.add_argument("--max-depth", type=int, default=3, help="largest number of splits on the way to a leaf")
    parser.add_argument("--max-leaves", type=int, help="largest number of leaves; unlimited by default")
    parser.add_argument("--min-rows", type=int, help="smallest number of rows in a leaf; 2 (d + 1) by default")
    parser.add_argument("--ridge", type=float, default=1.0, help="penalty on the squared weights of a leaf")
    parser.add_argument("--ridge-scale", choices=RIDGE_SCALES, default="leaf", help="the ridge as given, or times rows")
    parser.add_argument("--leaf-model", choices=LEAF_MODELS, default="static", help="model in the leaves")
    parser.add_argument("--loss", choices=LOSSES, default="squared", help="loss of a leaf")
    parser.add_argument("--rows", type=int, default=1000, help="training rows of the generated data")
    parser.add_argument("--test-share", type=float, default=0.25, help="share of the rows of --data held out as test")
    parser.add_argument("--folds", type=int, default=5, help="folds of the cross-validation; 0 for none")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for each exact solve")
    parser.add_argument("--seed", type=int, default=0, help="seed of data, folds and test rows")
    parser.add_argument("--verify", action="store_true", help="prove costs and bounds again in exact arithmetic")
    parser.add_argument(
        "--out", default="admiss-compare", metavar="PREFIX", help="PREFIX.png and PREFIX.json are written"
    )
    parser.set_defaults(handler=compare_pages)


class _Formatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Shows defaults other than None, and descriptions as written."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default is None or action.default is argparse.SUPPRESS:
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
        loss=options.loss,
        time_limit=options.time_limit,
        folds=options.folds,
        seed=options.seed,
    )
    _check(options, setting)
    comparisons = []
    for title, notes, data in _data(options):
        X, y, X_test, y_test = data
        missing = np.isnan(np.asarray(X, dtype=float)).mean()
        yield f"{title}: {len(y):,} training rows, {X.shape[1]} features, {missing:.0%} missing"
        yield from notes
        comparison = compare_partitions(
            X, y, X_test, y_test, methods=tuple(dict.fromkeys(options.methods)), setting=setting, title=title
        )
        comparisons.append(comparison)
        failures = comparison.verify(X, y) if options.verify else []
        yield _table(comparison)
        yield from failures
        if comparison.verdict():
            yield comparison.verdict()
        if comparison.near is not None:
            yield from comparison.near.lines()
        yield ""
        if comparison.interrupted:
            yield "interrupted: unfinished methods are left out"
            break
    yield from _written(comparisons, Path(options.out))


def _check(options: argparse.Namespace, setting: Setting) -> None:
    """Refuse options that cannot work, in one sentence."""
    if (options.data is None) != (options.target is None):
        raise ValueError("--data FILE and --target COLUMN belong together.")
    if not 0 < options.test_share < 1:
        raise ValueError(f"--test-share must be between 0 and 1, not {options.test_share}.")
    if options.folds != 0 and options.folds < 2:
        raise ValueError(f"--folds must be 0 or at least 2, not {options.folds}.")
    if "split-assign" in options.methods and (options.loss != "absolute" or options.ridge != 0):
        raise ValueError("split-assign is a linear program: use --loss absolute --ridge 0.")
    if "groups" in options.methods and options.loss != "squared":
        raise ValueError("groups needs --loss squared.")
    if options.verify:
        with optional_import("--verify", "verify"):
            import flint  # noqa: F401
    for method in options.methods:
        setting.estimator(method)._check_parameters()
    if not Path(options.out).name:
        raise ValueError(f"--out must end with a name for the files, not {options.out!r}.")
    folder = Path(options.out).parent
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder} for --out.")


def _data(options: argparse.Namespace) -> Iterator[tuple[str, list[str], tuple[Any, Any, Any, Any]]]:
    """Title, notes, and training and test rows of each data set."""
    if options.data is None:
        for title, make in (("interacting patterns", make_interacting), ("MCAR as in the paper", make_synthetic)):
            made = make(n=options.rows, random_state=options.seed)
            yield title, [], (made.X_train, made.y_train, made.X_test, made.y_test)
        return
    table = read_table(options.data, options.target)
    rows, test = train_test_split(np.arange(len(table.y)), test_size=options.test_share, random_state=options.seed)
    data = table.features(rows), table.y[rows], table.features(test), table.y[test]
    yield Path(options.data).name, table.notes, data


def _table(comparison: Comparison) -> str:
    """The table with rounded numbers and a legend."""
    table, columns = comparison.table, {}
    forms = {"cost": ".6g", "bound": ".6g", "gap_percent": ".3f", "seconds": ".2f", "cv_R2": ".3f", "test_R2": ".3f"}
    for column, values in table.items():
        form, name = forms.get(column), HEADERS.get(column, column)
        words = [str(v) if form is None else "-" if not np.isfinite(v) else format(v, form) for v in values]
        width = max(len(word) for word in [name, *words])
        columns[name] = [
            word.ljust(width) if form is None and name != "leaves" else word.rjust(width) for word in [name, *words]
        ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns.values(), strict=True))


def _written(comparisons: list[Comparison], prefix: Path) -> Iterator[str]:
    """Write the JSON file, then the figure, each completely or not at all."""
    path = prefix.with_name(prefix.name + ".json")
    content = {"versions": versions(), "comparisons": [comparison.to_dict() for comparison in comparisons]}
    write_atomically(path, json.dumps(content, indent=1).encode())
    yield f"written: {path}"
    picture = prefix.with_name(prefix.name + ".png")
    unfinished = picture.with_name(prefix.name + ".partial.png")
    try:
        plot_comparison(comparisons, unfinished)
        unfinished.replace(picture)
        yield f"written: {picture}"
    except ImportError as error:
        yield f"no picture: {error}"
    finally:
        unfinished.unlink(missing_ok=True)
