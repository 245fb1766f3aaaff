"""The store and its problems, its table, and its files."""

import errno
import json
import os
import signal
import sqlite3
import subprocess
from dataclasses import replace

import polars as pl
import pyarrow.parquet as pq
import pytest
from toy_study import BEST, MEANS, TOY, Numbers, strange_text, wrong

from admiss.folder_lock import as_engine_error
from admiss.study.export import write_table
from admiss.study.plan import Best, Cell, EngineError, Method, Outcome, Product
from admiss.study.store import Store
from admiss.study.table import best_rows, read_table

ORIGIN = {"version": "1", "machine": "here"}


def done(**scores):
    return Outcome("done", scores=scores, elapsed=1.0, origin=ORIGIN, pid=1)


def fill(folder, count):
    cells = [Cell(Numbers(3, replicate), MEANS[0]) for replicate in range(count)]
    with Store(folder, "toy", write=True) as store:
        for cell in cells:
            store.add(cell, done(score=cell.seed / 3, seconds=0.1, mu=[0.1, None]))
    return cells


def test_numbers_come_back_exactly(tmp_path):
    cells = fill(tmp_path, 20)
    with Store(tmp_path, "toy") as store:
        rows = {row["key"]: row for row in store.rows()}
    for cell in cells:
        row = rows[cell.key]
        assert row["scores"] == {"score": cell.seed / 3, "seconds": 0.1, "mu": [0.1, None]}
        assert {"instance": row["instance"], "method": row["method"]} == cell.recipe
        assert row["seed"] == cell.seed


def test_a_full_disk_keeps_what_was_written(tmp_path):
    fill(tmp_path, 10)
    written = 0
    with Store(tmp_path, "toy", write=True) as store:
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        sentence = "^The disk of .* is full, or the quota .*: the cells that were finished are safe"
        with pytest.raises(EngineError, match=sentence):  # noqa: PT012
            for replicate in range(10, 500):
                store.add(Cell(Numbers(3, replicate), MEANS[0]), done(score=1.0))
                written += 1
    assert written > 0
    with Store(tmp_path, "toy", write=True) as store:
        assert len(store.states()) == 10 + written
        store.add(Cell(Numbers(3, 999), MEANS[0]), done(score=1.0))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    fill(folder, 100)
    return (folder / "cells.sqlite").read_bytes()


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("size", [0, 10, 100, 5000, 0.5, 0.9])
def test_a_truncated_store_is_refused_and_left_alone(tmp_path, whole, size, write):
    path = tmp_path / "cells.sqlite"
    rest = whole[: int(size * len(whole)) if size < 1 else size]
    path.write_bytes(rest)
    sentence = "is truncated, damaged or not a store of cells .* move it away together with cells.sqlite-wal and .*-shm"
    with pytest.raises(EngineError, match=sentence):
        Store(tmp_path, "toy", write=write)
    assert path.read_bytes() == rest


@pytest.mark.parametrize("ending", ["wal", "shm"])
def test_what_a_missing_store_has_left_is_not_taken_into_a_new_one(tmp_path, ending):
    with Store(tmp_path, "toy", write=True) as store:
        store.add(Cell(Numbers(3, 0), MEANS[0]), done(score=1.0))
        remains = (tmp_path / f"cells.sqlite-{ending}").read_bytes()
    (tmp_path / "cells.sqlite").unlink()
    (tmp_path / f"cells.sqlite-{ending}").write_bytes(remains)
    for write in (False, True):
        with pytest.raises(EngineError, match=f"cells.sqlite is missing, but .*cells.sqlite-{ending} may hold cells"):
            Store(tmp_path, "toy", write=write)
    assert (tmp_path / f"cells.sqlite-{ending}").read_bytes() == remains
    (tmp_path / f"cells.sqlite-{ending}").unlink()
    with Store(tmp_path, "toy", write=True) as store:
        assert store.rows() == []


