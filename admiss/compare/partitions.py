"""Comparison of partitioners on one data set, at the same leaf cost.

For each method: leaves, training cost, the bound proven for its class of partitions, the gap to the best bound known
for that class, seconds, and scores in cross-validation and on test rows. References of scikit-learn have the scores, on
the same folds and test rows.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from admiss.compare.comparison import Comparison
from admiss.compare.rows import ComparedRows
from admiss.compare.run import Run
from admiss.compare.scores import task_of
from admiss.compare.setting import DEFAULT_METHODS, Methods, Setting
from admiss.datasets import make_interacting
from admiss.estimator.notices import silence
from admiss.terminal.progress import progress


def compare_partitions(
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    task: str | None = None,
    methods: Methods = DEFAULT_METHODS,
    setting: Setting | None = None,
    title: str = "data",
    notes: tuple[str, ...] = (),
    verify: bool = False,
) -> Comparison:
    """Fit every method on the same rows, at the same leaf cost.

    Parameters
    ----------
    X, y : arrays or frames
        Training rows.
    X_test, y_test : arrays or frames, optional
        Rows for the test scores.
    task : {"regression", "classification"}, optional
        By default text and truth values in y are classes, and so are integers if ``setting.task`` says so.
    methods : sequence of str or Partitioner
        Names among ``METHODS``, with the limits of ``setting``, and partitioners, with limits of their own: their gaps
        are to their own bounds, and their bounds hold for no other method.
    setting : Setting, optional
        Limits, leaf cost, folds, time limit.
    title : str
    notes : tuple of str
        Sentences about the data, for the notes of the comparison.
    verify : bool
        Prove every certificate again in exact arithmetic, for a column "verified".

    Examples
    --------
    >>> from admiss.datasets import make_interacting
    >>> data = make_interacting(n=400, d=5, random_state=0)
    >>> setting = Setting(max_depth=2, min_rows=20, references=False)
    >>> comparison = compare_partitions(data.X_train, data.y_train, setting=setting)
    >>> comparison.table["leaves"].tolist()
    [1.0, 3.0, 4.0]

    A partitioner, also one that you have written, beside the exact tree:

    >>> from admiss.partition import Greedy
    >>> methods = ["tree", Greedy(max_leaves=2)]
    >>> comparison = compare_partitions(data.X_train, data.y_train, methods=methods, setting=setting)
    >>> comparison.table["method"].tolist(), comparison.table["leaves"].tolist()
    (['tree', 'Greedy(max_leaves=2)'], [4.0, 2.0])
    """
    setting, methods = (setting or Setting()).naming(methods)
    setting = replace(setting, task=task_of(y, task, setting.task))
    setting = replace(setting, loss=setting.loss_name)
    setting.check(methods)
    compile_kernels(setting, methods)
    run, interrupted = Run(ComparedRows.of(X, y, X_test, y_test, setting), setting, methods, notes), False
    try:
        run.take_steps(title, verify)
    except KeyboardInterrupt:  # report the methods that are done
        interrupted = True
        if not run.models:
            raise
    return run.comparison(title, interrupted)


def compile_kernels(setting: Setting, methods: tuple[str, ...]) -> None:
    """Compile the kernels on a few rows before the clock starts."""
    small = replace(setting, max_depth=2, max_leaves=4, min_rows=5, ridge=1.0)
    data = make_interacting(n=60, d=4, n_test=1, random_state=0)
    y = data.y_train > np.median(data.y_train) if setting.task == "classification" else data.y_train
    wanted = [name for name in ("greedy", "tree", "groups") if name != "groups" or name in methods]
    if setting.loss_name not in ("squared", "logistic"):
        wanted = ["none"]  # imports cvxpy
    with silence():
        for method in progress(wanted, len(wanted), "compiling"):
            small.estimator(method).fit(data.X_train, y)
