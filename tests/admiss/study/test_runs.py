"""Runs in processes: workers, interruptions, retries, and the sentences of the commands."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toy_command import main
from toy_study import MEANS, TOY, Numbers, failing_while_marked, wrong

from admiss.study import run
from admiss.study.plan import Cell, EngineError, Method, Product
from admiss.study.pool import Schedule
from admiss.study.report.presentation import Presentation
from admiss.study.store import Store

# Seconds that a busy machine may need.
PATIENCE = 240.0
TOTAL = len(list(TOY.cells("laptop")))


def content(rows):
    """The parts of rows that must not depend on when and where cells were computed."""
    return {key: (row["instance"], row["method"], row["seed"], row["status"], row["reason"], row["scores"])
            for key, row in rows.items()}  # fmt: skip


def stored(folder):
    if not (Path(folder) / "cells.sqlite").exists():
        return {}
    with Store(folder, "toy") as store:
        return {row["key"]: row for row in store.rows()}


def cells_of(methods, replicates=3):
    return [Cell(Numbers(3, replicate), method) for replicate in range(replicates) for method in methods]


def test_the_same_table_on_one_and_three_workers_and_in_reverse(compute, tmp_path):
    cells = list(TOY.cells("smoke"))
    one = compute(tmp_path / "one", cells, workers=1)
    three = compute(tmp_path / "three", cells[::-1], workers=3)
    assert set(one) == {cell.key for cell in cells}
    assert content(one) == content(three)
    assert len({row["pid"] for row in one.values()}) == 1


@pytest.mark.slow
def test_runs_that_are_killed_and_resumed_give_the_store_of_an_uninterrupted_one(runs, wait_for, tmp_path):
    moments = random.Random(7)
    counts = []
    for kill in range(6):
        before = counts[-1] if counts else 0
        enough = min(TOTAL, before + (1 if kill % 2 else moments.randint(1, 12)))
        process = runs.start("run", "toy", "--scale", "laptop", "--out", tmp_path / "killed", "--workers", 2)
        if kill == 4:  # while it starts, or a little later
            time.sleep(moments.uniform(0.0, 1.0))
        else:  # when it computes, however long this machine takes to start it
            assert wait_for(lambda enough=enough: len(stored(tmp_path / "killed")) >= enough)
            time.sleep(moments.uniform(0.0, 0.2) if kill % 2 else 0.0)
        process.kill()
        process.communicate()
        counts.append(len(stored(tmp_path / "killed")))
    assert counts == sorted(counts)
    assert len({count for count in counts if 0 < count < TOTAL}) >= 3
    assert wait_for(lambda: not runs.living())
    code, out, _ = runs.finish("run", "toy", "--scale", "laptop", "--out", tmp_path / "killed", "--workers", 3)
    assert code == 0
    assert out.startswith(f"{TOTAL:,} of {TOTAL:,} cells done, 0 failed ({TOTAL - counts[-1]:,} computed now)")
    assert runs.finish("run", "toy", "--scale", "laptop", "--out", tmp_path / "whole", "--workers", 2)[0] == 0
    assert content(stored(tmp_path / "killed")) == content(stored(tmp_path / "whole"))
    assert wait_for(lambda: not runs.living())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends when the compiled code does")
def test_a_worker_dies_with_its_coordinator_in_the_middle_of_compiled_code(runs, wait_for, tmp_path):
    runs.environment["TOY_MARKER"] = str(tmp_path / "marker")
    process = runs.start("run", "toy", "--scale", "paper", "--out", tmp_path / "store")
    assert wait_for((tmp_path / "marker").exists)
    process.kill()
    process.communicate()
    assert wait_for(lambda: not runs.living())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_runs_end_cleanly_and_continue(runs, wait_for, tmp_path, number):
    process = runs.start("run", "toy", "--scale", "laptop", "--out", tmp_path, "--workers", 2)
    assert wait_for(lambda: len(stored(tmp_path)) > 3)
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    finished = len(stored(tmp_path))
    assert process.returncode == 130
    assert err.splitlines()[-1] == f"stopped with {finished} of {TOTAL} cells finished; the same command continues"
    assert wait_for(lambda: not runs.living())


def test_ctrl_c_reads_the_store_once(tmp_path, monkeypatch):
    reads = []
    states = Store.states

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_cells", interrupted)
    monkeypatch.setattr(Store, "states", lambda store: reads.append(store) or states(store))
    assert main(["run", "toy", "--scale", "laptop", "--out", tmp_path]) == 130
    assert len(reads) == 1


@pytest.mark.slow
def test_a_second_run_on_the_same_store_refuses_and_readers_do_not_wait(runs, wait_for, tmp_path):
    runs.environment["TOY_MARKER"] = str(tmp_path / "marker")
    first = runs.start("run", "toy", "--scale", "paper", "--out", tmp_path, "--workers", 1)
    assert wait_for((tmp_path / "marker").exists)  # it holds its last cell
    code, _, err = runs.finish("run", "toy", "--scale", "paper", "--out", tmp_path)
    assert code == 2
    assert err.startswith("error: Another run is writing to ")
    code, out, _ = runs.finish("status", "toy", "--out", tmp_path)
    assert code == 0
    assert "3 done, 0 failed, 1 pending, of 4 cells" in out
    assert first.poll() is None
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=PATIENCE)
    assert "paper in" in err.splitlines()[0]
    assert err.splitlines()[0].endswith(", 1 worker")
    assert [row["status"] for row in stored(tmp_path).values()] == ["done"] * 3


def test_a_folder_has_one_scale(compute, tmp_path):
    compute(tmp_path, cells_of(MEANS[:1]))
    with (
        Store(tmp_path, "toy", write=True) as store,
        pytest.raises(
            EngineError, match="holds cells of the scale smoke, not laptop: choose another folder with --out"
        ),
    ):
        run.run_cells(store, [], print, scale="laptop", command="test")


def test_done_cells_are_not_computed_again_and_failed_ones_on_request(compute, tmp_path):
    marker = tmp_path / "marker"
    marker.touch()
    cells = cells_of([MEANS[0], Method("marked", failing_while_marked, {"marker": str(marker)})])
    first = compute(tmp_path / "store", cells)
    assert [row["reason"] for row in first.values() if row["status"] == "failed"] == ["RuntimeError: marked"] * 3
    marker.unlink()
    assert compute(tmp_path / "store", cells) == first
    again = compute(tmp_path / "store", cells, retry=True)
    for key, row in again.items():
        assert (row == first[key]) if first[key]["status"] == "done" else (row["scores"]["score"] == 3.0)


def test_cells_of_an_earlier_version_are_reported_and_computed_again_on_request(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    run = ("run", "toy", "--out", tmp_path, "--workers", 2)
    assert main(run) == 0
    first = stored(tmp_path)
    old = sorted(first)[:4]
    with sqlite3.connect(tmp_path / "cells.sqlite") as connection:
        connection.executemany("UPDATE cells SET digest = 'older', pid = 1 WHERE key = ?", [(key,) for key in old])
    connection.close()
    assert main(["status", "toy", "--out", tmp_path]) == 0
    out = capsys.readouterr().out
    assert "4 of 25 cells are stale: run with --stale (in Python stale=True) to compute them again\n" in out
    assert out.endswith("  4 computed by a version that kept another record: what has changed is not known\n")
    for options, words in (((), "(0 computed now)"), (["--stale"], "(4 computed now)")):
        assert main([*run, *options]) == 0
        printed = capsys.readouterr()
        assert words in printed.out
        assert ("4 of 25 cells are stale" in printed.err) == (not options)
    second = stored(tmp_path)
    assert content(first) == content(second)
    assert {row["digest"] for row in second.values()} == {row["digest"] for row in first.values()}


def test_a_run_ends_with_the_best_methods_and_the_command_for_the_report(capsys, tmp_path):
    """The means and differences are those of numpy; the toy study has no reference, its first method is one."""
    assert main(["run", "toy", "--out", tmp_path, "--only", '"kind": "Numbers"']) == 0
    text = capsys.readouterr().out
    *_, head, first, second, third, last = text.splitlines()
    assert "up is best by its mean: score " in text
    assert head.split() == ["Method", "score", "Minus", "mean", "Better", "on"]
    assert last == f"report: toy report toy --out {tmp_path}"
    scores = {}
    for row in stored(tmp_path).values():
        instance = (row["instance"]["n"], row["instance"]["replicate"])
        scores.setdefault(row["method"]["name"], {})[instance] = row["scores"]["score"]
    # the choices among methods are rows too, with the score of the member that has the largest cv_score
    for line, name in ((first, "up"), (second, "best"), (third, "mean")):
        shown, mean, *words = line.split(maxsplit=2)
        values = scores["up" if name == "best" else name]
        assert (shown, mean) == (name, f"{np.mean(list(values.values())):.3f}")
        if name == "mean":
            assert words == ["reference"]
            continue
        gaps = [value - scores["mean"][instance] for instance, value in values.items()]
        assert words[0].startswith(f"{np.mean(gaps):+.3f} ")


def test_only_some_cells(capsys, tmp_path):
    assert main(["run", "toy", "--out", tmp_path, "--only", '"kind": "Words"']) == 0
    lines = capsys.readouterr().out.splitlines()  # one method has no rival
    assert lines == ["1 of 1 cells done, 0 failed (1 computed now)", f"report: toy report toy --out {tmp_path}"]
    assert main(["status", "toy", "--out", tmp_path]) == 0
    assert "24 pending, of 25 cells" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "toy", "--scale", "huge"), "Unknown scale 'huge' of toy: choose one of smoke, laptop, paper."),
        (("run", "toy", "--workers", "0"), "workers must be an integer of at least 1, not 0."),
        (("run", "toy", "--only", "zebra"), "toy has no cells that contain 'zebra' at scale smoke."),
        (("run", "toy", "--seconds", "inf"), "seconds must be a positive number of at most 1e+07, not inf."),
        (("run", "toy", "--seconds=-1"), "seconds must be a positive number of at most 1e+07, not -1."),
        (("run", "toy", "--gigabytes", "nan"), "gigabytes must be a positive number of at most 1e+07, not nan."),
        (("run", "toy", "--gigabytes", "1e12"), "gigabytes must be a positive number of at most 1e+07, not 1e+12."),
        (("run", "toy", "--dask", "--scheduler", "tcp://here:1"), "dask starts a cluster and scheduler names a "),
        (("run", "toy", "--out", "/proc/toy"), "The folder /proc/toy cannot be made "),
        (("status", "toy", "--out", "/nowhere"), "There is no store in /nowhere: "),
    ],
)
def test_mistakes_end_in_one_sentence(arguments, sentence, capsys):
    code = main(arguments)
    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert printed.err.startswith(f"error: {sentence}")
    assert len(printed.err.splitlines()) == 1


def broken(scale):
    raise KeyError("no such data")


def test_studies_that_cannot_list_their_cells_end_in_one_sentence(capsys, compute, tmp_path):
    studies = [
        TOY,
        replace(TOY, name="broken", products=broken),
        replace(TOY, name="empty", products=lambda scale: [Product([], MEANS)]),
    ]
    toys = {study.name: Presentation(study) for study in studies}
    sentence = "The cells of broken at scale smoke cannot be listed (KeyError: 'no such data')."
    assert main(["list"], toys) == 0
    listed = capsys.readouterr().out
    assert sentence in listed
    assert f"cells: smoke 25, laptop {TOTAL}, paper 4" in listed
    assert "cells: smoke 0, laptop 0, paper 0" in listed
    for name, words in (("broken", sentence), ("empty", "empty has no cells at scale smoke.")):
        assert main(["run", name, "--out", tmp_path / name], toys) == 2
        assert capsys.readouterr().err == f"error: {words}\n"
    compute(tmp_path, cells_of(MEANS[:1]))
    toys["toy"] = Presentation(replace(TOY, products=broken))
    assert main(["status", "toy", "--out", tmp_path], toys) == 2
    last = capsys.readouterr().err.splitlines()[-1]  # behind the progress of a slow machine
    assert last.startswith("error: The cells of toy at scale smoke cannot be listed (KeyError")


def test_a_store_of_an_unknown_scale_ends_in_one_sentence(capsys, compute, tmp_path):
    compute(tmp_path, cells_of(MEANS[:1]))
    with sqlite3.connect(tmp_path / "cells.sqlite") as connection:
        connection.execute("UPDATE runs SET scale = 'tiny'")
    connection.close()
    for command in (["status", "toy"], ["export", "toy", tmp_path / "table.csv"], ["report", "toy"]):
        assert main([*command, "--out", tmp_path]) == 2
        assert "was run at the scale 'tiny', which this version does not have" in capsys.readouterr().err


def test_failures_come_with_what_to_do(compute, tmp_path):
    cells = cells_of([Method("wrong", wrong)], replicates=1)
    compute(tmp_path, cells)
    with Store(tmp_path, "toy") as store:
        lines = run.summary(cells, store.states(), 1).splitlines()
    assert lines[1:] == [
        "  1 failed: ValueError: this is wrong",
        "The same command with --retry (in Python retry=True) computes failed cells again.",
    ]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_disk_that_is_full_ends_in_one_sentence(runs, tmp_path):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "toy", tmp_path], capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        code, _, err = runs.finish("run", "toy", "--scale", "laptop", "--out", tmp_path, "--workers", 2)
        assert code == 2
        assert err.splitlines()[-1].startswith(f"error: The disk of {tmp_path} is full, or the quota on it used up: ")
        assert len([line for line in err.splitlines() if not line.startswith("toy cells ")]) == 2
        assert not runs.living()
        assert 0 < len(stored(tmp_path)) < TOTAL
        subprocess.run(["mount", "-o", "remount,size=10m", tmp_path], check=True)
        code, out, _ = runs.finish("run", "toy", "--scale", "laptop", "--out", tmp_path, "--workers", 2)
        assert out.startswith(f"{TOTAL} of {TOTAL} cells done")
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_cells_of_an_instance_stay_together_until_workers_are_idle():
    schedule = Schedule(cells_of(MEANS, replicates=2))
    taken = [schedule.next(worker) for worker in (0, 1, 0, 2, 0, 1, 2)]
    assert [cell and cell.instance.replicate for cell in taken] == [0, 1, 0, 1, 0, 1, None]
