"""A pass over a source: the statistics of rows in memory, however it is interrupted and continued."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from admiss import AdaptiveRegressor, AdaptiveRegressorCV, FiniteRegressor
from admiss.partition import OptimalTree
from admiss.streaming import HashFolds, RowStatistics, SourceRows, accumulate, open_source
from admiss.streaming.one_pass import CheckpointError
from admiss.tables.column import SourceError
from admiss.tables.frames import Frame
from admiss.tables.parquet import RowGroup
from tests.admiss.streaming.parquet_rows import make_rows, write_rows

X, Y = make_rows()
EMPTY = RowStatistics("affine_intercept", tree_depth=None, folds=HashFolds(3, key="id"))


def content(statistics: RowStatistics, folder: Path) -> bytes:
    statistics.save(folder / "content")
    return (folder / "content").read_bytes()


def predictions(statistics: RowStatistics) -> Any:
    return AdaptiveRegressor(lam=0.1).fit_statistics(statistics).predict(pd.DataFrame(X, columns=list(names(4))))


def names(d: int) -> Iterator[str]:
    return (f"x{j}" for j in range(d))


@pytest.mark.parametrize("files", [1, 7, 100])
def test_files_give_what_rows_in_memory_give(tmp_path: Path, files: int) -> None:
    source = open_source(write_rows(tmp_path / "rows", X, Y, files), "y", key="id")
    found = accumulate(source, EMPTY)
    frame = pd.DataFrame(X, columns=list(names(4)))
    expected = RowStatistics.of(frame, Y, keys=np.arange(len(Y)), **EMPTY.get_params(deep=False))
    assert found.n_rows == expected.n_rows == len(Y)
    np.testing.assert_allclose(found.summary().mean, expected.summary().mean, rtol=1e-14)
    np.testing.assert_allclose(predictions(found), predictions(expected), rtol=0, atol=1e-10)
    search = AdaptiveRegressorCV("affine_intercept").fit_statistics(found)
    folds = HashFolds(3, key=np.arange(len(Y)))
    in_memory = AdaptiveRegressorCV("affine_intercept", cv=folds).fit(frame, Y)
    assert search.best_index_ == in_memory.best_index_
    np.testing.assert_allclose(search.predict(frame), in_memory.predict(frame), rtol=0, atol=1e-10)


def test_rows_without_a_target_are_left_out_and_the_others_keep_their_folds(tmp_path: Path) -> None:
    y = np.where(np.arange(len(Y)) % 5 == 0, np.nan, Y)
    folds = HashFolds(3)
    empty = RowStatistics("static", tree_depth=None, folds=folds)
    found = accumulate(open_source(X, y), empty)
    seen = ~np.isnan(y)
    fold = folds.of_places(np.arange(len(y)))
    assert found.n_rows == seen.sum()
    for f in range(3):
        assert found.summary(np.array([f])).n_rows == (seen & (fold == f)).sum()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), SourceError("0003.parquet, row group 2: bad.")])
def test_a_pass_continues_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    source = open_source(write_rows(tmp_path / "rows", X, Y, 7), "y", key="id")
    read, original = [], RowGroup.batches

    def batches(self: RowGroup, columns: Any = ()) -> Any:
        if len(read) == 17:
            raise error
        read.append(self.name)
        return original(self, columns)

    monkeypatch.setattr(RowGroup, "batches", batches)
    words = r"row group 2: bad; the 17 chunks before it are in .*kept, where the same call continues\.$"
    with pytest.raises(type(error), match=words if str(error) else "^$"):
        accumulate(source, EMPTY, checkpoint=tmp_path / "kept")
    monkeypatch.setattr(RowGroup, "batches", lambda self, columns=(): read.append(self.name) or original(self, columns))
    found = accumulate(source, EMPTY, checkpoint=tmp_path / "kept")
    assert read == [chunk.name for chunk in source.chunks()]
    monkeypatch.setattr(RowGroup, "batches", None)  # nothing is read again
    complete = accumulate(source, EMPTY, checkpoint=tmp_path / "kept")
    monkeypatch.setattr(RowGroup, "batches", original)
    assert content(found, tmp_path) == content(complete, tmp_path) == content(accumulate(source, EMPTY), tmp_path)
    assert len(list((tmp_path / "kept").glob("statistics-*"))) == 1


@pytest.mark.parametrize("failing", ["statistics", "progress"])
def test_a_full_disk_costs_no_finished_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    source = open_source(write_rows(tmp_path / "rows", X, Y, 3), "y", key="id")
    monkeypatch.setattr("admiss.streaming.one_pass.SAVE_SECONDS", 0.0)
    saves = []

    def full(*_: Any) -> None:
        saves.append(1)
        if len(saves) > 5:
            raise OSError(errno.ENOSPC, "No space left on device")

    module = "admiss.statistics.saved" if failing == "statistics" else "admiss.streaming.one_pass"
    write = __import__(module, fromlist=["x"]).write_atomically
    monkeypatch.setattr(f"{module}.write_atomically", lambda *a: full() or write(*a))
    with pytest.raises(OSError, match="No space left"):
        accumulate(source, EMPTY, checkpoint=tmp_path / "kept")
    assert len(json.loads((tmp_path / "kept" / "progress.json").read_text())["chunks"]) == 5
    assert len(list((tmp_path / "kept").glob("statistics-*"))) == 1
    monkeypatch.undo()
    found = accumulate(source, EMPTY, checkpoint=tmp_path / "kept")
    assert content(found, tmp_path) == content(accumulate(source, EMPTY), tmp_path)


def test_other_rows_settings_or_a_damaged_file_are_refused(tmp_path: Path) -> None:
    folder, kept = write_rows(tmp_path / "rows", X, Y, 3), tmp_path / "kept"

    def run(empty: RowStatistics = EMPTY) -> RowStatistics:
        return accumulate(open_source(folder, "y", key="id"), empty, checkpoint=kept)

    run()
    file = next(kept.glob("statistics-*"))
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    with pytest.raises(ValueError, match="damaged"):
        run()
    file.write_bytes(whole)
    with pytest.raises(CheckpointError, match="other settings or columns"):
        run(RowStatistics("static", tree_depth=None, folds=HashFolds(3, key="id")))
    write_rows(tmp_path / "more", X[:50], Y[:50], 1)
    os.replace(tmp_path / "more" / "0000.parquet", folder / "0009.parquet")
    with pytest.raises(CheckpointError, match="0009.parquet, row group 0 is new since the pass was complete"):
        run()
    (folder / "0009.parquet").unlink()
    pq.write_table(pq.read_table(folder / "0001.parquet"), folder / "0001.parquet")
    with pytest.raises(CheckpointError, match="0001.parquet, row group 0 has changed since it was finished: delete"):
        run()
    (folder / "0002.parquet").unlink()
    (folder / "0001.parquet").unlink()
    with pytest.raises(CheckpointError, match="The source has 10 chunks, and 30 were finished"):
        run()
    (kept / "progress.json").write_text("{")
    with pytest.raises(CheckpointError, match="not the progress of a pass"):
        run()


def test_two_passes_do_not_share_a_checkpoint(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "rows", X, Y, 1)

    def frames() -> Iterator[Any]:
        for group in range(2):
            if group:
                with pytest.raises(CheckpointError, match="Another run is writing"):
                    accumulate(open_source(folder, schema=schema), EMPTY, checkpoint=tmp_path / "kept")
            yield pq.ParquetFile(folder / "0000.parquet").read_row_group(group)

    schema = open_source(folder, "y", key="id").schema
    source = open_source(frames, schema=schema)
    assert accumulate(source, EMPTY, checkpoint=tmp_path / "kept").n_rows == 140


def test_infinite_values_are_missing(tmp_path: Path) -> None:
    """As they are in memory; those of arrays are refused, as estimators refuse them."""
    last = np.arange(2000)[:, None] == 1999
    found = []
    for name, value in (("infinite", -np.inf), ("missing", np.nan)):
        folder = write_rows(tmp_path / name, np.where(last, value, X), Y, 3)
        found.append(accumulate(open_source(folder, "y", key="id"), EMPTY).summary())
    np.testing.assert_array_equal(found[0].n_observed, found[1].n_observed)
    assert found[0].n_rows == found[1].n_rows == 2000
    with pytest.raises(SourceError, match=r"^rows 0 to 1,999: column x0, x1, x2, x3 contains infinity"):
        accumulate(open_source(np.where(last, np.inf, X), Y), RowStatistics("static", tree_depth=None))


def test_sources_without_a_target(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "rows", X, Y, 3)
    with pytest.raises(SourceError, match="no target: name the column"):
        accumulate(open_source(folder, key="id"), EMPTY)
    with pytest.raises(SourceError, match="no rows with a target"):
        accumulate(open_source(X, np.full(len(Y), np.nan)), RowStatistics("static", tree_depth=None))


def test_rows_are_read_again_to_settle_leaves_that_sums_cannot_prove(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(600, 3))
    Z[:, 1] = Z[:, 0] + 1e-5 * rng.normal(size=600)
    y = 1e5 * (Z[:, 1] - Z[:, 0]) + Z[:, 2] + rng.normal(size=600)
    Z[rng.random(600) < 0.3, 2] = np.nan
    source = open_source(write_rows(tmp_path / "rows", Z, y, 2), "y", drop=["id"])
    statistics = accumulate(source, RowStatistics([], tree_depth=1))
    model = FiniteRegressor(OptimalTree(max_depth=1), ridge=1e-12)
    with pytest.warns(UserWarning, match="ill-conditioned"):
        assert model.fit_statistics(statistics).certificate_.status != "optimal"
    model.fit_statistics(statistics, settle=SourceRows(source))
    frame = pd.DataFrame(Z, columns=list(names(3)))
    memory = FiniteRegressor(OptimalTree(max_depth=1), ridge=1e-12).fit(frame, y)
    assert model.certificate_.status == memory.certificate_.status == "optimal"
    np.testing.assert_allclose(model.certificate_.objective, memory.certificate_.objective, rtol=1e-9)


SLOW_PASS = """
import sys, time
from admiss.streaming import HashFolds, RowStatistics, accumulate, open_source
from admiss.tables.frames import Frame
from admiss.tables.parquet import RowGroup
import admiss.streaming.one_pass as one_pass
one_pass.SAVE_SECONDS = 0.0
original = RowGroup.batches
def batches(self, columns=()):
    print(self.name, flush=True)
    time.sleep(0.02)
    return original(self, columns)
