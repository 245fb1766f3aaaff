"""The rows of each pattern as a few weighted rows, for boxes, groups and any class that is linear in x.

For the squared loss, rows z = (observed x, y) of one pattern with weights s matter only by their weight W, their mean
and their scatter  sum s (z - mean)(z - mean)' = R'R,  R of r rows. The 2 r *pseudo-rows*

    mean +- sqrt(r / W) R_i     of weight  W / (2 r)  each

have the same weight, mean and scatter: a fit of them is a fit of the rows. While there are no more rows of a pattern
than pseudo-rows, they are kept as they are.

A scatter in doubles squares the condition number: columns that are collinear to 1e-7 are lost in its last digit. The
sums of s (1, z)(1, z)' are therefore pairs of doubles, with a relative error of 2^-101 for each row
(:mod:`formulations.leaves.double_double`), and R is their triangular factor, computed in pairs and rounded once. The
error does not grow with the number of blocks, as that of a QR factor updated block by block would.

*Error.* Let N_j^2 = sum s z_j^2 over n rows, and k + 1 the length of z. For all v = (v_0, .., v_k+1), the sum
Q(v) of s (v_0 + sum_j v_j z_j)^2 over the rows and the same sum P(v) over their pseudo-rows satisfy

    | sqrt(P(v)) - sqrt(Q(v) + g) |  <=  sum_j |v_j| f_j,        |g| <= e (sum_j |v_j| N_j)^2

with  e = 2^-101 (2 n + 4 k + 64),  N_0^2 = W  and  f_j = 12 u N_j,  u = 2^-53, N_j around the origin of the
pseudo-rows: the rounding of R, of the mean, of their sum and of the weights. A column that depends on others to sqrt(e)
has no row in R, and that adds what it leaves out to f_j.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from admiss.patterns import PatternTable
from admiss.statistics.blocks import Arrays, RowBlock, Shape
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.leaves import double_double

# Files and memory of 20,000 patterns of 20 features take 50 MB for each fold.
MOST_PATTERNS = 20_000
# f_j / N_j of the module: roundings of the factor, of the points and of their weights, in units of 2^-53.
POINT_ROUNDING = 12 * 2.0**-53


@dataclass(frozen=True)
class PseudoRows:
    """Weighted rows with the moments of the rows of each pattern.

    Attributes
    ----------
    X : array of shape (n, d)
        Features minus the origin, NaN if missing.
    y : array of shape (n,)
        Target minus the origin.
    sample_weight : array of shape (n,)
    count : array of shape (n,)
        Rows that each one stands for; a fraction, which adds up over the pseudo-rows of a pattern.
    fold : int array of shape (n,)
    is_exact : bool array of shape (n,)
        Whether it is one of the rows, minus the origin; that of the target without rounding.
    lost : array of shape (d + 1,)
        The part of f_j by columns that depend on others, for features and target, for rows of weight 1.
    """

    X: FloatArray
    y: FloatArray
    sample_weight: FloatArray
    count: FloatArray
    fold: IntArray
    is_exact: BoolArray
    lost: FloatArray

    def __len__(self) -> int:
        return len(self.y)


class Cell(NamedTuple):
    """Rows (s, z) of one pattern and fold if there are few, or the sums of s (1, z)(1, z)' as pairs of doubles."""

    n_rows: int
    rows: FloatArray | None
    sums: FloatArray | None

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        if self.rows is not None:
            return float(self.rows[:, 0].sum())
        assert self.sums is not None
        return float(self.sums[0, 0])

    def plus(self, other: "Cell") -> "Cell":
        """The rows of both."""
        n_rows = self.n_rows + other.n_rows
        if self.rows is not None and other.rows is not None:
            rows = np.vstack([self.rows, other.rows])
            is_small = len(rows) <= 2 * (rows.shape[1] - 1)
            return Cell(n_rows, rows, None) if is_small else Cell(n_rows, None, _sums_of(rows))
        first, second = (_sums_of(cell.rows) if cell.sums is None else cell.sums for cell in (self, other))
        return Cell(n_rows, None, double_double.sum_of_patterns(np.stack([first, second]), np.arange(2)))


def _sums_of(rows: FloatArray | None) -> FloatArray:
    """Packed sums of rows (s, z)."""
    assert rows is not None
    A, y, s = np.ascontiguousarray(rows[:, 1:-1]), rows[:, -1].copy(), rows[:, 0].copy()
    k = A.shape[1]
    everything = np.array([0, len(rows)])
    return np.asarray(double_double.precise_grams(A, y, s, np.zeros(k), 0.0, np.ones(k + 2), everything)[0])


