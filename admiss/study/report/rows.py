"""The rows of a study's table that a report counts, and the order in which it names methods.

Columns are added to the rows that are done:

    value       R2 in the authors' form for their own instances, otherwise the score (R2, or 2 AUC - 1)
    instance    a number for each recipe, the same for all methods
    unit        what standard errors are over: the signal of the authors' instances, the data set, otherwise the
                instance

Where the target is the real one, the design and the signal are called "real". A row that is done and has no finite
value is not counted, and :func:`scoreless` says how many there are.
"""

from collections.abc import Sequence
from dataclasses import fields

import polars as pl

from admiss.study.study import SCALES, Study
from experiments.paper.interpolation import SIGNALS

LEARNERS = ("linear", "tree", "forest", "XGBoost", "best")
ADAPTIVE = ("Affine intercept", "Affine", "Finite", "Adaptive LR - best")
STACK = "AdaptiveStack"
EXPECTED = tuple(f"{name}{law}" for name in ("Conditional mean", "Expected features") for law in ("", ", censored"))
MAIN = (
    STACK,
    "Adaptive LR - best",
    "Joint - best",
    "Mean - best",
    "mice - best",
    "CART MIA",
    "RF MIA",
    "XGBoost",
    "Complete features - best",
    "Oracle - best",
)
ORDER = (
    STACK,
    *EXPECTED,
    *ADAPTIVE,
    *(f"{family} - {learner}" for family in ("Joint", "Mean", "mice") for learner in LEARNERS),
    *("CART MIA", "RF MIA", "XGBoost"),
    *(f"{family} - {learner}" for family in ("Complete features", "Oracle") for learner in LEARNERS),
    *("none", "greedy", "exact"),
)
REFERENCE = "Mean - best"
WITH_R2 = ("synthetic", "real-design", "partitions", "stack")
AUTHORS, REAL = "AuthorsInstance", "RealTarget"
# Levels that averages leave out unless they are asked for.
OUTSIDE = {"kind": ("TextInstance",), "signal": ("tree",)}
WORDS = {
    "mcar": "MCAR",
    "censoring": "censoring",
    "linear": "linear",
    "nn": "NN",
    "tree": "tree",
    "mar": "MAR",
    "nmar": "NMAR",
    "am": "AM",
    "real": "real target",
    "kind": "instances",
    "missing_fraction": "missing fraction",
    "k_missing": "missing features with signal",
    "fraction_missing": "share of the features with signal that can be missing",
    "n": "training rows n",
    "max_depth": "largest depth",
    "dataset": "data set",
    "AuthorsInstance": "the authors' instances",
    "TextInstance": "fresh draws of the text",
    "SemiSynthetic": "synthetic targets",
    "RealTarget": "real targets",
}


