"""The study on generated data at its smallest scale, killed at ten random moments."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from admiss.study.store import Store
from experiments.studies.synthetic.grid import STUDY

ROOT = Path(__file__).parents[3]
# Seconds that a busy machine may need to compute some cells.
PATIENCE = 240.0


def start(folder):
    """Start a run."""
    command = f"-m experiments run {STUDY.name} --scale smoke --workers 2 --out".split()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *command, str(folder)], cwd=ROOT, **pipes)


def stored(folder):
    if not (folder / "cells.sqlite").exists():
        return {}
    with Store(folder, STUDY.name) as store:
        return {row["key"]: row for row in store.rows()}


def scores(rows):
    """All numbers but times."""
    return {
        key: (row["status"], row["seed"], {name: x for name, x in row["scores"].items() if "seconds" not in name})
        for key, row in rows.items()
    }


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes end differently")
def test_ten_kills_at_random_moments_lose_nothing_and_change_no_score(tmp_path):
    moments = random.Random(os.environ.get("ADMISS_KILLS", "1"))
    total, rows = len(list(STUDY.cells("smoke"))), {}
    for kill in range(10):
        process = start(tmp_path / "killed")
        enough = min(total, len(rows) + moments.randint(1, 12))
        deadline = time.monotonic() + (moments.uniform(0, 4) if kill % 4 == 2 else PATIENCE)  # some while it starts
        while len(stored(tmp_path / "killed")) < enough and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(moments.uniform(0, 0.3))
        process.kill()
        assert "Traceback" not in process.communicate()[1]
        before, rows = rows, stored(tmp_path / "killed")
        assert {key: rows[key] for key in before} == before  # finished cells were not computed again
        print(f"kill {kill}: {len(rows)} of {total} cells")
    computed_by_kills = len(rows)
    process = start(tmp_path / "killed")
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "warning" not in err
    assert re.match(rf"{total} of {total} cells done, 0 failed \({total - computed_by_kills} computed now\)", out)
    after = stored(tmp_path / "killed")
    assert {key: after[key] for key in rows} == rows
    process = start(tmp_path / "whole")
    process.communicate(timeout=PATIENCE)
    assert scores(after) == scores(stored(tmp_path / "whole"))
