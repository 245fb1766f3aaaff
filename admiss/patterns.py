"""Missingness patterns of a data set.

A pattern is a row m of a 0/1 matrix M, with m_j = 1 if feature j is missing. Rows are packed into integers, one bit per
feature, and the distinct patterns are found by sorting integers instead of rows. Patterns are in lexicographic order (0
before 1, first feature first).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.jit import compiled
from formulations.names import pattern_name as pattern_name

# Number of rows packed into keys at once.
KEY_BLOCK = 2**16


@dataclass(frozen=True)
class PatternTable:
    """The distinct patterns of a data set.

    Attributes
    ----------
    patterns : bool array of shape (P, d)
        The distinct patterns, in lexicographic order.
    codes : int array of shape (n,)
        For each row, the index of its pattern.
    counts : int array of shape (P,)
        Rows with each pattern.
    weights : float array of shape (P,)
        Sum of the sample weights of these rows.

    Examples
    --------
    >>> table = PatternTable.of([[0, 1], [0, 0], [0, 1]])
    >>> table.patterns.astype(int).tolist(), table.codes.tolist(), table.counts.tolist()
    ([[0, 0], [0, 1]], [1, 0, 1], [1, 2])
    """

    patterns: BoolArray
    codes: IntArray
    counts: IntArray
    weights: FloatArray

    @classmethod
    def of(cls, M: object, sample_weight: FloatArray | None = None) -> "PatternTable":
        """The table of the rows of a 0/1 matrix."""
        matrix = np.asarray(M, dtype=bool)
        first, codes = _distinct(matrix)
        counts = np.bincount(codes, minlength=len(first))
        weights = counts if sample_weight is None else np.bincount(codes, sample_weight, len(first))
        return cls(matrix[first], codes, counts, np.asarray(weights, dtype=float))

    @classmethod
    def of_missing(cls, X: FloatArray, sample_weight: FloatArray) -> "PatternTable":
        """The table of ``isnan(X)`` without the codes of its rows, in little memory."""
        if X.shape[1] > 64 or np.ptp(sample_weight) > 0:
            table = cls.of(np.isnan(X), sample_weight)
            return cls(table.patterns, np.empty(0, dtype=np.int64), table.counts, table.weights)
        d = X.shape[1]
        # the rows of all possible patterns are counted if these are not many more than rows, and at most a million
        if 0 < d <= 20 and 1 << d <= 2 * len(X):
            tally = _tally(np.ascontiguousarray(X))
            numbers = np.flatnonzero(tally)
            counts, keys = tally[numbers], numbers.astype(np.uint64) << np.uint64(64 - d)
        else:
            packed = np.empty(len(X), dtype=np.uint64)
            for start in range(0, len(X), KEY_BLOCK):
                packed[start : start + KEY_BLOCK] = _keys(np.isnan(X[start : start + KEY_BLOCK]))[:, 0]
            packed.sort()
            first = np.flatnonzero(np.append(True, packed[1:] != packed[:-1]))
            counts, keys = np.diff(np.append(first, len(packed))), packed[first]
        words = keys.astype(">u8").view(np.uint8).reshape(-1, 8)
        patterns = np.unpackbits(words, axis=1, count=d).view(bool)
        return cls(patterns, np.empty(0, dtype=np.int64), counts, counts * sample_weight[0])


@compiled
def _tally(X):  # type: ignore[no-untyped-def]
    """Rows with each pattern, by its number in binary, the first feature first."""
    n, d = X.shape
    counts = np.zeros(1 << d, dtype=np.int64)
    for i in range(n):
        number = 0
        for j in range(d):
            number += (1 << (d - 1 - j)) if np.isnan(X[i, j]) else 0
        counts[number] += 1
    return counts


def _keys(M: BoolArray) -> NDArray[np.uint64]:
    """Rows as integers, 64 features per word, in lexicographic order."""
    packed = np.packbits(M, axis=1)
    words = max(1, -(-packed.shape[1] // 8))
    padded = np.zeros((len(M), 8 * words), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(">u8").astype(np.uint64)


def _distinct(M: BoolArray) -> tuple[IntArray, IntArray]:
    """First row of each distinct pattern in lexicographic order, and the code of each row."""
    keys = _keys(M)
    words = keys.shape[1]
    head = keys[:, 0]
    if M.shape[1] <= 16:  # short integers are sorted faster
        head = (head >> np.uint64(48)).astype(np.uint16)
    _, first, codes = np.unique(head, return_index=True, return_inverse=True)
    for word in range(1, words):  # the codes so far come first: the order stays lexicographic
        distinct, next_codes = np.unique(keys[:, word], return_inverse=True)
        joint = codes.astype(np.int64) * len(distinct) + next_codes
        _, first, codes = np.unique(joint, return_index=True, return_inverse=True)
    return first, codes


def lookup(known: BoolArray, M: BoolArray) -> IntArray:
    """The index of each row of ``M`` among the distinct rows of ``known``, or -1.

    Examples
    --------
    >>> lookup(np.array([[0, 0], [0, 1]], bool), np.array([[0, 1], [1, 1]], bool)).tolist()
    [1, -1]
    """
    new = PatternTable.of(M)
    joint = PatternTable.of(np.vstack([known, new.patterns]))
    index = np.full(len(joint.patterns), -1)
    index[joint.codes[: len(known)]] = np.arange(len(known))
    return index[joint.codes[len(known) :]][new.codes]


def nearest(known: BoolArray, weights: FloatArray, M: BoolArray) -> IntArray:
    """The index of the row of ``known`` nearest to each row of ``M`` in Hamming distance.

    ``known`` is in lexicographic order. Ties go to the larger weight, then to the first row.

    Examples
    --------
    >>> nearest(np.array([[0, 0], [1, 1]], bool), np.array([2.0, 1.0]), np.array([[0, 1], [1, 1]], bool)).tolist()
    [0, 1]
    """
    table = PatternTable.of(M)
    index = lookup(known, table.patterns)
    unseen = np.flatnonzero(index < 0)
    preference = np.argsort(-weights, kind="stable")
    candidates = known[preference].astype(np.float32)
    size = candidates.sum(axis=1)
    block = max(1, 2**24 // len(known))  # distances in single precision, of 64 MB
    for start in range(0, len(unseen), block):
        rows = unseen[start : start + block]
        distance = size - 2.0 * table.patterns[rows].astype(np.float32) @ candidates.T  # plus |m|, the same for all
        index[rows] = preference[np.argmin(distance, axis=1)]
    return index[table.codes]


def alike(M: BoolArray) -> IntArray:
    """For each feature the first one that is missing in the same rows.

    Examples
    --------
    >>> alike(np.array([[0, 1, 0, 1], [0, 0, 1, 0]], bool)).tolist()
    [0, 1, 2, 1]
    """
    columns = np.packbits(M, axis=0).T
    places: dict[bytes, int] = {}
    return np.array([places.setdefault(column.tobytes(), j) for j, column in enumerate(columns)], dtype=np.int64)


def alike_in_both(first: IntArray, other: IntArray) -> IntArray:
    """For each feature the first one that is missing in the same rows of two tables, from :func:`alike` of each."""
    _, place, code = np.unique(np.column_stack([first, other]), axis=0, return_index=True, return_inverse=True)
    return place[code.ravel()]


def is_first(first: IntArray) -> BoolArray:
    """Whether each feature stands for those that are missing in the same rows."""
    return np.asarray(first == np.arange(len(first)))


def missing_once(M: BoolArray) -> IntArray:
    """Features that are missing in some rows, the first one of those that are always missing together."""
    return np.flatnonzero(M.any(axis=0) & is_first(alike(M)))