class PatternFactors:
    """The cells of all patterns and folds, for at most 20,000 patterns."""

    def __init__(self, shape: Shape) -> None:
        self.n_features = shape.n_features
        # by pattern, in bytes, and fold
        self.cells: dict[tuple[bytes, int], Cell] = {}

    def update(self, rows: RowBlock) -> None:
        """Add a block of rows."""
        if not len(rows):
            return
        table = PatternTable.of(np.isnan(rows.X))
        most = int(rows.fold.max(initial=0)) + 1
        group = table.codes * most + rows.fold
        order = np.argsort(group, kind="stable")
        groups, first = np.unique(group[order], return_index=True)
        for number, members in zip(groups.tolist(), np.split(order, first[1:]), strict=True):
            pattern, fold = table.patterns[number // most], number % most
            values = np.column_stack([rows.s[members], rows.X[members][:, ~pattern], rows.y[members]])
            is_small = len(values) <= 2 * (values.shape[1] - 1)
            cell = Cell(len(values), values, None) if is_small else Cell(len(values), None, _sums_of(values))
            self._add((pattern.tobytes(), fold), cell)
        self._refuse_too_many()

    def _add(self, key: tuple[bytes, int], cell: Cell) -> None:
        known = self.cells.get(key)
        self.cells[key] = cell if known is None else known.plus(cell)

    def _refuse_too_many(self) -> None:
        if len(self.cells) > MOST_PATTERNS and len({pattern for pattern, _ in self.cells}) > MOST_PATTERNS:
            raise ValueError(
                f"These rows have more than {MOST_PATTERNS:,} patterns, too many for moments of each: use "
                "patterns=False and trees with tree_depth, with fewer features or less depth if their sums are large."
            )

    def merged(self, other: "PatternFactors") -> "PatternFactors":
        """The rows of both."""
        both = PatternFactors(Shape(self.n_features, 1))
        both.cells = dict(self.cells)
        for key, cell in other.cells.items():
            both._add(key, cell)
        both._refuse_too_many()
        return both

    def arrays(self) -> Arrays:
        """All cells, one after the other."""
        keys = sorted(self.cells)
        cells = [self.cells[key] for key in keys]
        parts = [cell.sums if cell.rows is None else cell.rows for cell in cells]
        values = [np.zeros(0), *(part.ravel() for part in parts if part is not None)]
        return {
            "patterns": np.frombuffer(b"".join(pattern for pattern, _ in keys), dtype=bool).reshape(
                len(keys), self.n_features
            ),
            "fold": np.array([fold for _, fold in keys], dtype=np.int64),
            "counts": np.array([cell.n_rows for cell in cells], dtype=np.int64),
            "is_summed": np.array([cell.rows is None for cell in cells], dtype=bool),
            "values": np.concatenate(values),
        }

    def read(self, arrays: Arrays) -> None:
        """Take over saved cells."""
        begin = 0
        stored = zip(arrays["patterns"], arrays["fold"], arrays["counts"], arrays["is_summed"], strict=True)
        for pattern, fold, count, is_summed in stored:
            width = int((~pattern).sum()) + 2
            length = width * (width + 1) if is_summed else int(count) * width
            values = arrays["values"][begin : begin + length]
            begin += length
            cell = (None, values.reshape(2, -1)) if is_summed else (values.reshape(-1, width), None)
            self.cells[pattern.tobytes(), int(fold)] = Cell(int(count), *cell)

    def table(self) -> PatternTable:
        """The patterns, without the codes of rows."""
        keys = list(self.cells)
        M = np.frombuffer(b"".join(pattern for pattern, _ in keys), dtype=bool).reshape(len(keys), self.n_features)
        cells = PatternTable.of(M, np.array([self.cells[key].weight for key in keys]))
        counts = np.bincount(cells.codes, [self.cells[key].n_rows for key in keys]).astype(np.int64)
        return PatternTable(cells.patterns, np.zeros(0, dtype=np.int64), counts, cells.weights)

    def pseudo_rows(self, folds: IntArray, origin: FloatArray) -> PseudoRows:
        """The pseudo-rows of each cell of some folds, around an origin of x and y."""
        Z, lost = [np.zeros((0, self.n_features + 1))], np.zeros(self.n_features + 1)
        weights, counts, of_fold, is_exact = ([np.zeros(0)] for _ in range(4))
        for pattern, fold in sorted(self.cells):
            if fold not in folds:
                continue
            cell = self.cells[pattern, fold]
            observed = np.append(~np.frombuffer(pattern, dtype=bool), True)
            points, weight = _points(cell, origin[observed], observed, lost)
            n = len(points)
            block = np.full((n, self.n_features + 1), np.nan)
            block[:, observed] = points
            Z.append(block)
            weights.append(weight)
            counts.append(np.full(n, cell.n_rows / n))
            of_fold.append(np.full(n, fold))
            is_exact.append(np.full(n, cell.rows is not None and _is_exact(cell.rows[:, -1], origin[-1])))
        rows = np.vstack(Z)
        return PseudoRows(
            X=np.ascontiguousarray(rows[:, :-1]),
            y=rows[:, -1].copy(),
            sample_weight=np.concatenate(weights),
            count=np.concatenate(counts),
            fold=np.concatenate(of_fold).astype(np.int64),
            is_exact=np.concatenate(is_exact).astype(bool),
            lost=lost,
        )


def _points(cell: Cell, origin: FloatArray, observed: BoolArray, lost: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points and weights of a cell; what columns leave out raises ``lost``."""
    if cell.rows is not None:
        return cell.rows[:, 1:] - origin, cell.rows[:, 0]
    assert cell.sums is not None
    k, weight = len(origin), cell.weight
    diagonal = cell.sums[0, np.cumsum(np.arange(1, k + 2)) - 1]
    mean, factor, left_out = np.zeros(k), np.zeros((k, k)), np.zeros(k)
    error = (k + 1) * relative_error(cell.n_rows, k) * diagonal
    r = double_double.triangular_factor(cell.sums, error, origin, mean, factor, left_out)
    lost[observed] = np.maximum(lost[observed], left_out / np.sqrt(weight))
    if r == 0:
        return mean[None, :], np.array([weight])
    steps = np.sqrt(r / weight) * factor[:r]
    return np.vstack([mean + steps, mean - steps]), np.full(2 * r, weight / (2 * r))


def _is_exact(values: FloatArray, origin: float) -> bool:
    """Whether differences from the origin are doubles (Knuth's two-sum leaves no rest)."""
    difference = values - origin
    step = difference - values
    return not ((values - (difference - step)) - (origin + step)).any()


def relative_error(n_rows: int, k: int) -> float:
    """e of the module, for n rows of k features and a target."""
    return double_double.UNIT * (2 * n_rows + 4 * k + 64)
