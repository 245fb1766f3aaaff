"""Generated files of any kind: the columns that were written are found, or one sentence says why not.

Numbers are written in some notation, dates in some format, text with blanks and missing words around it; the file has
some encoding, separator, quotation and end of line. Damage (a cut file, bytes changed, a cell too many, a name twice)
ends in a table or in one sentence.
"""

import csv
import datetime as dt
import io

import numpy as np
import pytest

from admiss.tables import MISSING_WORDS, read_table

NOTATIONS = {
    "plain": str,
    "comma": lambda value: str(value).replace(".", ","),
    "american": lambda value: f"{value:,.3f}",
    "european": lambda value: f"{value:,.3f}".translate(str.maketrans(",.", ".,")),
    "percent": lambda value: f"{value:.3f} %",
}
FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d %b %Y", "%Y-%m-%dT00:00:00Z")
NAMES = ("a", "größe", "two words", "x;z", "x,z", 'quote "q"', "=1+1", "ID", "-z", "naïve", "列", "a|b", "tab\tname")


def columns_of(rng, n):
    """Texts by name, and the features they should become (None if that is left open)."""
    texts, features = {"y": [repr(float(v)) for v in rng.normal(size=n).round(6)]}, {}
    for name in rng.permutation(NAMES)[: rng.integers(1, 7)]:
        name = " ".join(str(name).split())
        kind = rng.choice(["numbers", "dates", "text", "id", "constant", "noise"])
        if kind == "numbers":
            values = (rng.normal(size=n) * 10.0 ** rng.integers(0, 6)).round(3)
            values[:2] = 1234.5, 0.125
            write = NOTATIONS[rng.choice(list(NOTATIONS))]
            texts[name] = [write(float(v)) for v in values]
            features[name] = values
        elif kind == "dates":
            days = rng.integers(0, 9000, n)
            days[0] = 300  # a day after the 12th: 1970-10-28
            form = str(rng.choice(FORMATS))
            texts[name] = [(dt.date(1970, 1, 1) + dt.timedelta(days=int(day))).strftime(form) for day in days]
            features[name] = days.astype(float)
        elif kind == "text":
            levels = rng.permutation(["north", "south east", "ümlaut", 'with "q"', "a;b", "a,b", "line\nbreak"])
            texts[name] = [str(level) for level in rng.choice(levels[: rng.integers(2, 7)], n)]
            features[name] = None
        elif kind == "id":
            texts[name] = [f"K{k}" for k in rng.permutation(n)]
        elif kind == "constant":
            texts[name] = ["7"] * n
        else:
            texts[name] = [
                str(rng.choice(["1", "x", "?", "2020-01-01", "1,5", "inf", " ", "1e999", "1e-320"])) for _ in range(n)
            ]
            features[name] = None
    return texts, features


def hide(rng, texts, features):
    """Replace some cells by words for a missing value, and add blanks."""
    for name, cells in texts.items():
        if name == "y":
            continue
        hidden = rng.random(len(cells)) < rng.choice([0.0, 0.3])
        words = rng.choice([*MISSING_WORDS, " na ", "  "], len(cells))
        texts[name] = [str(word) if gone else cell + " " for cell, word, gone in zip(cells, words, hidden, strict=True)]
        if features.get(name) is not None:
            features[name] = np.where(hidden, np.nan, features[name])


def as_bytes(rng, texts):
    """A CSV file in some encoding and dialect."""
    out = io.StringIO(newline="")
    separator, end = str(rng.choice([",", ";", "\t", "|"])), str(rng.choice(["\n", "\r\n"]))
    quoting = int(rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    writer = csv.writer(out, delimiter=separator, lineterminator=end, quoting=quoting)
    writer.writerow(texts)
    writer.writerows(zip(*texts.values(), strict=True))
    return out.getvalue().encode(str(rng.choice(["utf-8", "utf-8-sig", "utf-16"])))


def damaged(rng, content):
    """The content after one accident."""
    place = int(rng.integers(0, len(content)))
    lines = content.split(b"\n")
    line = int(rng.integers(0, len(lines)))
    return [
        content[:place],
        content[:place] + bytes(rng.integers(0, 256, 5).tolist()) + content[place:],
        content[:place] + b'"' + content[place:],
        b"\n".join([*lines[:line], lines[line] + b",1,2", *lines[line + 1 :]]),
        b"\n".join([*lines[:line], lines[line][: len(lines[line]) // 2], *lines[line + 1 :]]),
        content.replace(b"y", b"a", 1),
        content + content,
        b"\n" * 3 + content,
        content.decode("utf-8", errors="ignore").encode("latin-1", errors="ignore"),
    ][int(rng.integers(0, 9))]


def check(table):
    """Whatever was read is a table."""
    assert table.X.shape == (len(table.y), len(table.names))
    assert table.X.shape[1] > 0
    assert not np.isinf(table.X).any()
    assert len(set(table.names)) == len(table.names)
    assert len(set(table.y.tolist())) > 1
    assert (table.y.dtype.kind == "f") == (table.task == "regression")
    assert all("\n" not in text and text.endswith(".") for text in table.notes)


def one_file(seed, path):
    """Write a file, read it, and read it after an accident."""
    rng = np.random.default_rng(seed)
    texts, features = columns_of(rng, int(rng.integers(30, 80)))
    hide(rng, texts, features)
    content = as_bytes(rng, texts)
    path.write_bytes(content)
    try:
        table = read_table(path, "y")
    except ValueError as error:
        assert "has no features" in str(error)  # noqa: PT017
        assert not any(values is not None for values in features.values())
    else:
        check(table)
        np.testing.assert_array_equal(table.y, [float(text) for text in texts["y"]])
        for name, values in features.items():
            if values is not None:
                found = table.X[:, table.names.index(name)]
                np.testing.assert_allclose(found - np.nanmin(found), values - np.nanmin(values), rtol=1e-9, atol=1e-9)
    path.write_bytes(damaged(rng, content))
    try:
        check(read_table(path, "y", task=str(rng.choice(["auto", "regression"]))))
    except ValueError as error:
        assert "\n" not in str(error)  # noqa: PT017
        assert str(error).endswith((".", "?"))  # noqa: PT017


@pytest.mark.parametrize("seed", range(100))
def test_any_file(seed, here):
    one_file(seed, here / "t.csv")


@pytest.mark.slow
def test_many_files(here):
    for seed in range(100, 2000):
        one_file(seed, here / "t.csv")
