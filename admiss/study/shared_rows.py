"""Instances that are made of the same rows: a sketch of the rows of each, and the tables that several of them share.

Replicates of a function may be fresh draws, or random splits and subsamples of one table. Only the second share rows,
so rows are hashed where they are made. A sketch has two bags of hashes, of which the ``KEPT`` smallest distinct ones
are kept with their counts, a sample of values that is the same in all instances:

    rows     the observed values of a row and its target
    cells    an observed value with its column and the target of its row: these recognise a table in which other values
             are missing in every replicate

Rows of few discrete values coincide by chance too. If the rows of A and B are independent draws from one distribution,
the share of B that does not occur in A is about the share of A that occurs once (Good, 1953, after Turing), with a
standard error of about 1 / sqrt(n). A and B share a table if, on average over both directions and for one of the bags,

    (share of A that occurs once) - (share of B that does not occur in A) >= 1/4 + 2 / sqrt(n),

n being the smaller number of distinct hashes, or if all their rows are the same, at least ``DIFFERENT`` of them
distinct. Rows drawn with replacement from a table are recognised where half of them are distinct and one column tells
these apart: repeated rows then count once.

Not recognised are a table of discrete values from which values are deleted at random, a table of discrete values that
is drawn with replacement, and rows that are transformed in each replicate: their instances need a field ``dataset``.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from admiss.study.rows import PARTS, is_missing, is_rows

# Two standard errors of a share among so many hashes are 1/5.
KEPT = 100
# Two samples of any distribution are the same k distinct rows with probability at most k! / k^k, which is 1e-6.
DIFFERENT = 16
# The column of the table of a study that names shared tables, and its entry for rows that no other instance has.
SHARED_ROWS = "shared_rows"
NO_TABLE = "none"
Hashes = npt.NDArray[np.uint64]
Bag = Mapping[str, int]
Sketch = Mapping[str, Any]


def row_sketch(made: Any) -> str:
    """The sketch of the rows that an instance has made, as JSON; empty if they are not tables of rows.

    Examples
    --------
    >>> X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    >>> row_sketch((X, y)) == row_sketch((X[::-1].astype(np.float32), y[::-1])) != row_sketch((X, y[::-1]))
    True
    """
    if not is_rows(made):
        return ""
    parts = tuple(made) if isinstance(made, tuple | list) else tuple(getattr(made, part) for part in PARTS)
    pairs = [parts] if len(parts) == 2 else [(parts[0], parts[2]), (parts[1], parts[3])]
    try:
        cells = np.concatenate([_hashed(X) for X, _ in pairs])
        target = np.concatenate([_hashed(y, is_target=True).sum(axis=1) for _, y in pairs])
    except ValueError:  # not two-dimensional, or of different widths
        return ""
    if not cells.size or len(cells) != len(target):
        return ""
    rows = _mixed(cells.sum(axis=1) + target)
    distinct, first = np.unique(rows, return_index=True)
    told_apart = any(len(np.unique(column)) == len(distinct) for column in (target, *cells.T))
    if len(distinct) >= len(rows) / 2 and told_apart:
        rows, cells, target = rows[first], cells[first], target[first]
    same = hashlib.sha256(np.sort(rows).tobytes()).hexdigest()[:16] if len(distinct) >= DIFFERENT else ""
    paired = _mixed(cells + _mixed(target)[:, None])[cells != 0]
    return json.dumps({"digest": same, "rows": _smallest(rows), "cells": _smallest(paired)}, separators=(",", ":"))


def _hashed(table: Any, *, is_target: bool = False) -> Hashes:
    """Hashes of the values of a table with their columns, 0 for missing ones; of whole rows if it is sparse."""
    if hasattr(table, "tocsr"):
        entries = table.tocsr(copy=True)
        entries.sum_duplicates()
        entries = entries.tocoo()
        sums = np.zeros((table.shape[0], 1), dtype=np.uint64)
        np.add.at(sums[:, 0], entries.row, _mixed(_bits(entries.data) + _mixed(entries.col.astype(np.uint64))))
        return sums
    table = table if hasattr(table, "shape") else np.asarray(table)
    if len(table.shape) == 1 and is_target:
        columns = [table]
    elif len(table.shape) == 2:
        columns = [table.iloc[:, j] if hasattr(table, "iloc") else table[:, j] for j in range(table.shape[1])]
    else:
        raise ValueError
    hashes = np.empty((len(table), len(columns)), dtype=np.uint64)
    for j, column in enumerate(columns):
        number = np.array([-1 - j if is_target else j]).astype(np.uint64)
        bits = _bits(column)
        hashes[:, j] = np.where(bits == _bits([np.nan]), 0, _mixed(bits + _mixed(number)))
    return hashes


def _bits(values: Any) -> Hashes:
    """64 bits of each value, the same for all missing ones, for 0 and -0, and for equal numbers of all types."""
    try:
        numbers = np.asarray(values, dtype=np.float64) + 0.0
        return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    except (TypeError, ValueError):
        objects = np.asarray(values, dtype=object)
    words = np.where(is_missing(objects), "", [f"={value}" for value in objects.tolist()])
    distinct, which = np.unique(words, return_inverse=True)
    hashed = [hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest() for word in distinct]
    bits = np.frombuffer(b"".join(hashed), dtype="<u8").astype(np.uint64)
    return np.where(distinct == "", _bits([np.nan]), bits)[which]


def _mixed(bits: Hashes) -> Hashes:
    """Bits of which each depends on all bits given (the finaliser of SplitMix64)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _smallest(hashes: Hashes) -> dict[str, int]:
    distinct, counts = np.unique(hashes, return_counts=True)
    return {f"{value:016x}": int(count) for value, count in zip(distinct[:KEPT], counts[:KEPT], strict=True)}


def shared_tables(sketches: Mapping[str, Sketch]) -> dict[str, str]:
    """Names of tables, ``table 1`` and so on, by the instances that share each with another one.

    Examples
    --------
    >>> X, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)
    >>> made = {"a": (X, y), "b": (X + 0.5, y), "c": (X[3:], y[3:])}
    >>> shared_tables({name: json.loads(row_sketch(rows)) for name, rows in made.items()})
    {'a': 'table 1', 'c': 'table 1'}
    """
    table_of = {instance: {instance} for instance in sorted(sketches)}
    holders: dict[str, list[str]] = {}
    for instance in table_of:
        sketch = sketches[instance]
        hashes = [each for each in (sketch["digest"], *sketch["rows"], *sketch["cells"]) if each]
        # Instances without a common hash share no table.
        for other in dict.fromkeys(other for each in hashes for other in holders.get(each, ())):
            if table_of[instance] is not table_of[other] and _share_table(sketch, sketches[other]):
                table_of[other] |= table_of[instance]
                for member in table_of[instance]:
                    table_of[member] = table_of[other]
        for each in hashes:
            holders.setdefault(each, []).append(instance)
    tables = {id(table): table for table in table_of.values() if len(table) > 1}
    return {each: f"table {number}" for number, table in enumerate(tables.values(), 1) for each in sorted(table)}


def _share_table(a: Sketch, b: Sketch) -> bool:
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
    beyond_chance = 0.0
    for one, other in ((a, b), (b, a)):
        once = sum(count == 1 for count in one.values()) / sum(one.values())
        unseen = sum(count for value, count in other.items() if value not in one) / sum(other.values())
        beyond_chance += (once - unseen) / 2
    return beyond_chance >= 1 / 4 + 2 / math.sqrt(n)
