"""Labels of a study in reports: words for settings, their values and metrics, and the order of methods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from admiss.drawing import LINE_STYLES, ROLES, Style

METRIC_WORDS = {"r2": "R²", "roc_auc": "AUC", "log_loss": "log-loss"}
NEGATIVE = "neg_"


@dataclass(frozen=True)
class Metric:
    """A metric under the name people use: minus an error is shown as the error, times ``sign``."""

    word: str
    sign: int

    @property
    def better(self) -> str:
        """Which values are better."""
        return "larger is better" if self.sign > 0 else "smaller is better"


@dataclass(frozen=True)
class Labels:
    """Words and orders; a study that defines none is shown under the names that it uses itself."""

    # From names and values of settings to what readers call them; values of text are shown in this order.
    words: Mapping[str, str] = field(default_factory=dict)
    # In the order in which they are shown; others follow.
    methods: tuple[str, ...] = ()
    # The method that others are compared with at first; the first one shown if it is absent.
    reference: str = ""
    # From a setting to the values that averages leave out unless requested.
    outside: Mapping[str, Sequence[object]] = field(default_factory=dict)
    # Of methods, in figures.
    styles: Mapping[str, Style] = field(default_factory=dict)
    # Settings on a logarithmic axis, beside those whose levels span a factor of ten.
    logarithmic: tuple[str, ...] = ()

    def word(self, value: object) -> str:
        """A name or value of a setting in words.

        Examples
        --------
        >>> labels = Labels({"mcar": "MCAR"})
        >>> labels.word("mcar"), labels.word("missing_fraction"), labels.word(None), labels.word(True)
        ('MCAR', 'missing fraction', 'none', 'yes')
        """
        if value is None:
            return "none"
        if isinstance(value, bool):
            return "yes" if value else "no"
        return self.words.get(str(value), str(value).replace("_", " "))

    def metric(self, name: str) -> Metric:
        """A metric in words, and the sign that it is shown with.

        Examples
        --------
        >>> Labels().metric("r2").word, Labels().metric("neg_mean_absolute_error")
        ('R²', Metric(word='mean absolute error', sign=-1))
        """
        if name in self.words:
            return Metric(self.words[name], 1)
        plain = name.removeprefix(NEGATIVE)
        return Metric(METRIC_WORDS.get(plain, plain.replace("_", " ")), -1 if name.startswith(NEGATIVE) else 1)

    def heading(self, name: str, value: object) -> str:
        """A level of a setting as the heading of a panel.

        Examples
        --------
        >>> Labels().heading("mechanism", "mcar"), Labels().heading("n", 40), Labels().heading("tuned", False)
        ('mcar', 'n = 40', 'tuned = no')
        """
        return self.word(value) if isinstance(value, str) else f"{self.word(name)} = {self.word(value)}"

    def ordered(self, methods: Sequence[str]) -> list[str]:
        """Distinct methods, known ones first in their order.

        Examples
        --------
        >>> Labels(methods=("Affine", "XGBoost")).ordered(["another", "XGBoost", "Affine", "XGBoost"])
        ['Affine', 'XGBoost', 'another']
        """
        unique = list(dict.fromkeys(methods))
        return [name for name in self.methods if name in unique] + [name for name in unique if name not in self.methods]

    def reference_among(self, methods: Sequence[str]) -> str:
        """The method that others are compared with at first."""
        return self.reference if self.reference in methods else methods[0]

    def styles_of(self, methods: Sequence[str]) -> dict[str, Style]:
        """One style per method: its own, that of its role, or one that is free."""
        own = {**ROLES, **self.styles}
        if self.reference and self.reference not in own:
            own[self.reference] = ROLES["reference"]
        own = {name: own[name] for name in methods if name in own}
        taken = {style[:2] for style in own.values()}
        free = [style for style in LINE_STYLES if style[:2] not in taken] or list(LINE_STYLES)
        others = [name for name in methods if name not in own]
        return own | {name: free[index % len(free)] for index, name in enumerate(others)}

    def levels(self, rows: pl.DataFrame, name: str) -> list[object]:
        """Distinct values of a column: numbers in their order, text in the order of the words, None last."""
        values = rows[name].unique().to_list()
        present = [value for value in values if value is not None]
        known = list(self.words)
        if any(isinstance(value, str) for value in present):
            present.sort(key=lambda value: (known.index(value) if value in known else len(known), value))
        else:
            present.sort()
        return present + [None] * (len(present) < len(values))

    def inside(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows without the values that averages leave out, unless nothing would remain."""
        for name, values in self.outside.items():
            if name in rows.columns:
                inside = rows.filter(~pl.col(name).is_in(list(values)).fill_null(False))
                rows = inside if inside.height else rows
        return rows
