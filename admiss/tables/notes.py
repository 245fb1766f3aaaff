"""Notes on columns, one sentence for all columns with the same treatment."""

from collections.abc import Sequence

# In the order in which they are printed; {it} is "it", or "one" of several columns.
SENTENCES = {
    "unnamed": "Columns without a name are called by their position: {names}",
    "renamed": "Columns with the name of an earlier one get a number: {names}",
    "notation": "Read as numbers in another notation: {names}; --drop {name} leaves {it} out",
    "words": "Words among numbers or dates are treated as missing: {names}; --drop {name} leaves {it} out",
    "infinite": "Infinite values are treated as missing: {names}; --drop {name} leaves {it} out",
    "dates": "Dates are used as days: {names}; --drop {name} leaves {it} out",
    "hours": "Times are used as hours: {names}; --drop {name} leaves {it} out",
    "durations": "Durations are used as days: {names}; --drop {name} leaves {it} out",
    "levels": "Text is used as 0/1 columns of its values: {names}; --drop {name} leaves {it} out",
    "frequent": "Text is used as 0/1 columns of its most frequent values and one of all others: {names}; --keep {name}"
    " uses every value, --drop {name} leaves {it} out",
    "one value": "Only the missing values can matter, as all others are equal: {names}; --drop {name} leaves {it} out",
    "empty": "Left out, as every value is missing: {names}; --keep {name} uses {it} all the same",
    "constant": "Left out, as all values are equal: {names}; --keep {name} uses {it} all the same",
    "number id": "Left out as an ID, as all values are different: {names}; --keep {name} uses {it} as a number",
    "text id": "Left out as an ID, as all texts are different: {names}; --keep {name} uses the position of each text in"
    " alphabetical order",
    "rare": "Left out, as text with many values of which none is frequent: {names}; --keep {name} uses every value",
    "copy": "Left out as an exact copy: {names}; --keep {name} uses {it} all the same",
    "kept": "Used as --keep says: {names}",
    "kept levels": "Text is used as 0/1 columns of all its values, as --keep says: {names}",
    "kept codes": "Text is used as the position of each value in alphabetical order, as --keep says: {names}",
}  # fmt: skip


class Notes:
    """A collection of treatments.

    Examples
    --------
    >>> notes = Notes()
    >>> notes.add("constant", "a")
    >>> notes.add("copy", "c", "of b")
    >>> notes.add("constant", "d")
    >>> notes.sentences()
    ['Left out, as all values are equal: a and d; --keep NAME uses one all the same.', \
'Left out as an exact copy: c (of b); --keep c uses it all the same.']
    """

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[str, str]]] = {}

    def add(self, key: str, name: str, detail: str = "") -> None:
        """Note the treatment of a column."""
        self._found.setdefault(key, []).append((name, detail))

    def sentences(self) -> list[str]:
        """One sentence per treatment."""
        return [_sentence(pattern, self._found[key]) for key, pattern in SENTENCES.items() if key in self._found]


def _sentence(pattern: str, columns: list[tuple[str, str]]) -> str:
    many = len(columns) > 1
    names = listed([f"{name} ({detail})" if detail else name for name, detail in columns])
    name, it = ("NAME", "one") if many else (shell_name(columns[0][0]), "it")
    return pattern.format(names=names, name=name, it=it) + "."


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in a sentence; more are counted.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], most=2)
    ('a, b and c', 'a, b and 2 more')
    """
    if len(names) > most + 1:
        names = [*names[:most], f"{len(names) - most:,} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def shell_name(name: str) -> str:
    """A name as it is typed after an option."""
    return name if all(character.isalnum() or character in "_-.%+:/=@" for character in name) else f'"{name}"'
