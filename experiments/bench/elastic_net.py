"""Penalised paths: admiss against R's glmnet, adelie, scikit-learn and cvxpy.

A workload is a grid of 100 lambdas x 10 l1_ratios x 6 adaptive penalties x 5 folds and the refit: 300 paths. admiss is
measured as `AdaptiveRegressorCV` or `AdaptiveClassifierCV` on the whole grid, statistics and held-out errors included;
glmnet by the CPU time of its fits alone. All peers solve the same problems:

* glmnet receives its data in its own terms (:mod:`experiments.bench.glmnet`);
* scikit-learn has no penalty factors; scaling the columns is equivalent only for the lasso, which is compared;
* cvxpy solves the stated program, compiled once per fold and adaptive penalty; its objective is compared on 30 random
  points of the grid, or on as many as it solves in CVXPY_SECONDS. Logistic programs of more than CVXPY_ENTRIES
  entries are left out for their time.

glmnet runs at the loosest threshold that keeps its objective within 1e-6 of the optimum on sampled paths. A random
sample of its paths is measured and scaled (marked ~), and of ours if the grid takes more than OWN_SECONDS. Ratios are
medians of PAIRS interleaved pairs, on the same paths if both are sampled; the logistic grids are compared path by path
too (:mod:`experiments.bench.logistic_paths`).
"""

import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import lasso_path

from admiss import AdaptiveClassifierCV, AdaptiveRegressorCV
from admiss.adaptivity import Adaptivity, Affine, AffineIntercept, Polynomial
from admiss.datasets import make_synthetic
from admiss.estimator.cv import make_folds
from admiss.linear.design import fit_design
from admiss.linear.penalty import penalty_weights
from admiss.study.sections import markdown
from experiments.bench.adelie import adelie_version
from experiments.bench.glmnet import Glmnet, glmnet_version
from experiments.bench.logistic_paths import HEADER, SEED, path_sums, table_row
from experiments.bench.million_rows import large_fit
from experiments.bench.path_problem import ACCURACY, PathProblem
from experiments.bench.records import cached, footer
from formulations.erm.program import AdaptiveERM, compile_erm, solve_erm
from formulations.erm.risk import EmpiricalRisk, compressed_squared_risk
from formulations.losses import Logistic, Squared

L1_RATIOS = tuple(np.arange(1, 11) / 10)
ADAPTIVE_PENALTIES = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0)
N_LAMBDAS = 100
N_FOLDS = 5
N_PATHS = len(L1_RATIOS) * len(ADAPTIVE_PENALTIES) * N_FOLDS
PAIRS = 5
# CPU seconds above which our grid is sampled, those of glmnet on one sample, and the least and largest sample.
OWN_SECONDS, SAMPLE_SECONDS, LEAST_SAMPLE, LARGEST_SAMPLE = 90.0, 6.0, 2, 30
# Points of the grid for cvxpy, the CPU seconds after which there are no more, and the largest logistic program.
CVXPY_POINTS, CVXPY_SECONDS, CVXPY_ENTRIES = 30, 4.0, 2_000_000
CLASSES: dict[str, Adaptivity] = {"affine intercept": AffineIntercept(), "affine": Affine(), "degree 2": Polynomial(2)}


@dataclass(frozen=True)
class Workload:
    """A grid to cross-validate."""

    loss: str
    name: str
    n: int
    d: int

    @property
    def key(self) -> str:
        """Name of its file."""
        return f"{self.loss}-{self.name}-{self.n}-{self.d}".replace(" ", "-")


WORKLOADS = [
    *(Workload(loss, name, n, 10) for loss in ("squared", "logistic") for name in CLASSES for n in (100, 1000, 10_000)),
    Workload("squared", "affine", 1000, 50),
    Workload("logistic", "affine", 1000, 50),
]


# Grids that are summed path by path.
SUMMED = [("affine", 100), ("affine intercept", 1000), ("affine", 1000), ("degree 2", 1000), ("affine", 10_000)]


def run(folder: Path, *, quick: bool = False) -> str:
    """Run the missing measurements, and return the report."""
    folder.mkdir(parents=True, exist_ok=True)
    workloads = [Workload("squared", "affine", 1000, 10)] if quick else WORKLOADS
    summed = [Workload("logistic", name, n, 10) for name, n in (SUMMED[:1] if quick else SUMMED)]
    for workload in summed:
        cached(folder / f"paths-{workload.key}.json", partial(measure_paths, workload))
    for workload in workloads:
        cached(folder / f"{workload.key}.json", partial(measure, workload))
    if not quick:
        cached(folder / "large.json", large_fit)
    return "\n".join([report(folder, workloads), "", *paths_report(folder, summed)])


def measure_paths(workload: Workload) -> dict[str, Any]:
    """Sums over the paths of a logistic grid, on fresh data."""
    data = make_synthetic(n=workload.n, d=workload.d, random_state=SEED)
    y = np.where(data.y_train > np.median(data.y_train), 1.0, -1.0)
    return asdict(workload) | path_sums(_problems(workload, data.X_train, y))


