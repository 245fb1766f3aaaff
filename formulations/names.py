"""Names of boxes, patterns and groups of patterns, as they appear in programs: "income missing, age observed"."""

from collections.abc import Iterable, Sequence

from formulations.arrays import BoolArray

# The box without literals.
ROOT = "all patterns"


def box_name(literals: Iterable[tuple[int, bool]], names: Sequence[str]) -> str:
    """A box as text, its literals in the order of the features.

    Examples
    --------
    >>> box_name([(1, False), (0, True)], ["income", "age"])
    'income missing, age observed'
    """
    ordered = sorted((int(j), bool(missing)) for j, missing in literals)
    return ", ".join(f"{names[j]} {'missing' if missing else 'observed'}" for j, missing in ordered) or ROOT


def pattern_name(pattern: BoolArray, feature_names: Sequence[str]) -> str:
    """A pattern as text.

    Examples
    --------
    >>> import numpy as np
    >>> pattern_name(np.array([True, False, True]), ["age", "sex", "income"])
    'missing age, income'
    """
    missing = [name for name, m in zip(feature_names, pattern, strict=True) if m]
    return "missing " + ", ".join(missing) if missing else "nothing missing"


def group_name(patterns: Iterable[str]) -> str:
    """A group of patterns as text.

    Examples
    --------
    >>> group_name(["nothing missing", "missing age"])
    'nothing missing | missing age'
    """
    return " | ".join(patterns)


def feature_names_of(names: Sequence[str] | None, n_features: int) -> list[str]:
    """Names of features, x0, x1, .. by default."""
    return [f"x{j}" for j in range(n_features)] if names is None else [str(name) for name in names]


def require_distinct(names: Iterable[str], number: int) -> None:
    """Raise an error if fewer than ``number`` of the names of boxes, patterns or groups are distinct."""
    if len(set(names)) < number:
        raise ValueError(
            "Two boxes or patterns would have the same name: rename the features that occur twice, or whose names "
            "contain ', ', ' | ', 'missing' or 'observed'."
        )