RowGroup.batches = batches
empty = RowStatistics("affine_intercept", tree_depth=None, folds=HashFolds(3, key="id"))
accumulate(open_source(sys.argv[1], "y", key="id"), empty, checkpoint=sys.argv[2]).save(sys.argv[3])
"""


@pytest.mark.slow
def test_a_killed_process_costs_its_chunk_only(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "rows", X, Y, 7)
    arguments = [sys.executable, "-c", SLOW_PASS, str(folder), str(tmp_path / "kept"), str(tmp_path / "result")]
    read: list[str] = []
    kills = 0
    while not (tmp_path / "result").exists():
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        if kills < 3:
            read += [process.stdout.readline() for _ in range(8)]
            time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            kills += 1
        read += process.stdout.readlines()
        assert process.wait() == (0 if (tmp_path / "result").exists() else -signal.SIGKILL)
    source = open_source(folder, "y", key="id")
    assert (tmp_path / "result").read_bytes() == content(accumulate(source, EMPTY), tmp_path)
    assert set(map(str.strip, read)) == {chunk.name for chunk in source.chunks()}
    assert len(read) <= (source.size or 0) + kills


def test_an_interrupt_in_a_digest_counts_no_chunk_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [pd.DataFrame({"x": np.arange(10.0) + k, "y": np.arange(10.0)}) for k in range(4)]
    empty, digest, calls = RowStatistics("static", tree_depth=None), Frame.digest, []

    def interrupted(chunk: Any) -> str:
        calls.append(chunk)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return str(digest.__get__(chunk))

    monkeypatch.setattr(Frame, "digest", property(interrupted))
    with pytest.raises(KeyboardInterrupt):
        accumulate(open_source(frames, "y"), empty, checkpoint=tmp_path / "kept")
    assert accumulate(open_source(frames, "y"), empty, checkpoint=tmp_path / "kept").n_rows == 40


def test_the_key_of_the_folds_is_that_of_the_source() -> None:
    frames = [pd.DataFrame({"x": np.arange(10.0), "k": np.arange(10), "y": np.arange(10.0)})]
    with pytest.raises(SourceError, match="The key of the source is 'k', and that of the folds 'j'"):
        accumulate(open_source(frames, "y", key="k"), RowStatistics("static", folds=HashFolds(2, key="j")))