def paths_report(folder: Path, workloads: list[Workload]) -> list[str]:
    """The sums over paths as a table."""
    rows = [json.loads((folder / f"paths-{w.key}.json").read_text()) for w in workloads]
    title = f"CPU seconds of one thread, sum over paths of {N_LAMBDAS} lambdas of the logistic loss, and slowest path:"
    return [title, "", *markdown(HEADER, [table_row(row) for row in rows]), "", adelie_version()]


def measure(workload: Workload) -> dict[str, Any]:
    """All measurements of a workload, in CPU seconds for the whole grid."""
    data = make_synthetic(n=workload.n, d=workload.d, random_state=0)
    y = data.y_train if workload.loss == "squared" else np.where(data.y_train > np.median(data.y_train), 1.0, -1.0)
    fit = _grid_fit(workload, data.X_train, y)
    problems = _problems(workload, data.X_train, y)
    rng = np.random.default_rng(0)
    result: dict[str, Any] = {**asdict(workload), "columns": int(problems[0].A.shape[1])}
    fit(2)  # compiles
    start = time.process_time()
    for i in rng.choice(len(problems), LEAST_SAMPLE, replace=False):
        problems[i].fitted_by_engine(workload.loss)
    guess = (time.process_time() - start) / LEAST_SAMPLE
    sampled = guess * N_PATHS > OWN_SECONDS
    with tempfile.TemporaryDirectory() as scratch:
        glmnet = Glmnet(Path(scratch), workload.loss) if shutil.which("Rscript") else None
        if glmnet:
            guides = [problems[i] for i in rng.choice(len(problems), LEAST_SAMPLE, replace=False)]
            result["glmnet_threshold"], result["glmnet_error"], guess = glmnet.loosest(guides)
        count = int(np.clip(SAMPLE_SECONDS / max(guess, 1e-6), LEAST_SAMPLE, LARGEST_SAMPLE))
        result["admiss_paths"], result["glmnet_paths"] = count if sampled else N_PATHS, count
        ours, theirs = [], []
        for _ in range(PAIRS):
            sample = [problems[i] for i in rng.choice(len(problems), count, replace=False)]
            start = time.process_time()
            if sampled:
                for problem in sample:
                    problem.fitted_by_engine(workload.loss)
            else:
                fit(N_LAMBDAS)
            ours.append((time.process_time() - start) * N_PATHS / result["admiss_paths"])
            if glmnet:
                theirs.append(np.mean(glmnet.seconds(sample, result["glmnet_threshold"])) * N_PATHS)
    result["admiss"] = float(np.median(ours))
    if theirs:
        result["glmnet"] = float(np.median(theirs))
        result["ratio"] = float(np.median(np.divide(theirs, ours)))
    if workload.loss == "squared":
        result["lasso_ratio"] = _scikit_learn_ratio(problems, rng)
    result.update(_against_cvxpy(workload, problems, rng))
    return result


def _grid_fit(workload: Workload, X: np.ndarray, y: np.ndarray) -> Callable[[int], None]:
    estimator = AdaptiveRegressorCV if workload.loss == "squared" else AdaptiveClassifierCV

    def fit(n_lambdas: int) -> None:
        estimator(
            [CLASSES[workload.name]],
            l1_ratios=L1_RATIOS,
            adaptive_penalties=ADAPTIVE_PENALTIES,
            n_lambdas=n_lambdas,
            cv=N_FOLDS,
            random_state=0,
        ).fit(X, y)

    return fit


def _problems(workload: Workload, X: np.ndarray, y: np.ndarray) -> list[PathProblem]:
    """The 300 paths of the grid, on the folds of the estimators."""
    labels = None if workload.loss == "squared" else (y > 0).astype(int)
    problems = []
    for f, (train, _) in enumerate(make_folds(X, y, labels, np.ones(len(X)), N_FOLDS, 0)):
        s = np.ones(len(train))
        design = fit_design(X[train], s, CLASSES[workload.name], center=True, scale=True, fit_intercept=True)
        A = np.asarray(design.whole(X[train]))[:, ~design.free]
        target = y[train]
        slope = 2.0 if workload.loss == "squared" else 0.5
        g = np.abs((A - A.mean(axis=0)).T @ (target - target.mean())) * slope / len(A)
        eps = 1e-2 if len(X) < len(design.pairs) else 1e-4
        for c in ADAPTIVE_PENALTIES:
            u = penalty_weights(design, X[train], s, kind="count", adaptive_penalty=c, standardise=True)[0][
                ~design.free
            ]
            for alpha in L1_RATIOS:
                largest = np.max(g / u) / alpha
                problems.append(PathProblem(f, A, target, u, alpha, np.geomspace(largest, eps * largest, N_LAMBDAS)))
    return problems


