"""A pass on Dask: the statistics of one process, to the last bit, also if a worker is killed."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from admiss.atomic_write import EngineError
from admiss.streaming import HashFolds, RowStatistics, accumulate, open_source
from admiss.tables.column import SourceError
from tests.admiss.streaming.parquet_rows import make_rows, write_rows

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

X, Y = make_rows()
EMPTY = RowStatistics("affine_intercept", tree_depth=None, folds=HashFolds(3))
PARTS = 24


def content(statistics: RowStatistics, folder: Path) -> bytes:
    statistics.save(folder / "content")
    return (folder / "content").read_bytes()


def part(number: int, log: str) -> pd.DataFrame:
    """Some rows, after a while, with a line in a log file."""
    with open(log, "a") as file:
        file.write(f"{number} {os.getpid()}\n")
    time.sleep(0.3)
    rows = np.array_split(np.arange(len(Y)), PARTS)[number]
    return pd.DataFrame({f"x{j}": X[rows, j] for j in range(X.shape[1])} | {"y": Y[rows]})


@pytest.fixture(scope="module")
def cluster() -> Any:
    quiet = {"dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(n_workers=4, threads_per_worker=1, memory_limit=0, **quiet) as found:
        yield found


@pytest.mark.slow
def test_workers_give_what_one_process_gives(tmp_path: Path, cluster: Any) -> None:
    source = open_source(write_rows(tmp_path / "rows", X, Y, 7), "y", drop=["id"])
    expected = content(accumulate(source, EMPTY), tmp_path)
    for workers in ({"workers": 1}, {"scheduler": cluster.scheduler_address}):
        found = accumulate(source, EMPTY, **workers)
        assert content(found, tmp_path) == expected


@pytest.mark.slow
def test_a_killed_worker_costs_its_chunk_only(tmp_path: Path, cluster: Any) -> None:
    log = tmp_path / "log"
    parts = [dask.delayed(part, pure=True)(number, str(log)) for number in range(PARTS)]
    source = open_source(parts, "y")
    log.unlink()

    def kill() -> None:
        while not log.exists() or len(log.read_text().splitlines()) < 10:
            time.sleep(0.02)
        os.kill(int(log.read_text().split()[-1]), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = accumulate(source, EMPTY, scheduler=cluster.scheduler_address)
    killer.join()
    computed = [int(line.split()[0]) for line in log.read_text().splitlines()]
    assert set(computed) == set(range(PARTS))
    assert PARTS < len(computed) <= PARTS + 2  # the chunk that it computed, and one that it had finished and not sent
    assert content(found, tmp_path) == content(accumulate(source, EMPTY), tmp_path)


@pytest.mark.slow
def test_dask_data_frames_and_errors_on_workers(tmp_path: Path, cluster: Any) -> None:
    import dask
    import dask.dataframe

    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(4)]).assign(y=Y)
    source = open_source(dask.dataframe.from_pandas(frame, npartitions=5), "y")
    found = accumulate(source, EMPTY, scheduler=cluster.scheduler_address)
    assert content(found, tmp_path) == content(accumulate(source, EMPTY), tmp_path)
    broken = [dask.delayed(frame[:1000]), dask.delayed(frame[1000:].drop(columns="x1"))]
    with pytest.raises(SourceError, match="x1"):
        accumulate(open_source(broken, "y"), EMPTY, scheduler=cluster.scheduler_address)
    with pytest.raises(EngineError, match="There is no Dask scheduler at tcp://127.0.0.1:1 "):
        accumulate(source, EMPTY, scheduler="tcp://127.0.0.1:1")
