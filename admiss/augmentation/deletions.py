"""The law of further deletions.

A row (x, m) of weight s counts with the weight s keep as it is, and with the weight s (1 - keep) after deletions: a
rate r ~ U(low, high) is drawn, every feature is deleted with probability r, independently, and what was missing stays
missing. With o = 1 - m and u_j = 1 if feature j is not deleted, the row that remains has o_j u_j in place of o_j. For
any set A of features

    kept(|A|) = keep + (1 - keep) E[ prod_{j in A} u_j ],    E[..] = E[(1 - r)^|A|]
              = ((1 - low)^(|A| + 1) - (1 - high)^(|A| + 1)) / ((|A| + 1) (high - low)).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from admiss.estimator.validation import TRACE, is_number
from formulations.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Deletions:
    """Rates between ``low`` and ``high``; the row as it is keeps the share ``keep`` of its weight."""

    low: float
    high: float
    keep: float

    @classmethod
    def of(cls, rate: Any, keep: Any) -> "Deletions":
        """The law with these parameters, after checks; a single rate is the same for all rows."""
        ends = [rate, rate] if is_number(rate) else list(rate) if np.ndim(rate) == 1 else []
        if len(ends) != 2 or not all(is_number(end, 1.0) for end in ends) or not 0 <= ends[0] <= ends[1] != 0:
            raise ValueError(f"rate must be a pair of rates 0 <= low <= high <= 1 with high > 0, not {rate!r}.")
        if not is_number(keep) or not (keep == 0 or TRACE <= keep < 1):
            raise ValueError(f"keep must be 0, or a share from {TRACE:g} to below 1, not {keep!r}.")
        return cls(float(ends[0]), float(ends[1]), float(keep))

    def kept(self, size: IntArray) -> FloatArray:
        """The expected weight, as a share, of rows in which none of ``size`` features is deleted.

        Examples
        --------
        >>> Deletions(0.0, 1.0, 0.5).kept(np.arange(4)).round(4).tolist()
        [1.0, 0.75, 0.6667, 0.625]
        """
        a, b = 1.0 - self.low, 1.0 - self.high
        # the mean of a^i b^(k - i) over i = 0 .. k is (a^(k+1) - b^(k+1)) / ((k + 1) (a - b)), without cancellation
        powers = [np.arange(k + 1) for k in range(int(np.max(size, initial=0)) + 1)]
        expected = np.array([np.mean(a**i * b ** i[::-1]) for i in powers])
        return np.asarray(self.keep + (1.0 - self.keep) * expected[np.asarray(size, dtype=np.int64)])


def with_copies(
    X: FloatArray, y: Any, s: FloatArray, law: Deletions, copies: int, random: np.random.RandomState
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Rows followed by ``copies`` of each with deletions: index of the original, features, and weights.

    Rows with the same features and target have the same deletions, so that a weight equals that many copies of a row,
    and the order of the rows does not matter.
    Nothing is drawn for features that are never observed. y are targets or codes of classes, s positive weights.
    """
    same, observed = _same_rows(X, y), np.flatnonzero(~np.isnan(X).all(axis=0))
    rates = random.uniform(law.low, law.high, size=(same.max() + 1, copies))
    deleted = random.uniform(size=(*rates.shape, len(observed))) < rates[:, :, None]
    parts, weights = [X], [law.keep * s]
    for copy in range(copies):
        part = X.copy()
        part[:, observed] = np.where(deleted[same, copy], np.nan, X[:, observed])
        parts.append(part)
        weights.append((1.0 - law.keep) / copies * s)
    rows, used = np.tile(np.arange(len(X)), copies + 1), np.concatenate(weights) > 0
    return rows[used], np.vstack(parts)[used], np.concatenate(weights)[used]


def _same_rows(X: FloatArray, y: Any) -> IntArray:
    """Numbers of the distinct pairs (x, y), whatever the order of the rows.

    Examples
    --------
    >>> same = _same_rows(np.array([[2.0], [np.nan], [2.0], [2.0]]), np.array([1.0, 1.0, 1.0, 3.0]))
    >>> bool(same[0] == same[2]), len(set(same.tolist()))
    (True, 3)
    """
    table = np.ascontiguousarray(np.column_stack([np.where(np.isnan(X), np.nan, X), y])) + 0.0  # no -0
    keys = table.view(np.dtype((np.void, table.shape[1] * table.itemsize))).ravel()
    return np.unique(keys, return_inverse=True)[1].ravel()
