"""Names and values of the paper in reports: methods in its order, its settings in words, the authors' R2 and signals.

On the authors' own instances the value is R2 in their form, against the mean of the training targets, and the unit is
the signal: five signals are used at every size and missing fraction.
"""

import polars as pl

from admiss.drawing import (
    AMBER,
    BLACK,
    BLUE,
    DASH_DOT,
    DASH_DOTS,
    DASHED,
    DOTTED,
    GREEN,
    GREY,
    LONG,
    ORANGE,
    PURPLE,
    SKY,
    Style,
)
from admiss.study.report.labels import Labels
from experiments.paper.interpolation import SIGNALS

AUTHORS, REAL = "AuthorsInstance", "RealTarget"
LEARNERS = ("linear", "tree", "forest", "XGBoost", "best")
ADAPTIVE = ("Affine intercept", "Affine", "Finite", "Adaptive LR - best")
REFERENCE = "Mean - best"
# Methods of the paper's main tables, in their order.
PAPER_METHODS = (
    *ADAPTIVE,
    *(f"{family} - {learner}" for family in ("Joint", "Mean", "mice") for learner in LEARNERS),
    *("CART MIA", "RF MIA", "XGBoost"),
    *(f"{family} - {learner}" for family in ("Complete features", "Oracle") for learner in LEARNERS),
)
LAWS = tuple(f"{name}{law}" for name in ("Conditional mean", "Expected features") for law in ("", ", censored"))
WORDS = {
    "mcar": "MCAR", "censoring": "censoring", "linear": "linear", "nn": "NN", "tree": "tree", "mar": "MAR",
    "nmar": "NMAR", "am": "AM", "real": "real target", "kind": "instances", "missing_fraction": "missing fraction",
    "k_missing": "missing features with signal",
    "fraction_missing": "share of the features with signal that can be missing",
    "n": "training rows n", "max_depth": "largest depth", "dataset": "data set",
    "AuthorsInstance": "the authors' instances", "TextInstance": "fresh draws of the text",
    "SemiSynthetic": "synthetic targets", "RealTarget": "real targets", "r2_authors": "R², authors' form",
}  # fmt: skip
# The scores of studies of regressions, and of both tasks.
R2, R2_OR_AUC = "R²", "R² or 2 AUC - 1"
STYLES: dict[str, Style] = {
    "Adaptive LR - best": (BLUE, "o", "-"), "Joint - best": (ORANGE, "s", DASHED),
    "Mean - best": (BLACK, "X", "-"), "mice - best": (PURPLE, "P", DASH_DOT),
    "CART MIA": (SKY, "v", DASH_DOTS), "RF MIA": (GREEN, "^", DASHED), "XGBoost": (AMBER, "D", LONG),
    "Complete features - best": (SKY, "<", DOTTED), "Oracle - best": (GREY, "*", DOTTED),
    "Affine intercept": (SKY, "v", DASHED), "Affine": (GREEN, "^", DASH_DOT), "Finite": (ORANGE, "D", LONG),
    "none": (BLACK, "X", DASH_DOT),
}  # fmt: skip
LABELS = Labels(
    words=WORDS,
    methods=("AdaptiveStack", *LAWS, *PAPER_METHODS, "none", "greedy", "exact"),
    reference=REFERENCE,
    outside={"kind": ("TextInstance",), "signal": ("tree",)},
    styles=STYLES,
    logarithmic=("n",),
)


def authors_r2(table: pl.DataFrame) -> pl.Expr:
    """R2 in the authors' form for their own instances, otherwise the score (R2, or 2 AUC - 1)."""
    score = pl.col("score").cast(pl.Float64)
    if not _has_authors_r2(table):
        return score
    return pl.when(pl.col("kind") == AUTHORS).then(pl.col("r2_authors").cast(pl.Float64)).otherwise(score)


def _has_authors_r2(rows: pl.DataFrame) -> bool:
    if "r2_authors" not in rows.columns:
        return False
    return rows.filter((pl.col("kind") == AUTHORS) & pl.col("r2_authors").is_not_null()).height > 0


def by_signal_and_design(rows: pl.DataFrame) -> pl.DataFrame:
    """Make signals the units of the authors' instances, and call design and signal of real targets "real"."""
    authors, real = pl.col("kind") == AUTHORS, pl.col("kind") == REAL
    if {"signal", "replicate"} <= set(rows.columns):
        signal = pl.concat_str(pl.col("signal"), pl.lit(" "), (pl.col("replicate") - 1) % SIGNALS)
        rows = rows.with_columns(
            pl.when(authors).then(signal).otherwise(pl.col("unit")).alias("unit"),
            pl.when(authors).then(pl.lit("signals")).otherwise(pl.col("unit_kind")).alias("unit_kind"),
        )
    return rows.with_columns(
        pl.when(real).then(pl.lit("real")).otherwise(pl.col(name)).alias(name)
        for name in ("design", "signal")
        if name in rows.columns
    )


def r2_words(rows: pl.DataFrame) -> str:
    """Description of the values of rows."""
    tasks = set(rows["task"].drop_nulls().unique().to_list()) if "task" in rows.columns else set()
    text = "R2 on the test rows, or 2 AUC - 1 where the target is binary" if len(tasks) > 1 else "R2 on the test rows"
    if _has_authors_r2(rows):
        text += " (on the authors' instances in their form, against the mean of the training targets)"
    return text
