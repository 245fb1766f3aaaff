"""Where people wait: fits and searches with defaults, next to those of peers on the same rows.

Peers are a linear model on imputed means with indicators, its penalty chosen by cross-validation (scikit-learn), and
the defaults of LightGBM and CatBoost, one thread each, up to 100,000 rows; the latter two are left out where they are
not installed (``pip install lightgbm catboost``). Each fit has a process of its own and comes after one on a few rows,
which compiles; if it takes seconds, it is the faster one of two. The last rows are first fits with an empty cache of
compiled code, imports included.
"""

import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from admiss import (
    AdaptiveClassifierCV,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    AdaptiveStackRegressor,
    FiniteClassifierCV,
    FiniteRegressor,
    FiniteRegressorCV,
    JointImputeClassifier,
)
from admiss.datasets import make_synthetic
from admiss.partition import OptimalTree
from experiments.bench.records import footer, measured, table, timed
from formulations.arrays import FloatArray

# Fits of fewer CPU seconds are repeated.
AGAIN = 10.0
COLD = {
    "first AdaptiveRegressor": "from admiss import AdaptiveRegressor as Model",
    "first AdaptiveClassifier": "from admiss import AdaptiveClassifier as Model",
    "first exact tree": "from admiss import FiniteRegressor; from admiss.partition import OptimalTree\n"
    "def Model(): return FiniteRegressor(OptimalTree(max_depth=2))",
}


@dataclass(frozen=True)
class Workload:
    """A model and the size of the rows that it is fitted to."""

    model: Callable[[], BaseEstimator]
    n: int
    d: int
    one_hot: bool = False


def workloads() -> dict[str, Workload]:
    """The rows of the report."""
    affine = {
        f"AdaptiveRegressorCV('affine', l1_ratios={ratio})": Workload(
            partial(AdaptiveRegressorCV, "affine", l1_ratios=(ratio,), random_state=0), 1000, 30
        )
        for ratio in (0.0, 0.5, 1.0)
    }
    return {
        "FiniteRegressorCV, wide": Workload(partial(FiniteRegressorCV, random_state=0), 150, 300),
        "FiniteRegressorCV": Workload(partial(FiniteRegressorCV, random_state=0), 3000, 20),
        "FiniteRegressorCV, long": Workload(partial(FiniteRegressorCV, random_state=0), 30_000, 30),
        **affine,
        "AdaptiveRegressorCV('affine')": Workload(partial(AdaptiveRegressorCV, "affine", random_state=0), 2000, 50),
        "AdaptiveRegressor('affine')": Workload(partial(AdaptiveRegressor, "affine"), 600, 25),
        "AdaptiveRegressorCV('affine_intercept'), wide": Workload(
            partial(AdaptiveRegressorCV, "affine_intercept", random_state=0), 150, 300
        ),
        "AdaptiveRegressorCV": Workload(partial(AdaptiveRegressorCV, random_state=0), 100_000, 20),
        "AdaptiveClassifierCV, small": Workload(partial(AdaptiveClassifierCV, random_state=0), 600, 29),
        "AdaptiveClassifierCV": Workload(partial(AdaptiveClassifierCV, random_state=0), 30_000, 30),
        "AdaptiveClassifierCV, long": Workload(partial(AdaptiveClassifierCV, random_state=0), 100_000, 20),
        "FiniteClassifierCV": Workload(partial(FiniteClassifierCV, random_state=0), 3000, 20),
        "exact tree, depth 3": Workload(partial(FiniteRegressor, OptimalTree(max_depth=3)), 100_000, 20),
        "exact tree, depth 3, long": Workload(partial(FiniteRegressor, OptimalTree(max_depth=3)), 1_000_000, 20),
        "JointImputeClassifier, wide": Workload(partial(JointImputeClassifier, random_state=0), 300, 300),
        "AdaptiveStackRegressor": Workload(partial(AdaptiveStackRegressor, random_state=0), 3000, 20),
        "AdaptiveStackRegressor, one-hot": Workload(partial(AdaptiveStackRegressor, random_state=0), 600, 100, True),
        "AdaptiveStackRegressor, wide": Workload(partial(AdaptiveStackRegressor, random_state=0), 150, 300),
    }