@pytest.fixture
def read_only(tmp_path):
    """Makes a folder read-only: by its rights, or for root, whom rights do not bind, by a mount."""
    folder = tmp_path / "store"
    mounted = []

    def make():
        if os.geteuid():
            folder.chmod(0o555)
            return
        if subprocess.run(["mount", "--bind", folder, folder], capture_output=True).returncode:
            pytest.skip("root is not bound by rights, and cannot mount here")
        mounted.append(folder)
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)

    try:
        yield folder, make
    finally:
        for mount in mounted:
            subprocess.run(["umount", mount], check=True)
        folder.chmod(0o755)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have other rights")
def test_a_store_in_a_folder_that_cannot_be_written_can_be_read(read_only):
    folder, make_read_only = read_only
    cells = fill(folder, 5)
    make_read_only()
    with pytest.raises(OSError, match="Permission|Read-only"):
        (folder / "new").touch()
    with Store(folder, "toy") as store:
        assert set(store.states()) == {cell.key for cell in cells}
    with pytest.raises(EngineError, match="cannot be opened or written"):
        Store(folder, "toy", write=True)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_reported_as_such(tmp_path, number):
    sentence = "is full, or the quota on it used up: the cells that were finished are safe"
    with pytest.raises(EngineError, match=sentence), as_engine_error(tmp_path / "cells.sqlite"):
        raise OSError(number, "no room")


def test_an_error_of_the_disk_names_the_quota(tmp_path):
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_WRITE"
    sentence = "the quota may be used up, or the disk fails"
    with pytest.raises(EngineError, match=sentence), as_engine_error(tmp_path / "cells.sqlite"):
        raise error


def test_text_that_cannot_be_encoded_is_spelled_out(compute, tmp_path):
    methods = [Method(f"strange {fail}", strange_text, {"fail": fail}) for fail in (False, True)]
    cells = [Cell(Numbers(3, 0), method) for method in methods]
    rows = compute(tmp_path, cells)
    name = "file \\udcff.csv"
    good, bad = (rows[cell.key] for cell in cells)
    assert (good["status"], good["scores"]["name"], good["scores"]["names"]) == ("done", name, {name: [name]})
    assert (bad["status"], bad["reason"]) == ("failed", f"ValueError: {name}")
    assert name in bad["details"]
    study = replace(TOY, products=lambda scale: [Product([Numbers(3, 0)], methods)])
    with Store(tmp_path) as store:
        assert set(read_table(store, study)["name"]) == {name, None}
    with Store(tmp_path, "toy", write=True) as store:  # names of folders in a command
        store.add_run("run --out \udcff", "smoke")
        assert store.runs()[-1]["command"] == "run --out \\udcff"


def test_another_file_is_refused(tmp_path):
    (tmp_path / "cells.sqlite").write_text("not a database, but a text that is long enough to be one" * 100)
    with pytest.raises(EngineError, match="not a store of cells"):
        Store(tmp_path, "toy", write=True)
    (tmp_path / "cells.sqlite").unlink()
    with sqlite3.connect(tmp_path / "cells.sqlite") as connection:
        connection.execute("CREATE TABLE birds (name TEXT)")
    connection.close()
    with pytest.raises(EngineError, match="is not a store of cells"):
        Store(tmp_path, "toy", write=True)


@pytest.mark.parametrize("text", [b'{"score": 0.5', b"[1]", b'{"score": "\xff"}'])
@pytest.mark.parametrize("column", ["instance", "method", "scores"])
def test_text_that_has_changed_on_the_disk_is_damage(tmp_path, text, column):
    fill(tmp_path, 2)
    with sqlite3.connect(tmp_path / "cells.sqlite") as connection:
        connection.execute(f"UPDATE cells SET {column} = CAST(? AS TEXT)", (text,))
    connection.close()
    with Store(tmp_path, "toy") as store, pytest.raises(EngineError, match="damaged or not a store|cannot be used"):
        store.rows()


