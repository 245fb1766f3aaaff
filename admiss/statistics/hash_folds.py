"""Folds by a hash of the row: the same on every machine, in any order, for rows that are never in memory together.

A row is in fold  h(key) mod k,  with h the finaliser of splitmix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom
Number Generators, OOPSLA 2014). The key is a whole number or a text; rows with the same key are in the same fold. A
text enters as its UTF-8 bytes by FNV-1a. Without a key a row is (file, row group, row), counted from 0: three numbers,
chained by h(h(h(file) ^ group) ^ row). Rows in memory are those of file 0 and row group 0.

Folds by a hash are about equal in size, and not stratified by pattern.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator

from formulations.arrays import IntArray

Hashes = NDArray[np.uint64]

MOST_FOLDS = 1000
GOLDEN, FIRST, SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
OFFSET, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


class HashFolds(BaseCrossValidator):
    """Folds by a hash of a key, as ``cv`` of any search and as the rule for streams.

    Parameters
    ----------
    n_splits : int
        Number of folds.
    key : str or array of shape (n,), optional
        Rows with the same key are held out together. For streams the name of a column, in memory the values of the key
        (whole numbers or text). By default every row is its own: (file, row group, row).

    Examples
    --------
    >>> [test.tolist() for _, test in HashFolds(2).split(np.zeros((8, 1)))]
    [[1, 2, 5, 7], [0, 3, 4, 6]]
    >>> HashFolds(3).of_keys(["a", "f", "a"]).tolist()
    [1, 0, 1]
    """

    def __init__(self, n_splits: int = 5, key: Any = None) -> None:
        whole = isinstance(n_splits, int | np.integer) and not isinstance(n_splits, bool)
        if not whole or not 2 <= n_splits <= MOST_FOLDS:
            raise ValueError(f"n_splits must be a whole number from 2 to {MOST_FOLDS:,}, not {n_splits!r}.")
        self.n_splits = int(n_splits)
        self.key = key

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[IntArray, IntArray]]:
        """Training and held-out rows of each fold; ``groups`` are keys if given."""
        n, keys = len(X), self.key if groups is None else groups
        if isinstance(keys, str):
            raise ValueError(
                f"In memory HashFolds takes the values of its key, not the name of a column: key=frame[{keys!r}]."
            )
        fold = self.of_places(np.arange(n)) if keys is None else self.of_keys(keys)
        if len(fold) != n:
            raise ValueError(f"HashFolds has {len(fold)} keys for {n} rows: give one for each.")
        empty = np.flatnonzero(np.bincount(fold, minlength=self.n_splits) == 0)
        if len(empty):
            raise ValueError(f"Fold {empty[0]} of HashFolds has no rows: use fewer folds, or keys with more values.")
        for f in range(self.n_splits):
            yield np.flatnonzero(fold != f), np.flatnonzero(fold == f)

    def of_keys(self, keys: Any) -> IntArray:
        """The fold of each key."""
        return self._fold(_mixed(_numbers(keys)))

    def of_places(self, row: IntArray, group: int = 0, file: int = 0) -> IntArray:
        """The fold of rows without a key."""
        with np.errstate(over="ignore"):
            start = _mixed(_mixed(np.array([file], dtype=np.uint64)) ^ np.uint64(group))
        return self._fold(_mixed(start ^ row.astype(np.uint64)))

    def _fold(self, hashes: Hashes) -> IntArray:
        return (hashes % np.uint64(self.n_splits)).astype(np.int64)


def _mixed(z: Hashes) -> Hashes:
    """splitmix64 of each number."""
    z = z + GOLDEN
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return z ^ (z >> np.uint64(31))


def _numbers(keys: Any) -> Hashes:
    """Keys as 64-bit integers."""
    array = np.asarray(keys)
    if array.ndim != 1:
        raise ValueError(f"Keys must be one number or text for each row, not an array of shape {array.shape}.")
    if array.dtype.kind in "iub":
        return array.astype(np.int64).view(np.uint64) if array.dtype.kind == "i" else array.astype(np.uint64)
    if array.dtype.kind == "f" and np.all(np.isfinite(array)) and np.all(array == np.round(array)):
        return array.astype(np.int64).view(np.uint64)
    texts = array.tolist()
    if not all(isinstance(text, str | bytes) for text in texts):
        raise ValueError("Keys must be whole numbers or texts, and none may be missing.")
    return _of_texts([text.encode() if isinstance(text, str) else text for text in texts])


def _of_texts(texts: list[bytes]) -> Hashes:
    """FNV-1a of each text, one byte of all texts at a time."""
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    joined = np.frombuffer(b"".join(texts), dtype=np.uint8)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if len(texts) else lengths
    hashes = np.full(len(texts), OFFSET)
    for position in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > position)
        hashes[longer] = (hashes[longer] ^ joined[starts[longer] + position]) * PRIME
    return hashes