def run(folder: Path, *, quick: bool = False) -> str:
    """Run the missing measurements, and return the report."""
    share = 20 if quick else 1
    measures: dict[str, Callable[[], dict[str, Any]]] = {
        name: partial(compare, name, share) for name in workloads() if not quick or "stack" not in name.lower()
    }
    if not quick:
        measures |= {name: partial(first_fit, name) for name in COLD}
        measures["first compare"] = first_comparison
    records = measured(folder, measures)
    peers = ("admiss", "linear", "LightGBM", "CatBoost")
    rows = [
        [name, r.get("n", "-"), r.get("d", "-"), *(f"{r[peer]:.2f}" if peer in r else "-" for peer in peers)]
        for name, r in records.items()
    ]
    return table(["fit", "n", "d", *peers], rows, f"CPU seconds of one thread; {footer()}")


def compare(name: str, share: int) -> dict[str, Any]:
    """CPU seconds of a workload and of its peers."""
    workload = workloads()[name]
    n, d = max(workload.n // share, 60), max(workload.d // share, 5)
    model = workload.model()
    X, y = rows(n, d, one_hot=workload.one_hot)
    target = (y > np.median(y)).astype(int) if is_classifier(model) else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about features never missing in a fold, and the steps of peers
        small = rows(120, 5, one_hot=False)
        workload.model().fit(small[0], (small[1] > 0).astype(int) if is_classifier(model) else small[1])
        seconds = {"admiss": timed(partial(model.fit, X, target))[0]}
        if seconds["admiss"] < AGAIN:  # the first one may have compiled what few rows do not need
            seconds["admiss"] = min(seconds["admiss"], timed(partial(workload.model().fit, X, target))[0])
        for peer, other in peers_of(classes=is_classifier(model)).items() if n <= 100_000 else ():
            seconds[peer] = timed(partial(other.fit, X, target))[0]
    return {"n": n, "d": d, **seconds}


def rows(n: int, d: int, *, one_hot: bool) -> tuple[FloatArray, FloatArray]:
    """Generated rows with values missing because they are large, some columns 0/1 levels of texts if asked for."""
    data = make_synthetic(
        n=n, d=d, rank=min(d, 5), mechanism="censoring", missing_fraction=0.3, n_test=1, random_state=0
    )
    X, y = data.X_train, data.y_train
    if not one_hot:
        return X, y
    numbers = X[:, : d // 5]
    levels = np.random.default_rng(0).integers(0, 10, size=(n, max((d - d // 5) // 10, 1)))
    texts = (levels[:, :, None] == np.arange(10)).reshape(n, -1).astype(float)
    return np.column_stack([numbers, texts]), y + levels[:, 0]


def peers_of(*, classes: bool) -> dict[str, Any]:
    """The peers that are installed, with their defaults and one thread."""
    linear = LogisticRegressionCV(max_iter=1000) if classes else RidgeCV(np.logspace(-3, 4, 30))
    peers = {"linear": make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), linear)}
    if find_spec("lightgbm"):
        import lightgbm

        boosting = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
        peers["LightGBM"] = boosting(n_jobs=1, verbose=-1)
    if find_spec("catboost"):
        import catboost

        boosting = catboost.CatBoostClassifier if classes else catboost.CatBoostRegressor
        peers["CatBoost"] = boosting(thread_count=1, verbose=False, allow_writing_files=False)
    return peers


def first_fit(name: str) -> dict[str, Any]:
    """CPU seconds of a process that imports the package and fits for the first time, with nothing compiled before."""
    script = (
        f"{COLD[name]}\nimport numpy as np\nrng = np.random.default_rng(0)\n"
        "X = np.where(rng.random((500, 8)) < 0.3, np.nan, rng.normal(size=(500, 8)))\n"
        f"y = rng.normal(size=500)\nModel().fit(X, {'y > 0' if 'Classifier' in name else 'y'})"
    )
    return {"n": 500, "d": 8, "admiss": _cold_seconds(["-c", script])}


def first_comparison() -> dict[str, Any]:
    """CPU seconds of ``admiss compare`` on its generated data, with nothing compiled before."""
    return {"admiss": _cold_seconds(["-m", "admiss", "compare"])}


def _cold_seconds(arguments: list[str]) -> float:
    root = Path(__file__).parents[2]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "PYTHONPATH": str(root)}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, cwd=folder, env=environment, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
