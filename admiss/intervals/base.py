"""Split, calibration and thresholds, shared by the regressor and the classifier.

The rows are split at random: strata by pattern would make calibration rows more regular than test rows, which are then
no longer exchangeable with them, and the coverage falls below its level.

The coverage on test rows is reported over all rows; by feature, missing and observed; by the number of missing
features; by pattern with at least 50 rows. The intervals are those of Clopper and Pearson (1934) for a share at 95 %,
each by itself: of twenty correct ones, one is expected to miss.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.stats import beta
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, column_or_1d

from admiss.drawing import BLUE, GREY, ORANGE, pyplot
from admiss.estimator.notices import warn
from admiss.estimator.raw_tables import GivesFrames
from admiss.estimator.validation import (
    AllowsMissing,
    feature_names,
    is_number,
    read_random_state,
    refuse_arguments,
    require_choice,
    require_flags,
    unchanged_on_error,
)
from admiss.intervals.basis import PatternBasis, check_basis, resolve_basis
from admiss.intervals.masking import exact_thresholds
from admiss.patterns import PatternTable, alike, is_first, pattern_name
from admiss.terminal.table import Table
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.conformal.program import ThresholdProblem
from formulations.conformal.thresholds import conservative_thresholds, miscoverage, thresholds_at

METHODS = ("class", "mda_exact", "mda_nested")
MDA_PROMISES = {
    "mda_exact": "Coverage at least {} given every pattern, if missingness is independent of features and target.",
    "mda_nested": "Coverage at least {} over all rows together, at the level 1 - 2 a of the jackknife+.",
}

# What is added to the promise if rows are split by group.
BY_GROUP = (
    " Rows were split by group: no model saw the group of a calibration row. Rows of one group are not exchangeable "
    "with others, so the level is not proven for rows of new groups."
)
# Panels of a figure, by the kinds of their groups.
FACETS = (("all", "missing", "observed"), ("n_missing",), ("pattern",))


@dataclass(frozen=True)
class CoverageReport:
    """Coverage by group.

    Attributes
    ----------
    table : Table
        For each level and group: rows, coverage with its interval (low, high), the mean width of finite intervals (or
        mean size of sets) and the share of infinite ones. Groups are of the kinds all, missing, observed, n_missing and
        pattern.
    """

    table: Table

    def __repr__(self) -> str:
        return repr(self.table)

    def plot(self, level: float | None = None, ax: Any = None) -> Any:
        """Draw the coverage of each group at one level, by default the first: dots with their intervals.

        There is a panel for all rows and features, one for numbers of missing values, and one for patterns; axes that
        are given hold all groups. Groups of fewer than 30 rows, whose intervals are too long to read, are left out, and
        patterns after the 12 most frequent.

        Returns
        -------
        matplotlib axes
            The first panel.
        """
        level = float(self.table["level"][0] if level is None else level)
        at_level = self.table["level"] == level
        if not at_level.any():
            known = ", ".join(f"{value:g}" for value in np.unique(self.table["level"]))
            raise ValueError(f"There are no sets of level {level:g}: choose one of {known}.")
        kinds = self.table["kind"]
        drawn = at_level & ((self.table["rows"] >= 30) | (kinds == "all"))
        drawn[np.flatnonzero(drawn & (kinds == "pattern"))[12:]] = False
        parts = [np.flatnonzero(drawn & np.isin(kinds, facet)) for facet in FACETS]
        parts = [part for part in parts if len(part)]
        if ax is not None:
            self._draw(ax, np.concatenate(parts), level)
            return ax
        labels = [max(len(self.table["group"][row]) for row in part) for part in parts]
        widths = [3.6 + 0.065 * letters for letters in labels]  # inches, with the width of a letter
        size = (sum(widths), 1.4 + 0.22 * max(map(len, parts)))
        figure = pyplot().figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, len(parts), squeeze=False, sharex=True, width_ratios=widths)[0]
        for panel, part in zip(axes, parts, strict=True):
            self._draw(panel, part, level)
        entries = {
            label: handle for panel in axes for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=len(entries), frameon=False)
        return axes[0]

    def _draw(self, ax: Any, rows: Any, level: float) -> None:
        """Draw some groups below each other."""
        part = {name: values[rows] for name, values in self.table.items()}
        place = -np.arange(len(rows), dtype=float)
        below = part["high"] < level
        for colour, chosen, marker, words in (
            (BLUE, ~below, "o", "95% interval"),
            (ORANGE, below, "s", "interval below the level"),
        ):
            if chosen.any():
                ends = [part["coverage"] - part["low"], part["high"] - part["coverage"]]
                bars = [end[chosen] for end in ends]
                style = {"fmt": marker, "color": colour, "markersize": 4, "linewidth": 1, "capsize": 2}
                ax.errorbar(part["coverage"][chosen], place[chosen], xerr=bars, label=words, **style)
        ax.axvline(level, color=GREY, linewidth=1, linestyle="--", label="level")
        labels = [f"{group}  ({n:,})" for group, n in zip(part["group"], part["rows"], strict=True)]
        ax.set_yticks(place, labels, fontsize=8, parse_math=False)
        ax.set_ylim(place[-1] - 0.7, 0.7)
        ax.set_xlabel(f"coverage at level {level:g}")


def coverage_report(
    M: BoolArray, covered: BoolArray, widths: FloatArray, levels: list[float], names: list[str], measure: str
) -> CoverageReport:
    """The report for patterns M, whether each row is covered and the width of its set, both of shape (n, levels)."""
    records = []
    for k, level in enumerate(levels):
        for kind, group, rows in _groups(M, names):
            low, high = share_interval(int(covered[rows, k].sum()), len(rows))
            finite = widths[rows, k][np.isfinite(widths[rows, k])]
            mean = float(finite.mean()) if len(finite) else np.inf
            infinite = 1 - len(finite) / len(rows)
            records.append((level, kind, group, len(rows), covered[rows, k].mean(), low, high, mean, infinite))
    columns = ("level", "kind", "group", "rows", "coverage", "low", "high", f"mean_{measure}", "infinite")
    return CoverageReport(Table(**dict(zip(columns, map(list, zip(*records, strict=True)), strict=True))))


def _groups(M: BoolArray, names: list[str]) -> Iterator[tuple[str, str, Any]]:
    """Kind, name and rows of each group that is not empty; features that are always missing together are one."""
    yield "all", "all rows", np.arange(len(M))
    first = alike(M)
    once = is_first(first)
    for j in np.flatnonzero(M.any(axis=0) & once):
        together = ", ".join(names[i] for i in np.flatnonzero(first == j))
        for kind, rows in (("missing", M[:, j]), ("observed", ~M[:, j])):
            if rows.any():
                yield kind, f"{together} {kind}", np.flatnonzero(rows)
    numbers = M[:, once].sum(axis=1)
    for number in np.unique(numbers).tolist():
        yield "n_missing", f"{number} missing", np.flatnonzero(numbers == number)
    table = PatternTable.of(M)
    for p in np.argsort(-table.counts, kind="stable").tolist():
        if table.counts[p] >= 50:
            yield "pattern", pattern_name(table.patterns[p], names), np.flatnonzero(table.codes == p)


def _codes_of(groups: Any, n: int) -> IntArray:
    """The number of the group of each row; every row is one without groups."""
    if groups is None:
        return np.arange(n)
    codes = np.unique(column_or_1d(groups), return_inverse=True)[1].ravel()
    if len(codes) != n:
        raise ValueError(f"groups must have one entry for each of the {n} rows, not {len(codes)}.")
    if codes.max() == 0:
        raise ValueError("groups must hold at least two groups: one to fit, one to calibrate.")
    return codes


def share_interval(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of Clopper and Pearson for a share.

    Examples
    --------
    >>> [round(end, 4) for end in share_interval(9, 10)]
    [0.555, 0.9975]
    """
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, successes, n - successes + 1)) if successes else 0.0
    high = float(beta.ppf(1 - tail, successes + 1, n - successes)) if successes < n else 1.0
    return low, high


