"""Run odd inputs in a process of their own, which is killed if one takes too long.

Compiled code may ignore signals, and a solver may end the process: the parent waits for each answer, ends the process
after the limit, starts another, and reports the input as failed.
"""

import faulthandler
import multiprocessing
import signal
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Self

LIMIT = 60.0  # seconds of one input
START_LIMIT = 600.0  # seconds until a process has imported and compiled everything


@dataclass(frozen=True)
class Outcome:
    """How an input ended: "fitted", "refused", "refused in predict" or "failed"."""

    seed: int
    status: str
    seconds: float
    reason: str = ""
    words: str = ""
    trace: str = ""

    def __str__(self) -> str:
        head = f"seed {self.seed}: {self.status} after {self.seconds:.1f} s: {self.reason}"
        return f"{head}\n    {self.words}\n    python -m tests.odd_inputs {self.seed}"


def run_case(seed: int) -> Outcome:
    """Make and check one input in this process."""
    from tests.odd_inputs.case import make_case

    return run_made(seed, make_case(seed))


def run_made(seed: int, case: Any) -> Outcome:
    """Check an input in this process."""
    from tests.odd_inputs.oracles import check_case

    start = perf_counter()
    try:
        status, reason, trace = check_case(case), "", ""
    except BaseException as error:
        status, reason, trace = "failed", str(error), traceback.format_exc()
        if not isinstance(error, AssertionError):
            reason = f"{type(error).__name__}: {reason}"
    return Outcome(seed, status, perf_counter() - start, " ".join(reason.split()), case.words, trace)


class Pool:
    """One process that runs inputs in turn."""

    def __init__(self, limit: float = LIMIT, run: Any = run_case) -> None:
        self.limit, self.run = limit, run
        self.process: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self._end()

    def outcomes(self, seeds: Iterable[int]) -> Iterator[Outcome]:
        for seed in seeds:
            yield self._outcome(seed)

    def _outcome(self, seed: int) -> Outcome:
        if self.process is None:
            self._start()
        start = perf_counter()
        self.connection.send(seed)
        try:
            if self.connection.poll(self.limit):
                return self.connection.recv()
            reason = f"hang: no answer after {self.limit:g} s{self._where()}"
        except (EOFError, ConnectionError):
            self.process.join(5)
            reason = f"lost: the process ended with code {self.process.exitcode}{self._where()}"
        self._end()
        return Outcome(seed, "failed", perf_counter() - start, reason)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.stacks = Path(tempfile.mkstemp(prefix="odd_inputs_", suffix=".txt")[1])
        arguments = (other, self.run, str(self.stacks), max(0.5, self.limit - 1.0))
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        other.close()
        if not self.connection.poll(START_LIMIT):
            raise RuntimeError("The process of odd inputs does not start.")
        self.connection.recv()

    def _where(self) -> str:
        """The innermost lines of our code at the time of a hang or a crash."""
        lines = self.stacks.read_text(encoding="utf-8", errors="replace").splitlines()
        ours = [line.strip() for line in lines if "/admiss/" in line or "/formulations/" in line]
        return f" in {ours[0]}" if ours else ""

    def _end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
            self.stacks.unlink(missing_ok=True)
            self.process = None


def _compile_loops() -> None:
    """Fit ordinary rows once with each engine, so that no input is charged for compilation."""
    import warnings

    import numpy as np

    from admiss import AdaptiveClassifier, AdaptiveRegressorCV, FiniteClassifier, FiniteRegressor
    from admiss.partition import OptimalTree, PatternGroups

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    y = rng.normal(size=40)
    with warnings.catch_warnings(action="ignore"):
        for l1_ratio in (0.0, 0.5):
            AdaptiveClassifier("affine", l1_ratio=l1_ratio).fit(X, y > 0)
        AdaptiveRegressorCV(["affine", "conditional_mean"], n_lambdas=3, cv=2).fit(X, y)
        FiniteRegressor(PatternGroups(2, min_rows=1)).fit(X, y)
        FiniteRegressor(OptimalTree(min_rows=1)).fit(X, y)
        FiniteClassifier(OptimalTree(min_rows=1)).fit(X, y > 0)


def _work(connection: Any, run: Any, stacks: str, limit: float) -> None:
    """Answer seeds with outcomes until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if run.__name__ != "pretend":
        _compile_loops()
    with open(stacks, "w", encoding="utf-8") as file:
        faulthandler.enable(file)
        connection.send("ready")
        while True:
            try:
                seed = connection.recv()
            except EOFError:
                return
            file.seek(0)
            file.truncate()
            faulthandler.dump_traceback_later(limit, file=file)
            outcome = run(seed)
            faulthandler.cancel_dump_traceback_later()
            connection.send(outcome)