def words(value: object) -> str:
    """A name or value of a setting, as readers call it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return WORDS.get(str(value), str(value).replace("_", " "))


def method_order(methods: Sequence[str]) -> list[str]:
    """Known methods in the paper's order, then the others as they come.

    Examples
    --------
    >>> method_order(["another", "XGBoost", "Affine"])
    ['Affine', 'XGBoost', 'another']
    """
    unique = list(dict.fromkeys(methods))
    return [name for name in ORDER if name in unique] + [name for name in unique if name not in ORDER]


def instance_fields(table: pl.DataFrame, study: Study) -> list[str]:
    """The columns that make an instance, the kind first."""
    kinds, names = set(table["kind"].unique().to_list()), ["kind"]
    found: set[str] = set()
    for scale in SCALES:
        if kinds <= found:
            break
        types = {type(instance) for product in study.products(scale) for instance in product.instances}
        found |= {kind.__name__ for kind in types}
        names += sorted(field.name for kind in types for field in fields(kind))
    if not kinds <= found:  # kinds that the study no longer has
        names += study.settings
    return [name for name in dict.fromkeys(names) if name in table.columns]


def scored_rows(table: pl.DataFrame, study: Study) -> pl.DataFrame:
    """Rows that are done and have a finite value, with the columns ``value`` and ``instance``."""
    done = _with_value(table).filter((pl.col("status") == "done") & pl.col("value").is_finite())
    recipes = done.select(instance_fields(table, study)).unique(maintain_order=True)
    # nulls equal nulls here, which they do not in a join: a recipe is compared as text
    recipe = pl.concat_str([pl.col(name).cast(pl.String).fill_null("\0") for name in recipes.columns], separator="\1")
    texts = recipes.select(recipe)[:, 0].to_list()
    numbers = dict(zip(texts, range(len(texts)), strict=True))
    instance = pl.Series("instance", [numbers[text] for text in done.select(recipe)[:, 0]], dtype=pl.Int64)
    done = done.with_columns(instance).with_columns(_unit(table).alias("unit"))
    # a setting that is a score, as the task, is that of the instance also where a method does not give it
    others = [name for name in study.settings if name in done.columns and name not in recipes.columns]
    done = done.with_columns(pl.col(name).max().over("instance") for name in others)
    real = pl.col("kind") == REAL
    return done.with_columns(
        pl.when(real).then(pl.lit("real")).otherwise(pl.col(name)).alias(name)
        for name in ("design", "signal")
        if name in done.columns
    )


def _unit(table: pl.DataFrame) -> pl.Expr:
    """Instances with the same signal or data set are not independent; the authors use five signals again and again."""
    unit = pl.concat_str(pl.lit("instance "), pl.col("instance"))
    if "dataset" in table.columns:
        unit = pl.when(pl.col("dataset").is_not_null()).then(pl.col("dataset")).otherwise(unit)
    if {"signal", "replicate"} <= set(table.columns):
        signal = pl.concat_str(pl.col("signal"), pl.lit(" "), (pl.col("replicate") - 1) % SIGNALS)
        unit = pl.when(pl.col("kind") == AUTHORS).then(signal).otherwise(unit)
    return unit


def unit_words(rows: pl.DataFrame) -> str:
    """What the standard errors of rows are over."""
    if set(rows["kind"].to_list()) == {AUTHORS}:
        return "signals"
    return "data sets" if "dataset" in rows.columns and not rows["dataset"].null_count() else "instances"


def _with_value(table: pl.DataFrame) -> pl.DataFrame:
    score = pl.col("score").cast(pl.Float64)
    if uses_authors_form(table):
        score = pl.when(pl.col("kind") == AUTHORS).then(pl.col("r2_authors").cast(pl.Float64)).otherwise(score)
    return table.with_columns(score.alias("value"))


def uses_authors_form(table: pl.DataFrame) -> bool:
    """Whether the authors' instances have R2 in the authors' form."""
    if "r2_authors" not in table.columns:
        return False
    return table.filter((pl.col("kind") == AUTHORS) & pl.col("r2_authors").is_not_null()).height > 0


def scoreless(table: pl.DataFrame) -> int:
    """Rows that are done and have no finite value."""
    finite = pl.col("value").is_finite().fill_null(False)
    return _with_value(table).filter((pl.col("status") == "done") & ~finite).height


def levels(rows: pl.DataFrame, name: str) -> list[object]:
    """Values of a column: numbers in their order, text as the paper orders it, none last."""
    values = rows[name].unique().to_list()
    present = [value for value in values if value is not None]
    known = list(WORDS)
    if any(isinstance(value, str) for value in present):
        present.sort(key=lambda value: (known.index(value) if value in known else len(known), value))
    else:
        present.sort()
    return present + [None] * (len(present) < len(values))


def filter_names(rows: pl.DataFrame, study: Study) -> list[str]:
    """Settings with more than one value, the kind of instance first and the task last."""
    names = dict.fromkeys(("kind", *study.settings, "task"))
    return [name for name in names if name in rows.columns and rows[name].n_unique() > 1]


def repeated(rows: pl.DataFrame) -> int:
    """Cells beyond the first of a method on an instance."""
    return rows.height - rows.select("instance", "method").unique().height


def score_words(rows: pl.DataFrame, study: Study, authors_form: bool) -> str:
    """What the values are."""
    if study.name not in WITH_R2:
        return "as the study defines it"
    kinds = set(rows["kind"].unique().to_list())
    tasks = set(rows["task"].drop_nulls().unique().to_list()) if "task" in rows.columns else set()
    text = "R2 on the test rows, or 2 AUC - 1 where the target is binary" if len(tasks) > 1 else "R2 on the test rows"
    if AUTHORS in kinds and authors_form:
        text += " (on the authors' instances in their form, against the mean of the training targets)"
    return text
