"""Instances that are made of the same rows: a sketch of the rows of each, and the tables that several of them share.

Replicates of a function may be fresh draws, or random splits and subsamples of one table. Only the second share rows,
so rows are hashed where they are made. A sketch has two bags of hashes, of which the ``KEPT`` smallest distinct ones
are kept with their counts, a sample of values that is the same in all instances:

    rows     all values of a row and its target; a missing value is a value
    cells    an observed value with its column and the target of its row: these recognise a table in which other values
             are missing in every replicate

Rows of few discrete values coincide by chance too. If the rows of A and B are independent draws from one distribution,
the share of B that does not occur in A is about the share of A that occurs once (Good, 1953, after Turing), with a
standard error of about 1 / sqrt(n). A and B share a table if, on average over both directions and for one of the bags,

    (share of A that occurs once) - (share of B that does not occur in A) >= 1/4 + 2 / sqrt(n),

n being the smaller number of distinct hashes: at least a quarter of the rows are the same beyond chance and two
standard errors. A and B also share a table if all their rows are the same, and no distribution gives these
n = m_1 + .. + m_k rows with a probability n! / (m_1! .. m_k!) (m_1 / n)^m_1 .. (m_k / n)^m_k of more than ``CHANCE``.

Rows that are drawn with replacement are independent draws from the rows of a table. They are recognised where one
column tells all distinct rows apart and at least half of the rows are distinct: repeated rows then count once.

Not recognised are a table of discrete values from which values are deleted at random, a table of discrete values that
is drawn with replacement, and rows that are transformed in each replicate: their instances need a field ``dataset``.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from admiss.study.rows import PARTS, is_rows

# Two standard errors of a share among so many hashes are 1/5.
KEPT = 100
LEAST_SHARE = 0.25
CHANCE = 1e-6
# The column of the table of a study that names shared tables, and its entry for rows that no other instance has.
SHARED_ROWS, NO_TABLE = "shared_rows", "none"
Hashes = npt.NDArray[np.uint64]
Bag = Mapping[str, int]


def row_sketch(made: Any) -> str:
    """The sketch of the rows that an instance has made, as JSON; empty if they are no tables of rows.

    Examples
    --------
    >>> X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    >>> row_sketch((X, y)) == row_sketch((X[::-1].astype(np.float32), y[::-1])) != row_sketch((X, y[::-1]))
    True
    """
    tables = _tables(made)
    if not tables:
        return ""
    targets = [_row_hashes(_columns(y, first=-1)) for _, y in tables]
    target = np.concatenate(targets)
    if all(hasattr(X, "tocsr") for X, _ in tables):
        rows = _mixed(np.concatenate([_sparse_hashes(X) for X, _ in tables]) + target)
        return _encoded(rows, [])
    pieces = [list(_columns(X)) for X, _ in tables]
    columns = [np.concatenate([values for values, _ in column]) for column in zip(*pieces, strict=True)]
    observed = [~np.concatenate([missing for _, missing in column]) for column in zip(*pieces, strict=True)]
    rows = _mixed(np.sum(columns, axis=0, dtype=np.uint64) + target)
    distinct, first = np.unique(rows, return_index=True)
    drawn_again = len(rows) / 2 <= len(distinct) < len(rows)
    if drawn_again and any(len(np.unique(values)) == len(distinct) for values in (target, *columns)):
        records = first
    else:
        records = np.arange(len(rows))
    cells = [
        _mixed(values[records] + _mixed(target[records]))[seen[records]]
        for values, seen in zip(columns, observed, strict=True)
    ]
    return _encoded(rows[records], cells)


def _tables(made: Any) -> list[tuple[Any, Any]]:
    """Pairs of features and target with the same number of rows, or none."""
    if not is_rows(made):
        return []
    parts = tuple(made) if isinstance(made, tuple | list) else tuple(getattr(made, part) for part in PARTS)
    pairs = [parts] if len(parts) == 2 else [(parts[0], parts[2]), (parts[1], parts[3])]
    tables = [(_table(X), _table(y)) for X, y in pairs]
    if any(len(X.shape) != 2 or len(y.shape) not in (1, 2) or X.shape[0] != y.shape[0] for X, y in tables):
        return []
    alike = len({(X.shape[1], hasattr(X, "tocsr")) for X, _ in tables}) == 1
    return tables if alike and all(X.shape[1] for X, _ in tables) and sum(X.shape[0] for X, _ in tables) else []


def _table(values: Any) -> Any:
    if hasattr(values, "shape"):
        return values
    try:
        return np.asarray(values)
    except ValueError:  # lists of different lengths are no table
        return np.zeros(0)


def _columns(table: Any, first: int = 0) -> Iterator[tuple[Hashes, npt.NDArray[np.bool_]]]:
    """Hashes of values with their column, and which are missing; columns are numbered up from ``first``, or down."""
    if len(table.shape) == 1:
        columns = [table]
    elif hasattr(table, "iloc"):  # pandas, where names may repeat
        columns = [table.iloc[:, j] for j in range(table.shape[1])]
    else:
        columns = [table[:, j] for j in range(table.shape[1])]
    for j, column in enumerate(columns):
        bits, missing = _bits(np.asarray(column))
        number = first + j if first >= 0 else first - j
        yield _mixed(bits + _mixed(np.array([number]).astype(np.uint64))), missing


def _bits(values: Any) -> tuple[Hashes, npt.NDArray[np.bool_]]:
    """64 bits of each value, the same for all missing ones, for 0 and -0, and for equal numbers of all types."""
    kind = values.dtype.kind
    if kind in "biufmM":
        missing = np.isnat(values) if kind in "mM" else np.isnan(values)
        numbers = values.astype(np.int64) if kind in "mM" else values
        bits = (numbers.astype(np.float64) + 0.0).view(np.uint64)
        bits[missing] = np.iinfo(np.uint64).max
        return bits, missing
    missing = np.array([_is_missing(value) for value in values.tolist()], dtype=bool)
    if all(isinstance(value, Real) for value in values[~missing].tolist()):
        numbers = np.full(len(values), np.nan)
        numbers[~missing] = values[~missing]
        return _bits(numbers)
    words = np.array(["" if gone else f"={value}" for value, gone in zip(values.tolist(), missing, strict=True)])
    distinct, which = np.unique(words, return_inverse=True)
    return np.array([_word_hash(word) for word in distinct], dtype=np.uint64)[which], missing


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real) and value != value  # NaN


def _word_hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mixed(bits: Hashes) -> Hashes:
    """Bits of which each depends on all bits given (the finaliser of SplitMix64)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _row_hashes(columns: Iterator[tuple[Hashes, npt.NDArray[np.bool_]]]) -> Hashes:
    return np.sum([values for values, _ in columns], axis=0, dtype=np.uint64)


