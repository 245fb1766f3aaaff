"""A study of small methods that misbehave in every way that the engine must survive."""

import ctypes
import multiprocessing
import os
import signal
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from admiss.study import Best, Method, Product, Study


@dataclass(frozen=True)
class Numbers:
    n: int
    replicate: int

    def make(self) -> np.ndarray:
        if self.n == 0:
            raise ValueError("no numbers")
        return np.random.default_rng(self.replicate).normal(size=self.n)


@dataclass(frozen=True)
class Words:
    letter: str

    def make(self) -> np.ndarray:
        return np.array([ord(self.letter), 1.0])


@dataclass(frozen=True)
class SlowToRead:
    """Like an instance whose module takes long to import."""

    seconds: float

    def __reduce__(self) -> Any:
        return slowly_read, (self.seconds,)

    def make(self) -> np.ndarray:
        return np.ones(2)


def slowly_read(seconds: float) -> SlowToRead:
    time.sleep(seconds)
    return SlowToRead(seconds)


def shifted_mean(rows: np.ndarray, seed: int, shift: float = 0.0, pause: float = 0.0) -> dict[str, Any]:
    noise = np.random.default_rng(seed).normal()
    time.sleep(pause)
    rows += shift  # must not be seen by the next method
    cv = float(rows[0])
    return {"score": rows.mean() + noise, "cv_score": cv, "seconds": 0.25, "depth": np.int64(2), "mu": rows[:2]}


def forking(rows: np.ndarray, seed: int) -> dict[str, Any]:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return {"score": float(sum(pool.map(abs, [-1, 2]))), "read": sys.stdin.read()}


def printing(rows: np.ndarray, seed: int) -> dict[str, Any]:
    print("a stray line")
    os.system("echo another one")
    sys.stderr.write("and a third\n")
    return {"score": 1.0, "seconds": 0.0}


def wrong(rows: np.ndarray, seed: int) -> dict[str, Any]:
    raise ValueError("this is\nwrong")


def not_finite(rows: np.ndarray, seed: int) -> dict[str, Any]:
    return {"score": float("nan"), "seconds": 0.0}


def leaving(rows: np.ndarray, seed: int) -> dict[str, Any]:
    sys.exit(3)


def dying(rows: np.ndarray, seed: int) -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def silent_end(rows: np.ndarray, seed: int) -> dict[str, Any]:
    os.closerange(3, 100)  # the parent hears the end of the pipe before the process has ended
    time.sleep(0.5)
    os._exit(7)


def strange_text(rows: np.ndarray, seed: int, fail: bool) -> dict[str, Any]:
    name = os.fsdecode(b"file \xff.csv")
    if fail:
        raise ValueError(name)
    return {"score": 1.0, "seconds": 0.0, "name": name, "names": {name: [name]}}


def dying_once(rows: np.ndarray, seed: int, marker: str) -> dict[str, Any]:
    if not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"score": 2.0, "seconds": 0.0}


def killing_parent(rows: np.ndarray, seed: int) -> dict[str, Any]:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
    return {}


def failing_while_marked(rows: np.ndarray, seed: int, marker: str) -> dict[str, Any]:
    if os.path.exists(marker):
        raise RuntimeError("marked")
    return {"score": 3.0, "seconds": 0.0}


def hungry(rows: np.ndarray, seed: int, gigabytes: float) -> dict[str, Any]:
    return {"score": float(np.ones(int(gigabytes * 1e9 / 8))[-1]), "seconds": 0.0}


def holding(rows: np.ndarray, seed: int) -> dict[str, Any]:
    open(os.environ["TOY_MARKER"], "w").close()
    ctypes.PyDLL(None).sleep(600)  # like compiled code that lets no other thread run
    return {"score": 1.0, "seconds": 0.0}


def threads(rows: np.ndarray, seed: int) -> dict[str, Any]:
    return {"score": float(os.environ["OMP_NUM_THREADS"]), "seconds": 0.0, "pid": os.getpid()}


MEANS = [
    Method("mean", shifted_mean),
    Method("up", shifted_mean, {"shift": 1.0}),
    Method("down", shifted_mean, {"shift": -1.0}),
]
SLOW = [Method(f"slow {i}", shifted_mean, {"shift": float(i), "pause": 0.03}) for i in range(6)]
BEST = (Best("best", ("mean", "up", "down")), Best("lower", ("mean", "down")))


def products(scale: str) -> list[Product]:
    numbers = [Numbers(n, replicate) for n in (3, 5) for replicate in range(4)]
    if scale == "laptop":
        return [Product([Numbers(4, replicate) for replicate in range(20)], SLOW)]
    if scale == "paper":
        return [Product(numbers[:1], [*MEANS, Method("holding", holding)])]
    return [Product(numbers, MEANS), Product([Words("a")], MEANS[:1])]


TOY = Study("toy", "A toy", "Means of numbers.", products, BEST, ("n",), seconds=600, gigabytes=4,
            scales=("smoke", "laptop", "paper"))  # fmt: skip
