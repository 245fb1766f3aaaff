"""Studies as people write and use them: plain objects in, a table and a page out.

    Study("mine", instances=[..], methods={"ridge": make_pipeline(..)}, metrics=["r2"])

Everything that the engine needs follows from these objects (:class:`~admiss.study.plan.Plan`): products of instances
and methods, settings, metrics and scales. Objects that cannot be hashed or sent to another process are refused when the
study is made.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from admiss.extras import MissingPackageError, optional_import
from admiss.study.instances import named_instance
from admiss.study.plan import ONE_SCALE, Method, Plan, Product, check_products, instance_recipe
from admiss.study.recipe import StudyError
from admiss.study.run import RunOptions, opened_store, run_plan, status_text
from admiss.study.scoring import Metrics, score_estimator, score_function
from admiss.study.store import Store

# The field of instances that numbers their seeds.
REPLICATE = "replicate"


@dataclass(frozen=True, repr=False)
class Study(Plan):
    """Methods that are compared on instances.

    Parameters
    ----------
    name : str
        Letters, digits, ``-`` and ``_``; part of the folder of a run.
    title, description : str
        What the page of the study says; the title is the name by default.
    instances : sequence, or dict of scales
        Each a dataclass with a method ``make`` that returns rows, a :class:`~admiss.study.CsvInstance`, or a pair
        of a name and a function that makes rows (or the rows themselves). Rows are X and y, which are split at random,
        or X_train, X_test, y_train and y_test. With a dict such as ``{"smoke": [..], "full": [..]}`` a run chooses a
        scale. Instances are independent units of intervals if their rows are fresh; those of one data set, by their
        field ``dataset`` or because they share rows (:mod:`admiss.study.shared_rows`), are not.
    methods : dict
        From names to estimators of scikit-learn, or functions of the rows (and a seed) that return a number, a dict of
        numbers, or a fitted model.
    metrics : str, sequence of str, or dict
        Names of scorers of scikit-learn, or names with functions ``metric(model, X, y)``; larger is better. The first
        one is compared. By default ``r2`` for regressors, ``accuracy`` for classifiers.
    reference : str
        The method that others are compared with; the first by default.
    settings : tuple of str
        Fields of instances by which tables and figures are made; by default those that vary.
    replicates : int
        Number of seeds, and with them random splits, of every instance (of its field ``replicate``). Replicates that
        share rows are splits of one data set, whose intervals are those of Nadeau and Bengio (2003).
    test_share : float
        Share of test rows in random splits.
    products : callable
        For grids that are not a product of instances and methods: from a scale to a sequence of
        :class:`~admiss.study.plan.Product`, in place of ``instances`` and ``methods``.
    best : tuple of Best
        Choices among methods by their score in cross-validation.
    seconds, gigabytes : float
        Limits per cell.
    scales : tuple of str
        Names of the scales of ``products``, the smallest first.
    derived : callable
        From the table of all cells to a table with further columns.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression, Ridge
    >>> X, y = np.eye(20, 3), np.arange(20.0)
    >>> study = Study("lines", instances=[("eye", (X, y))], methods={"ols": LinearRegression(), "ridge": Ridge()})
    >>> study.metrics, study.reference, len(list(study.cells("all")))
    (('r2',), 'ols', 2)
    """

    instances: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None
    methods: Mapping[str, Any] | None = None
    replicates: int = 1
    test_share: float = 0.25

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[\w-]+", self.name):
            raise StudyError(f"The name of a study must consist of letters, digits, - and _, not {self.name!r}.")
        self._set("title", self.title or self.name)
        if self.instances is None and self.methods is None:
            return
        if self.instances is None or self.methods is None:
            raise StudyError(f"The study {self.name!r} needs both instances and methods (or products instead).")
        if not isinstance(self.replicates, int) or self.replicates < 1:
            raise StudyError(f"replicates must be a positive integer, not {self.replicates!r}.")
        if not 0 < self.test_share < 1:
            raise StudyError(f"test_share must be between 0 and 1, not {self.test_share!r}.")
        by_scale = self.instances if isinstance(self.instances, Mapping) else {ONE_SCALE: self.instances}
        instances = {scale: self._replicated(given, scale) for scale, given in by_scale.items()}
        metrics = _metrics(self.metrics, self.methods)
        methods = [_method(name, each, metrics, self.test_share) for name, each in self.methods.items()]
        products = {scale: [Product(listed, methods)] for scale, listed in instances.items()}
        check_products(chain(*products.values()))
        recipes = {scale: list(map(instance_recipe, listed)) for scale, listed in instances.items()}
        self._check([method.name for method in methods], recipes, metrics)
        self._set("metrics", tuple(metrics))
        self._set("scales", tuple(instances))
        self._set("reference", self.reference or methods[0].name)
        self._set("settings", tuple(self.settings) or _varying_fields(list(chain(*recipes.values()))))
        self._set("products", products.__getitem__)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _replicated(self, given: Sequence[Any], scale: str) -> list[Any]:
        if isinstance(given, str) or not isinstance(given, Sequence) or not given:
            raise StudyError(f"The instances of {self.name!r} at scale {scale!r} must be a list with at least one.")
        instances = [each if hasattr(each, "make") else named_instance(each) for each in given]
        if self.replicates == 1:
            return instances
        for instance in instances:
            if REPLICATE not in {part.name for part in fields(instance)}:
                raise StudyError(
                    f"replicates needs a field 'replicate' of {type(instance).__name__}, which changes its seed: add "
                    "'replicate: int = 0' to its fields."
                )
            if getattr(instance, REPLICATE) != 0:
                raise StudyError("Leave out replicates, or the field 'replicate' of the instances: both number them.")
        return [replace(instance, replicate=number) for instance in instances for number in range(self.replicates)]

    def _check(self, methods: Sequence[str], recipes: Mapping[str, Sequence[Any]], metrics: Iterable[str]) -> None:
        """Refuse what cannot be compared, before anything is run."""
        if not methods:
            raise StudyError(f"The study {self.name!r} has no methods.")
        if self.reference and self.reference not in methods:
            raise StudyError(f"The reference {self.reference!r} is not a method: choose one of {', '.join(methods)}.")
        for scale, listed in recipes.items():
            seen: set[str] = set()
            for recipe in listed:
                for name in set(recipe).intersection(metrics) - {"score"}:
                    raise StudyError(f"The field {name!r} of the instances has the name of a metric: rename one.")
                text = repr(recipe)
                if text in seen:
                    raise StudyError(
                        f"Two instances at scale {scale!r} are the same ({text}): give them other names or fields."
                    )
                seen.add(text)

    def run(
        self,
        scale: str | None = None,
        *,
        workers: int | None = None,
        folder: str | Path | None = None,
        retry: bool = False,
        stale: bool = False,
        only: str | None = None,
        **options: Any,
    ) -> None:
        """Compute the cells that are missing, and print a summary.

        Parameters
        ----------
        scale : str, optional
            By default the first one.
        workers : int, optional
            Processes, by default as many as cores.
        folder : path, optional
            Where cells are kept, by default in ``runs``.
        retry, stale : bool
            Whether failed cells, and cells whose files or packages have changed since, are computed again.
        only : str, optional
            Only cells whose instance and method, as JSON, contain this text.
        **options
            ``seconds`` and ``gigabytes``, limits per cell in place of those of the study; ``dask=True`` for a local
            Dask cluster, or ``scheduler``, the address of a running one.
        """
        chosen = RunOptions(scale, folder, workers, retry=retry, stale=stale, only=only, **options)
        given = {part.name: getattr(chosen, part.name) for part in fields(chosen)}
        words = ", ".join(f"{name}={value!r}" for name, value in given.items() if value not in (None, False))
        run_plan(self, chosen, f"{self.name}.run({words})", self._answer)

    def _answer(self, store: Store) -> str:
        try:
            return str(self._presentation().answer(store))
        except MissingPackageError:  # cells are computed without the packages that compare them
            return ""

    def table(self, frame: str = "polars", *, scale: str | None = None, folder: str | Path | None = None) -> Any:
        """One row per cell that has ended, as a data frame of polars or pandas.

        Parameters
        ----------
        frame : {"polars", "pandas"}
        scale, folder : optional
            Of the run, if there are several.
        """
        if frame not in ("polars", "pandas"):
            raise StudyError(f"Unknown frame {frame!r}: choose polars or pandas.")
        with optional_import("The table of a study", "study"):
            from admiss.study.table import read_table
        with opened_store(self, scale, folder) as store:
            table = read_table(store, self)
        if frame == "polars":
            return table
        if find_spec("pandas") is None:
            raise StudyError("A frame of pandas needs pandas: run pip install pandas, or take that of polars.")
        return import_module("pandas").DataFrame({column.name: column.to_list() for column in table})

    def status(self, *, scale: str | None = None, folder: str | Path | None = None) -> None:
        """Print what is done, failed (and why), stale (and why) and pending."""
        with opened_store(self, scale, folder) as store:
            print(status_text(store, self))

    def report(
        self, path: str | Path | None = None, *, scale: str | None = None, folder: str | Path | None = None
    ) -> Path:
        """Write the page of the study, and return its path; by default ``report.html`` in the folder of the run."""
        presentation = self._presentation()
        from admiss.study.report.results import write_page

        with opened_store(self, scale, folder) as store:
            return write_page(store, presentation, None if path is None else Path(path))

    def results(self, into: str | Path, *, scale: str | None = None, folder: str | Path | None = None) -> list[Path]:
        """Write tables (CSV, LaTeX) and figures (SVG, PDF, PNG) into a folder, and return their paths."""
        presentation = self._presentation()
        from admiss.study.report.results import write_files

        with opened_store(self, scale, folder) as store:
            return write_files(store, presentation, Path(into))

    def _presentation(self) -> Any:
        with optional_import("A report", "study"):
            from admiss.study.report.presentation import Presentation
        return Presentation(self)

    def __repr__(self) -> str:
        if self.methods is None:  # products may be a million cells, or need data
            return f"Study({self.name!r})"
        counts = []
        for scale in self.scales:
            cells = sum(len(part.instances) * len(part.methods) for part in self.products(scale))
            counts.append(f"{cells:,} cells" + f" at scale {scale}" * (len(self.scales) > 1))
        return f"Study({self.name!r}, {', '.join(counts)})"


def _metrics(given: Any, methods: Mapping[str, Any]) -> dict[str, str | Callable[..., float]]:
    """Names of metrics and their scorers; by default those of scikit-learn for the task of the estimators."""
    # scikit-learn is imported by what needs it: workers of studies with methods of their own start faster
    from sklearn.base import is_classifier, is_regressor
    from sklearn.metrics import get_scorer_names

    if not isinstance(methods, Mapping):
        raise StudyError("methods must be a dict from names to estimators or functions.")
    if given == ("score",):
        estimators = [method for method in methods.values() if _fits(method)]
        tasks = {
            metric
            for metric, is_one in (("r2", is_regressor), ("accuracy", is_classifier))
            if any(map(is_one, estimators))
        }
        if len(tasks) > 1:
            raise StudyError("The methods mix regressors and classifiers: compare them in two studies.")
        given = next(iter(tasks), "score")
        if given == "score" and estimators:
            raise StudyError("The task of the methods is not known: name metrics, 'r2' or 'accuracy' for instance.")
    named = {given: given} if isinstance(given, str) else given
    named = dict(named) if isinstance(named, Mapping) else {each: each for each in named}
    if not named or not all(isinstance(name, str) for name in named):
        raise StudyError("metrics must be names of scorers, or a dict from names to scorers or functions.")
    for name, metric in named.items():
        if isinstance(metric, str) and metric not in get_scorer_names() and any(map(_fits, methods.values())):
            raise StudyError(f"Unknown metric {name!r}: sklearn.metrics.get_scorer_names() lists the names.")
        if not isinstance(metric, str) and not callable(metric):
            raise StudyError(f"The metric {name!r} must be the name of a scorer or a function (model, X, y).")
        if callable(metric) and not _takes(metric, 3):
            raise StudyError(
                f"The metric {name!r} must take model, X and y: sklearn.metrics.make_scorer makes such a function of "
                "one that takes y_true and y_pred."
            )
    return named


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # compiled functions without a signature
        return True
    return True


def _fits(method: Any) -> bool:
    return hasattr(method, "fit") and not isinstance(method, type)


def _method(name: str, given: Any, metrics: Metrics, test_share: float) -> Method:
    """A method that scores an estimator or calls a function."""
    if isinstance(given, Method):
        return replace(given, name=name)
    shared = {"metrics": dict(metrics), "test_share": test_share}
    if _fits(given) and hasattr(given, "get_params"):
        return Method(name, score_estimator, {"estimator": given, **shared})
    if callable(given) and not isinstance(given, type):
        return Method(name, score_function, {"function": given, **shared})
    hint = f": write {given.__name__}(..)" if isinstance(given, type) else ""
    raise StudyError(f"Method {name!r} must be an estimator or a function, not {given!r:.60}{hint}.")


def _varying_fields(recipes: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Fields of instances with several values, besides the replicate and what holds rows or functions."""
    names = dict.fromkeys(name for recipe in recipes for name in recipe)
    left_out = (REPLICATE, "function", "content")
    return tuple(
        name for name in names if name not in left_out and len({repr(recipe.get(name)) for recipe in recipes}) > 1
    )
