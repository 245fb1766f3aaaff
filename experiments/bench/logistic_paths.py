"""Sums over all paths of the logistic grids: admiss, glmnet and adelie on the same problems, one path at a time.

Medians hide engines that explode on some paths: the sum over the paths of a grid and the slowest path are reported, on
data from a seed of their own. Every fit is timed alone, by CPU time, and the peers run at the loosest tolerance that
keeps their objective within 1e-6 of the optimum on sampled paths. All of them centre the columns within that time.

If the paths of a grid would take the peers more than BUDGET seconds, a sample of them is taken, the same for everybody.
Paths that a peer does not finish are counted and left out of its ratio.
"""

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bench.adelie import Adelie, adelie_python
from experiments.bench.glmnet import Glmnet
from experiments.bench.path_problem import PathProblem

# Seed of the data; another one gives other problems.
SEED = 31
# CPU seconds of the peers on one grid.
BUDGET = 240.0
# Paths on which tolerances are found, and the CPU seconds of ours on them after which there are no more.
TOLERANCE_PATHS, TOLERANCE_SECONDS = 3, 0.5


def path_sums(problems: list[PathProblem], seed: int = SEED, budget: float = BUDGET) -> dict[str, Any]:
    """CPU seconds of the paths: sum and slowest of each engine, and how many times that of admiss the sum is."""
    rng = np.random.default_rng(seed)
    order = [problems[i] for i in rng.permutation(len(problems))]
    order[0].fitted_by_engine("logistic")  # compiles
    guides, spent = [order[0]], _seconds(order[0])
    for problem in order[1:TOLERANCE_PATHS]:
        if spent < TOLERANCE_SECONDS:
            guides.append(problem)
            spent += _seconds(problem)
    with tempfile.TemporaryDirectory() as scratch:
        peers: dict[str, Glmnet | Adelie] = {}
        if shutil.which("Rscript"):
            peers["glmnet"] = Glmnet(Path(scratch), "logistic")
        if python := adelie_python():
            peers["adelie"] = Adelie(Path(scratch), python)
        found = {name: peer.loosest(guides) for name, peer in peers.items()}
        together = sum(seconds for _, _, seconds in found.values())
        sample = order[: max(len(guides), int(min(len(order), budget / max(together, 1e-6))))]
        result: dict[str, Any] = {"seed": seed, "tolerances": {name: found[name][0] for name in peers}}
        ours = np.array([_seconds(problem) for problem in sample])
        result |= {"paths": len(sample), "admiss": float(ours.sum()), "admiss_slowest": float(ours.max())}
        for name, peer in peers.items():
            theirs = peer.seconds(sample, found[name][0])
            done = np.isfinite(theirs)
            result[name], result[f"{name}_slowest"] = (
                float(theirs[done].sum()),
                float(np.max(theirs[done], initial=0.0)),
            )
            result[f"{name}_unfinished"] = int((~done).sum())
            result[f"{name}_ratio"] = float(theirs[done].sum() / ours[done].sum())
    return result


def _seconds(problem: PathProblem) -> float:
    start = time.process_time()
    problem.fitted_by_engine("logistic")
    return time.process_time() - start


HEADER = ["adaptivity", "n", "d", "paths", "admiss s", "slowest ms", "glmnet s", "slowest ms", "glmnet / admiss"]
HEADER += ["adelie s", "slowest ms", "adelie / admiss", "not finished"]


def table_row(row: dict[str, Any]) -> list[str]:
    """The cells of a grid under HEADER."""
    cells = [row["name"], f"{row['n']:,}", str(row["d"]), str(row["paths"])]
    cells += [f"{row['admiss']:.2f}", f"{1e3 * row['admiss_slowest']:.1f}"]
    for peer in ("glmnet", "adelie"):
        found = peer in row
        cells += [f"{row[peer]:.2f}", f"{1e3 * row[f'{peer}_slowest']:.1f}"] if found else ["-", "-"]
        cells.append(f"{row[f'{peer}_ratio']:.1f}" if found else "-")
    return [*cells, str(row.get("adelie_unfinished", "-"))]