@pytest.mark.parametrize(("layout", "age"), [("0", "an older"), ("2", "a newer")])
def test_a_store_of_another_version_is_refused(tmp_path, layout, age):
    fill(tmp_path, 2)
    with sqlite3.connect(tmp_path / "cells.sqlite") as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'layout'", (layout,))
    connection.close()
    for write in (False, True):
        with pytest.raises(EngineError, match=f"was written by {age} version of this program"):
            Store(tmp_path, "toy", write=write)


def test_the_store_of_another_study_is_refused(tmp_path):
    fill(tmp_path, 2)
    with pytest.raises(EngineError, match="holds the study 'toy', not 'synthetic'"):
        Store(tmp_path, "synthetic", write=True)


def test_two_writers_and_a_reader(tmp_path):
    fill(tmp_path, 2)
    with Store(tmp_path, "toy", write=True) as first:
        with pytest.raises(EngineError, match="Another run is writing"):
            Store(tmp_path, "toy", write=True)
        with Store(tmp_path, "toy") as reader:
            first.add(Cell(Numbers(3, 5), MEANS[0]), done(score=1.0))
            assert len(reader.states()) == 3
    Store(tmp_path, "toy", write=True).close()


def test_remains_of_a_creation_that_was_killed_do_not_matter(tmp_path):
    for ending in ("", "-wal", "-shm", "-journal"):
        (tmp_path / f"cells.sqlite.new{ending}").write_text("half")
    assert len(fill(tmp_path, 2)) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cells.sqlite", "lock.sqlite"]


def write(folder, first, last, *, killed=False):
    """Write cells in a process that is killed or ends."""
    child = os.fork()
    if child == 0:
        try:
            with Store(folder, "toy", write=True) as store:
                store.add_run("test", "smoke")
                for replicate in range(first, last):
                    store.add(Cell(Numbers(3, replicate), MEANS[0]), done(score=1.0))
                if killed:
                    os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (-signal.SIGKILL if killed else 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process cannot be copied")
@pytest.mark.parametrize("count", [3, 700])
def test_a_store_whose_log_was_deleted_after_a_kill_is_whole(tmp_path, count):
    write(tmp_path, 0, count, killed=True)
    for ending in ("wal", "shm"):
        (tmp_path / f"cells.sqlite-{ending}").unlink()
    for more in (0, 1):
        with Store(tmp_path, "toy") as store:
            assert len(store.states()) == count + more
        write(tmp_path, count + more, count + more + 1)


def row(name, status="done", **scores):
    return {"key": name, "instance": {"kind": "Numbers", "n": 3}, "method": {"name": name, "parameters": {}},
            "status": status, "reason": None if status == "done" else "why", "scores": scores, "elapsed": 2.0,
            "finished": "2026", "digest": "abc", **ORIGIN}  # fmt: skip


def test_best_is_the_member_with_the_largest_cv_score_and_all_their_seconds():
    rows = [row("a", cv_score=0.5, score=0.1, seconds=1.0), row("b", cv_score=0.7, score=0.2, seconds=2.0),
            row("c", cv_score=0.7, score=0.3, seconds=4.0)]  # fmt: skip
    (best,) = best_rows(rows, [Best("best", ("a", "b", "c"))])
    assert best["key"] is None
    assert best["scores"] == {"cv_score": 0.7, "score": 0.2, "seconds": 7.0, "chosen_method": "b"}
    (best,) = best_rows(rows, [Best("best", ("c", "b"))])
    assert best["scores"]["chosen_method"] == "c"
    assert best_rows(rows[:2], [Best("best", ("a", "b", "c"))]) == []


def test_seconds_that_members_share_count_once():
    rows = [row(name, cv_score=0.5, score=0.1, seconds=1.0, shared_seconds=0.25) for name in "abc"]
    (best,) = best_rows(rows, [Best("best", ("a", "b", "c"))])
    assert best["scores"]["seconds"] == 3.0 - 2 * 0.25


def test_best_has_the_origins_of_all_members():
    rows = [row("a", cv_score=0.5), {**row("b", cv_score=0.7), "digest": "def"}, row("c", cv_score=0.1)]
    (best,) = best_rows(rows, [Best("best", ("a", "b", "c"))])
    assert (best["digest"], best["version"], best["machine"]) == ("abc + def", "1", "here")


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (row("b", "failed"), "b failed: why"),
        (row("b", score=1.0, seconds=1.0), "b has no cv_score"),
    ],
)
def test_best_fails_with_its_members(second, reason):
    (best,) = best_rows([row("a", cv_score=0.5, score=0.1, seconds=1.0), second], [Best("best", ("a", "b"))])
    assert (best["status"], best["reason"], best["scores"]) == ("failed", reason, {})