def _scikit_learn_ratio(problems: list[PathProblem], rng: np.random.Generator) -> float | None:
    """CPU time of scikit-learn's lasso_path over that of admiss, on lasso paths within 1e-6 of the optimum."""
    lassos = [p for p in problems if p.alpha == 1.0]
    sample = [lassos[i] for i in rng.choice(len(lassos), 3, replace=False)]
    ratios = []
    for problem in sample:
        start = time.process_time()
        b, W = problem.fitted_by_engine("squared")
        ours = time.process_time() - start
        best = problem.objective("squared", b, W)
        mean = problem.A.mean(axis=0)
        scaled = np.asfortranarray((problem.A - mean) / problem.u)
        for tolerance in (1e-5, 1e-6, 1e-7, 1e-8):
            start = time.process_time()
            y = problem.y - problem.y.mean()
            _, coefficients, _ = lasso_path(
                scaled, y, alphas=problem.lambdas / 2, precompute=True, tol=tolerance, max_iter=100_000
            )
            theirs = time.process_time() - start
            W = (coefficients / problem.u[:, None]).T
            error = np.max(problem.objective("squared", problem.y.mean() - W @ mean, W) / best - 1)
            if error <= ACCURACY or theirs > 60:
                break
        ratios.append(theirs / ours)
    return float(np.median(ratios))


def _against_cvxpy(workload: Workload, problems: list[PathProblem], rng: np.random.Generator) -> dict[str, Any]:
    """Largest relative difference of the objective on random points of the grid, and the seconds of a cvxpy grid."""
    if workload.loss == "logistic" and workload.n * problems[0].A.shape[1] > CVXPY_ENTRIES:
        return {"cvxpy_points": 0, "cvxpy_difference": None, "cvxpy": None}
    differences: list[float] = []
    seconds: list[float] = []
    while len(seconds) < CVXPY_POINTS and sum(seconds) < CVXPY_SECONDS:
        problem = problems[rng.integers(len(problems))]
        at = rng.integers(N_LAMBDAS)
        objective = problem.objective(workload.loss, *problem.fitted_by_engine(workload.loss))[at]
        lam, alpha = problem.lambdas[at], problem.alpha
        A, q = np.column_stack([np.ones(len(problem.A)), problem.A]), np.full(len(problem.A), 1 / len(problem.A))
        u = np.concatenate([[0.0], problem.u])
        risk = EmpiricalRisk(A, problem.y, q, Squared() if workload.loss == "squared" else Logistic())
        if workload.loss == "squared" and len(A) > A.shape[1]:
            risk = compressed_squared_risk([(A, problem.y, q)])
        compiled = compile_erm(AdaptiveERM(risk, u, u))
        start = time.process_time()
        _, certificate = solve_erm(compiled, alpha * lam, (1 - alpha) * lam)
        seconds.append(time.process_time() - start)
        differences.append(objective / certificate.objective - 1)
    return {
        "cvxpy_points": len(seconds),
        "cvxpy_difference": float(np.max(np.abs(differences))),
        "cvxpy": float(np.median(seconds)) * N_PATHS * N_LAMBDAS,
    }


def report(folder: Path, workloads: list[Workload]) -> str:
    """The measurements as tables."""
    rows = [json.loads((folder / f"{w.key}.json").read_text()) for w in workloads]

    header = ["loss", "adaptivity", "n", "d", "columns", "admiss s", "glmnet s", "glmnet / admiss", "cvxpy / admiss"]
    header += ["scikit-learn lasso / admiss", "largest difference to cvxpy"]
    table = []
    for row in rows:
        cells = [row["loss"], row["name"], f"{row['n']:,}", row["d"], row["columns"]]
        cells += [_seconds(row, "admiss"), _seconds(row, "glmnet"), _number(row.get("ratio"), ".1f")]
        cells.append("-" if row["cvxpy"] is None else f"{row['cvxpy'] / row['admiss']:,.0f}")
        cells.append(_number(row.get("lasso_ratio"), ".1f"))
        table.append([*map(str, cells), _number(row["cvxpy_difference"], ".0e")])
    lines = [
        f"CPU seconds of one thread for a grid of {N_PATHS} paths of {N_LAMBDAS} lambdas (~ scaled from a sample):",
        "",
    ]
    lines += [*markdown(header, table), ""]
    by_key = {w.key: row for w, row in zip(workloads, rows, strict=True)}
    small, wide = by_key.get("squared-affine-1000-10"), by_key.get("squared-affine-1000-50")
    if small and wide:
        lines.append(f"affine, n = 1000: d = 50 takes {wide['admiss'] / small['admiss']:.1f} times as long as d = 10.")
    if (folder / "large.json").exists():
        large = json.loads((folder / "large.json").read_text())
        lines.append(
            f"n = 1,000,000, d = 20, affine intercept, one fit: {large['admiss']:.2f} s, {large['ratio']:.2f} times "
            f"Ridge on (x, m); memory added {large['memory']:.2f} times X."
        )
    names = ("python", "admiss", "numpy", "scipy", "scikit-learn", "numba", "cvxpy", "clarabel")
    lines.append(footer(*names, peer=glmnet_version()))
    return "\n".join(lines)


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _seconds(row: dict[str, Any], name: str) -> str:
    """CPU seconds of a grid, with a mark if scaled from a sample."""
    if row.get(name) is None:
        return "-"
    return ("~" if row.get(f"{name}_paths", N_PATHS) < N_PATHS else "") + f"{row[name]:.2f}"