def _sparse_hashes(X: Any) -> Hashes:
    """Sums over the entries of each row."""
    entries = X.tocsr(copy=True)
    entries.sum_duplicates()
    entries = entries.tocoo()
    sums = np.zeros(X.shape[0], dtype=np.uint64)
    np.add.at(sums, entries.row, _mixed(_bits(entries.data)[0] + _mixed(entries.col.astype(np.uint64))))
    return sums


def _encoded(rows: Hashes, cells: Sequence[Hashes]) -> str:
    distinct, counts = np.unique(rows, return_counts=True)
    digest = ""
    if _largest_log_probability(counts) <= math.log(CHANCE):
        digest = hashlib.sha256(np.sort(rows).tobytes()).hexdigest()[:16]
    bags = {"rows": _smallest(distinct, counts)}
    columns = [_smallest(*np.unique(column, return_counts=True)) for column in cells]
    merged = {value: count for column in columns for value, count in column.items()}
    bags["cells"] = {value: merged[value] for value in sorted(merged)[:KEPT]}
    return json.dumps({"digest": digest, **bags}, separators=(",", ":"))


def _smallest(distinct: Hashes, counts: Any) -> dict[str, int]:
    return {f"{value:016x}": int(count) for value, count in zip(distinct[:KEPT], counts[:KEPT], strict=True)}


def _largest_log_probability(counts: npt.NDArray[Any]) -> float:
    """Logarithm of the probability of these counts under the distribution that has their shares."""
    n = int(counts.sum())
    logs = [count * math.log(count / n) - math.lgamma(count + 1) for count in counts.tolist()]
    return math.lgamma(n + 1) + math.fsum(logs)


def shared_tables(sketches: Mapping[str, str]) -> dict[str, str]:
    """Names of tables, ``table 1`` and so on, by the instances that share each with another one.

    Parameters
    ----------
    sketches : mapping
        From instances to their sketches.

    Examples
    --------
    >>> X, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)
    >>> made = {"a": (X, y), "b": (X + 0.5, y), "c": (X[3:], y[3:])}
    >>> shared_tables({name: row_sketch(rows) for name, rows in made.items()})
    {'a': 'table 1', 'c': 'table 1'}
    """
    decoded = {instance: json.loads(sketches[instance]) for instance in sorted(sketches) if sketches[instance]}
    table_of = {instance: {instance} for instance in decoded}
    holders: dict[str, list[str]] = {}
    for instance, sketch in decoded.items():
        hashes = [each for each in (sketch["digest"], *sketch["rows"], *sketch["cells"]) if each]
        # Instances without a common hash share no table.
        for other in dict.fromkeys(other for each in hashes for other in holders.get(each, ())):
            if table_of[instance] is not table_of[other] and _share_table(sketch, decoded[other]):
                table_of[other] |= table_of[instance]
                for member in table_of[instance]:
                    table_of[member] = table_of[other]
        for each in hashes:
            holders.setdefault(each, []).append(instance)
    tables = {id(table): table for table in table_of.values() if len(table) > 1}
    return {each: f"table {number}" for number, table in enumerate(tables.values(), 1) for each in sorted(table)}


def _share_table(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    if a["digest"] and a["digest"] == b["digest"]:
        return True
    return any(_share_bag(a[name], b[name]) for name in ("rows", "cells"))


def _share_bag(a: Bag, b: Bag) -> bool:
    """Whether two bags have more in common than independent draws."""
    # A bag with fewer hashes is complete; beyond its largest hash, nothing is known of one that is not.
    limits = [max(bag) for bag in (a, b) if len(bag) == KEPT]
    if limits:
        a, b = ({value: count for value, count in bag.items() if value <= min(limits)} for bag in (a, b))
    n = min(len(a), len(b))
    if not n:
        return False
    beyond_chance = (_once(a) - _unseen(b, a) + _once(b) - _unseen(a, b)) / 2
    return beyond_chance >= LEAST_SHARE + 2 / math.sqrt(n)


def _once(bag: Bag) -> float:
    return sum(count == 1 for count in bag.values()) / sum(bag.values())


def _unseen(bag: Bag, other: Bag) -> float:
    """Share of a bag that does not occur in another."""
    return sum(count for value, count in bag.items() if value not in other) / sum(bag.values())