def test_the_table_and_its_files(compute, tmp_path):
    cells = [*TOY.cells("smoke"), Cell(Numbers(9, 9), MEANS[0])]
    compute(tmp_path, cells)
    with Store(tmp_path) as store:
        table = read_table(store, TOY)
    assert table.height == 25 + 8 * len(BEST)  # without the cell that is not in the grid
    for (n, replicate), own in table.filter(pl.col("kind") == "Numbers").group_by(["n", "replicate"]):
        scores = {record["method"]: record for record in own.iter_rows(named=True)}
        assert set(scores) == {"mean", "up", "down", "best", "lower"}
        # cv_score is the first number after the shift, and the shift of the mean is that of the numbers
        assert scores["best"]["score"] == scores["up"]["score"]
        assert scores["best"]["chosen_method"] == "up"
        assert scores["lower"]["score"] == scores["mean"]["score"]
        assert scores["best"]["seconds"] == 0.75
        assert scores["mean"]["cv_score"] == Numbers(n, replicate).make()[0]
    words = table.filter(pl.col("kind") == "Words").row(0, named=True)
    assert (words["letter"], words["n"], words["depth"]) == ("a", None, 2)
    assert table["mu"].dtype == pl.String
    assert json.loads(words["mu"]) == [97.0, 1.0]
    assert table["n"].dtype == pl.Int64

    with Store(tmp_path, "toy") as store:
        for name in ("table.parquet", "table.csv"):
            assert write_table(store, TOY, tmp_path / name) == table.height
        with pytest.raises(EngineError, match="must end in .parquet or .csv"):
            write_table(store, TOY, tmp_path / "table.xlsx")
        with pytest.raises(EngineError, match="The table cannot be written to .*: name another file"):
            write_table(store, TOY, tmp_path / "table.csv" / "table.csv")
    assert pl.read_parquet(tmp_path / "table.parquet").equals(table)
    assert pl.read_csv(tmp_path / "table.csv")["score"].equals(table["score"])
    metadata = pq.read_schema(tmp_path / "table.parquet").metadata
    facts = {key.decode()[7:]: json.loads(value) for key, value in metadata.items() if key.startswith(b"admiss.")}
    assert facts == json.loads((tmp_path / "table.csv.json").read_text())
    assert [count for _, count in facts["digests"]] == [25]
    assert facts["stale"] == 0
    assert (facts["scale"], facts["command"], facts["done"], facts["pending"]) == ("smoke", ["test"], 25, 0)
    assert {"python", "numpy", "highspy"} <= set(facts["versions"])


def test_failed_cells_are_rows_without_numbers(compute, tmp_path):
    methods = [*MEANS[:2], Method("down", wrong)]
    study = replace(TOY, products=lambda scale: [Product([Numbers(3, 0)], methods)])
    compute(tmp_path, list(study.cells("smoke")))
    with Store(tmp_path) as store:
        table = read_table(store, study)
    failed = {record["method"]: record for record in table.filter(pl.col("status") == "failed").iter_rows(named=True)}
    assert failed["down"]["reason"] == "ValueError: this is wrong"
    assert failed["best"]["reason"] == "down failed: ValueError: this is wrong"
    assert failed["down"]["score"] is failed["best"]["score"] is failed["best"]["seconds"] is None