class PatternConformal(GivesFrames, AllowsMissing, BaseEstimator):
    """Base of the two estimators, which provide models, outputs and scores."""

    # How the report calls the size of a set.
    _size_name: ClassVar[str]
    basis_: PatternBasis

    def __init__(
        self,
        estimator: Any,
        confidence_level: Any = 0.9,
        basis: Any = "auto",
        method: str = "class",
        prefit: bool = False,
        random_state: Any = None,
        calibration_size: float = 0.3,
        randomize: bool = False,
    ) -> None:
        self.estimator = estimator
        self.confidence_level = confidence_level
        self.basis = basis
        self.method = method
        self.prefit = prefit
        self.random_state = random_state
        self.calibration_size = calibration_size
        self.randomize = randomize

    def _check_parameters(self) -> None:
        levels = np.atleast_1d(np.asarray(self.confidence_level, dtype=object))
        if levels.ndim != 1 or not len(levels) or not all(is_number(level) and 0 < level < 1 for level in levels):
            raise ValueError(f"confidence_level must be a number between 0 and 1, or several, not {levels.tolist()}.")
        require_choice(self, "method", METHODS)
        require_flags(self, "prefit", "randomize")
        if not is_number(self.calibration_size) or not self.calibration_size < 1:
            raise ValueError(f"calibration_size must be a share from 0 to below 1, not {self.calibration_size!r}.")
        if self.randomize and self.method != "class":
            raise ValueError("Only the sets of method='class' can be randomised: leave randomize=False.")
        check_basis(self.basis)

    def _levels(self) -> list[float]:
        return [float(level) for level in np.atleast_1d(self.confidence_level)]

    def fit(self, X: Any, y: Any, groups: Any = None, **unknown: Any) -> Self:
        """Fit the estimator on a random part of the rows, and calibrate on the others.

        With ``prefit=True`` all rows calibrate; with ``calibration_size=0`` none, and ``conformalize`` has to follow.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        y : array of shape (n,)
            Target, or class labels.
        groups : array of shape (n,), optional
            Groups of rows that are fitted or calibrated together: ``calibration_size`` then is a share of the groups.
        **unknown
            Refused.
        """
        refuse_arguments(self, unknown)
        self._check_parameters()
        with unchanged_on_error(self):
            rows = self._read_table(X, reset=True)
            self._remember_frame(X)
            target = self._read_target(y, len(rows), reset=True)
            random = read_random_state(self.random_state)
            self.seed_ = int(random.randint(2**31 - 1))
            self.by_group_ = groups is not None
            if hasattr(self, "scores_"):
                del self.scores_  # an earlier calibration was for another model
            if self.prefit:
                self._take_models()
                self._calibrate(rows, target, None)
                return self
            if len(rows) < 2:
                raise ValueError(f"Rows to fit and rows to calibrate are needed, and n_samples={len(rows)}.")
            codes = _codes_of(groups, len(rows))
            n = int(codes.max()) + 1
            size = min(max(round(self.calibration_size * n), 1), n - 1) if self.calibration_size else 0
            order = random.permutation(n)
            is_held_out = np.isin(codes, order[:size])
            train, held_out = np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
            self._fit_models(self._given(rows[train]), target[train], int(random.randint(2**31 - 1)))
            self.train_patterns_ = PatternTable.of(np.isnan(rows[train])).patterns
            if len(held_out):
                self._calibrate(rows[held_out], target[held_out], self.train_patterns_)
        return self

    def conformalize(self, X: Any, y: Any) -> Self:
        """Calibrate on rows that the estimator was not fitted to; they replace those of an earlier calibration."""
        self._check_parameters()
        if not self.prefit:
            check_is_fitted(self, "train_patterns_")
        with unchanged_on_error(self):
            rows = self._read_table(X, reset=bool(self.prefit))
            if self.prefit:
                self._remember_frame(X)
                self.seed_ = int(read_random_state(self.random_state).randint(2**31 - 1))
                self._take_models()
            target = self._read_target(y, len(rows), reset=False)
            self._calibrate(rows, target, None if self.prefit else self.train_patterns_)
        return self

    def _calibrate(self, X: FloatArray, y: FloatArray, M_train: BoolArray | None) -> None:
        M = np.isnan(X)
        self.basis_ = resolve_basis(self.basis, len(X), X.shape[1], M_train)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._scores(self._outputs(X), y)
        if not np.isfinite(scores).all():
            raise ValueError("Scores of calibration rows are not finite: check the predictions, or use other units.")
        self.scores_, self.calibration_patterns_ = scores, M
        self.calibration_rows_ = (X, y) if self.method != "class" else None
        self.guarantee_ = self._guarantee()

    def _guarantee(self) -> str:
        levels = self._levels()
        if self.method == "mda_nested":
            levels = [max(0.0, 1 - 2 * miscoverage(level)) for level in levels]
        shares = " and ".join(f"{100 * level:.6g} %" for level in levels)
        if self.method != "class":
            return MDA_PROMISES[self.method].format(shares)
        exactly = "exactly" if self.randomize else "at least"
        without_ties = ", if scores have no ties" if self.randomize else ""
        return (
            f"Coverage {exactly} {shares} {self.basis_.promise}{without_ties}. This holds for exchangeable rows, on "
            "average over the draws of calibration and test rows, and not for each pattern."
            + (BY_GROUP if getattr(self, "by_group_", False) else "")
        )

    def _read_rows(self, X: Any) -> FloatArray:
        """Rows to be predicted, after calibration."""
        check_is_fitted(self)
        rows = self._read_table(X, reset=False)
        if not hasattr(self, "scores_"):
            raise NotFittedError("There are no calibration rows: call conformalize(X, y) first.")
        return rows

    def _thresholds(self, X: FloatArray) -> FloatArray:
        """Thresholds of each row, of shape (n, levels), nested across levels."""
        table, levels = PatternTable.of(np.isnan(X)), self._levels()
        if self.method == "class":
            thresholds = self._class_thresholds(table.patterns, levels)
        else:
            assert self.calibration_rows_ is not None
            thresholds = exact_thresholds(*self.calibration_rows_, self._outputs, self._scores, table.patterns, levels)
        ascending = np.argsort(levels, kind="stable")
        nested = np.empty_like(thresholds)
        nested[:, ascending] = np.maximum.accumulate(thresholds[:, ascending], axis=1)
        self._warn_infinite(table, np.asarray(np.isposinf(nested).any(axis=1)))
        return nested[table.codes]

    def _class_thresholds(self, patterns: BoolArray, levels: list[float]) -> FloatArray:
        known, phi = self.basis_(self.calibration_patterns_), self.basis_(patterns)
        problems = [ThresholdProblem(self.scores_, known, miscoverage(level)) for level in levels]
        if not self.randomize:
            return np.column_stack([conservative_thresholds(problem, phi) for problem in problems])
        draws = np.array([np.random.default_rng([self.seed_, *np.packbits(m)]).uniform() for m in patterns])
        return np.column_stack([thresholds_at(p, phi, draws - p.miscoverage) for p in problems])

    def _warn_infinite(self, table: PatternTable, infinite: BoolArray) -> None:
        """One warning for all infinite sets, with the features that have too few calibration rows."""
        rows = int(table.counts[infinite].sum())
        if not rows:
            return
        a, M = min(map(miscoverage, self._levels())), self.calibration_patterns_
        needed, names = int(np.ceil((1 - a) / a - 1e-9)), feature_names(self)
        parts = []
        for word, known, present in (("missing", M, table.patterns), ("observed", ~M, ~table.patterns)):
            rare = (known.sum(axis=0) < needed) & present[infinite].any(axis=0)
            if rare.any():
                parts.append(f"{word} in fewer than {needed}: {', '.join(names[j] for j in np.flatnonzero(rare))}")
        reason = "; ".join(parts) or "too few of them have patterns like these"
        warn(
            f"The sets of {rows:,} of {len(table.codes):,} rows are infinite, for want of calibration rows ({reason})."
        )

    def coverage_report(self, X: Any, y: Any) -> CoverageReport:
        """Coverage on test rows: over all, by feature missing and observed, by number missing, by frequent pattern."""
        rows = self._read_rows(X)
        covered, widths = self._evaluate(rows, self._read_target(y, len(rows), reset=False))
        return coverage_report(np.isnan(rows), covered, widths, self._levels(), feature_names(self), self._size_name)

    @abstractmethod
    def _fit_models(self, X: Any, y: Any, seed: int) -> None:
        """Fit what the sets are made of."""

    @abstractmethod
    def _take_models(self) -> None:
        """Take models that are fitted already."""

    @abstractmethod
    def _read_target(self, y: Any, n: int, *, reset: bool) -> Any:
        """The target of n rows, after checks."""

    @abstractmethod
    def _outputs(self, X: FloatArray) -> FloatArray:
        """What the models say of rows."""

    @abstractmethod
    def _scores(self, outputs: FloatArray, y: Any) -> FloatArray:
        """How far each target is from the output of its row."""

    @abstractmethod
    def _evaluate(self, X: FloatArray, y: Any) -> tuple[BoolArray, FloatArray]:
        """Whether the sets cover the target, and their sizes, by row and level."""
