"""Runs on Dask: a real scheduler with worker processes, and their failures."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from test_runs import PATIENCE, TOTAL, content, stored
from toy_study import MEANS, TOY, Numbers, dying, killing_parent

from admiss.study.plan import Cell, EngineError, Method
from admiss.study.run import run_cells
from admiss.study.store import Store

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

from admiss.study.dask_cluster import run_on_dask  # noqa: E402

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
LIMITS = {"seconds": 600, "gigabytes": 4}


class Cluster:
    """A scheduler and its workers as processes of their own."""

    def __init__(self, runs, folder):
        self.file = folder / "scheduler.json"
        self.environment = {**runs.environment, "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE)])}
        self.folder = folder
        self.processes = []

    def start(self, *arguments, folder=None, **environment):
        command = [sys.executable, "-m", "dask", *map(str, arguments), "--scheduler-file", str(self.file)]
        log = open(self.folder / f"log-{len(self.processes)}", "w")  # noqa: SIM115
        environment = {**self.environment, **environment}
        process = subprocess.Popen(command, cwd=folder or self.folder, env=environment, stdout=log, stderr=log)
        self.processes.append(process)
        return self.processes[-1]

    def scheduler(self):
        return self.start("scheduler", "--host", "127.0.0.1", "--port", 0, "--no-dashboard")

    def worker(self, *arguments, folder=None, **environment):
        options = ("--nthreads", 1, "--memory-limit", 0, "--no-dashboard", *arguments)
        return self.start("worker", *options, folder=folder, **environment)

    def wait_for_workers(self, count):
        with distributed.Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=PATIENCE)

    @property
    def address(self):
        return json.loads(self.file.read_text())["address"]

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(runs, wait_for, tmp_path):
    cluster = Cluster(runs, tmp_path)
    try:
        cluster.scheduler()
        assert wait_for(cluster.file.exists, seconds=PATIENCE)
        yield cluster
    finally:
        cluster.end()


def compute_on_dask(folder, cells, scheduler=None, workers=2):
    def runner(pending, finished):
        run_on_dask(pending, finished, workers=workers, scheduler=scheduler, **LIMITS)

    with Store(folder, "toy", write=True) as store:
        run_cells(store, cells, runner, scale="smoke", command="test")
    return stored(folder)


def parent(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_two_groups_of_workers_in_folders_of_their_own_one_of_which_joins_late(
    cluster, runs, wait_for, compute, tmp_path
):
    """As on two machines: folders that the other does not know, and a worker of the first is killed."""

    def group(name):
        (tmp_path / name / "local").mkdir(parents=True)
        options = ("--no-nanny", "--local-directory", tmp_path / name / "local")
        return [cluster.worker(*options, folder=tmp_path / name) for _ in range(2)]

    def parents():
        return {parent(row["pid"]) for row in stored(tmp_path / "dask").values()}

    first = group("first")
    cluster.wait_for_workers(2)
    process = runs.start("run", "toy", "--scale", "laptop", "--out", tmp_path / "dask", "--scheduler", cluster.address)
    assert wait_for(lambda: parents() >= {worker.pid for worker in first}, seconds=PATIENCE)
    for worker in first:  # the run waits until the others have joined
        worker.send_signal(signal.SIGSTOP)
    late = group("late")
    assert wait_for(lambda: parents() & {worker.pid for worker in late}, seconds=PATIENCE)
    before = stored(tmp_path / "dask")
    first[0].kill()
    first[1].send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert out.startswith(f"{TOTAL} of {TOTAL} cells done, 0 failed ({TOTAL} computed now)")
    after = stored(tmp_path / "dask")
    assert {key: after[key] for key in before} == before
    assert len({row["digest"] for row in after.values()}) == 1
    # The children have ended, with their worker or with the run.
    living = {cluster.processes[0].pid, first[1].pid, *(worker.pid for worker in late)}
    assert wait_for(lambda: set(runs.living()) == living)
    assert content(after) == content(compute(tmp_path / "local", list(TOY.cells("laptop")), workers=1))


@pytest.mark.slow
def test_a_local_cluster_gives_the_same_table_and_a_cell_that_kills_workers_is_a_failed_row(compute, tmp_path):
    methods = [*MEANS, Method("dying", dying), Method("lambda", lambda rows, seed: {})]
    cells = [Cell(Numbers(3, replicate), method) for replicate in range(3) for method in methods]
    killing = Cell(Numbers(3, 1), Method("killing", killing_parent))
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        rows = compute_on_dask(tmp_path / "dask", [*cells[:6], killing, *cells[6:]])
    row = rows.pop(killing.key)
    assert (row["status"], row["reason"]) == ("failed", "all Dask workers that computed it died (1)")
    assert content(rows) == content(compute(tmp_path / "local", cells))
    assert sum(row["status"] == "done" for row in rows.values()) == 9


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads memory in /proc")
def test_the_memory_of_the_coordinator_does_not_grow_with_the_cells_done():
    cells = [Cell(Numbers(3, replicate), method) for replicate in range(900) for method in MEANS]
    memory = []

    def finished(arrived):
        assert all(outcome.status == "done" for _, outcome in arrived)
        now = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        memory.extend([now] * len(arrived))

    run_on_dask(cells, finished, workers=2, **LIMITS)
    assert len(memory) == 2700
    assert memory[-1] - memory[700] < 8  # megabytes


@pytest.mark.slow
def test_ctrl_c_in_a_terminal_stops_the_local_cluster(runs, wait_for, tmp_path):
    arguments = ("run", "toy", "--scale", "laptop", "--out", str(tmp_path), "--workers", "1", "--dask")
    # A terminal interrupts all processes of a group.
    process = subprocess.Popen([sys.executable, str(HERE / "toy_command.py"), *arguments], env=runs.environment,
                               start_new_session=True, stderr=subprocess.PIPE, text=True)  # fmt: skip
    try:
        assert wait_for(lambda: len(stored(tmp_path)) > 3, seconds=PATIENCE)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    finished = len(stored(tmp_path))
    assert process.returncode == 130, err
    lines = [line for line in err.splitlines()[1:] if not line.startswith("toy cells ")]  # progress
    assert lines == [f"stopped with {finished} of {TOTAL} cells finished; the same command continues"]
    assert wait_for(lambda: not runs.living())


@pytest.mark.slow
def test_workers_without_the_sources_or_with_others_and_a_lost_scheduler_end_in_one_sentence(cluster, tmp_path, capfd):
    (tmp_path / "other" / "admiss").mkdir(parents=True)
    (tmp_path / "other" / "admiss" / "__init__.py").touch()
    cells = [Cell(Numbers(3, replicate), method) for replicate in range(30) for method in MEANS]
    heard, threads = [], set()

    def finished(arrived):
        threads.add(threading.get_ident())
        heard.extend((cell.key, outcome.status) for cell, outcome in arrived)
        if len(heard) >= 5:
            cluster.processes[0].kill()

    def run():
        run_on_dask(cells, finished, workers=1, scheduler=cluster.address, **LIMITS)

    stranger = cluster.worker("--no-nanny", PYTHONPATH=str(tmp_path / "other"))
    cluster.wait_for_workers(1)
    with pytest.raises(EngineError, match="find the sources .*: start the scheduler and the workers with PYTHONPATH"):
        run()
    stranger.kill()
    stranger.wait()
    for package in ("formulations", "admiss"):
        shutil.copytree(ROOT / package, tmp_path / "older" / package, ignore=shutil.ignore_patterns("__pycache__"))
    with open(tmp_path / "older" / "admiss" / "study" / "plan.py", "a") as source:
        source.write("def instance_seed(instance):\n    return 1\n")
    changed = "admiss.study changed"
    older = cluster.worker("--no-nanny", PYTHONPATH=os.pathsep.join([str(tmp_path / "older"), str(HERE)]))
    with pytest.raises(
        EngineError, match=rf"^A worker has other files or packages than this run \({changed}\): start the"
    ):
        run()
    assert heard == []
    older.kill()
    older.wait()
    cluster.worker("--no-nanny")
    capfd.readouterr()
    with pytest.raises(EngineError, match="^The Dask scheduler at tcp://.* was lost: the cells that were finished are"):
        run()
    assert 5 <= len(heard) < len(cells)
    assert len(set(heard)) == len(heard)
    assert threads == {threading.get_ident()}
    assert capfd.readouterr().err in ("", "waiting for Dask workers: there are none\n")


@pytest.mark.parametrize("address", ["", "nonsense", "nonsense:99999", "host:port", "tcp://", "nothing://127.0.0.1:1"])
def test_text_that_is_no_address_ends_in_one_sentence(address, capfd):
    with pytest.raises(
        EngineError, match=f"^'{address}' is not the address of a Dask scheduler: it has the form tcp://"
    ):
        run_on_dask([], print, workers=1, scheduler=address, **LIMITS)
    assert capfd.readouterr().err == ""


@pytest.fixture
def service():
    """Starts a service that answers every connection with some bytes, and returns its port."""
    with contextlib.ExitStack() as stack:

        def start(answer):
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def serve():
                with contextlib.suppress(OSError):
                    while True:
                        connection, _ = listening.accept()
                        stack.enter_context(connection).sendall(answer)

            threading.Thread(target=serve, daemon=True).start()
            return listening.getsockname()[1]

        yield start


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(None, "Connection refused"), (b"", "no answer after 0.5 s"), (b"HTTP/1.1 400 Bad", "something else answers")],
)
def test_an_address_without_a_scheduler_ends_in_one_sentence(service, answer, reason, capfd):
    address = f"tcp://127.0.0.1:{1 if answer is None else service(answer)}"
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "500ms"}),
        pytest.raises(EngineError, match=rf"^There is no Dask scheduler at {address} \({reason}\): check the address"),
    ):
        run_on_dask([], print, workers=1, scheduler=address, **LIMITS)
    assert capfd.readouterr().err == ""


def test_a_command_with_a_wrong_address_ends_soon_without_a_traceback(runs, tmp_path):
    start = time.monotonic()
    code, out, err = runs.finish("run", "toy", "--scheduler", "localhost:1", "--out", tmp_path)
    assert (code, out) == (2, "")
    assert [line.split(" ", 1)[0] for line in err.splitlines()] == ["toy", "error:"]
    assert time.monotonic() - start < 30  # with all imports, on a busy machine


def test_without_distributed_a_sentence_says_what_to_install(runs, tmp_path):
    (tmp_path / "distributed.py").write_text("raise ModuleNotFoundError('not here', name='distributed')")
    runs.environment["PYTHONPATH"] += os.pathsep + str(tmp_path)
    code, out, err = runs.finish("run", "toy", "--dask", "--out", tmp_path / "store")
    assert (code, out) == (2, "")
    assert err == "error: A run on Dask needs distributed: run pip install 'admiss[dask]'.\n"
