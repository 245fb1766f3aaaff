"""Penalised paths: admiss against R's glmnet, adelie, scikit-learn and cvxpy.

A workload is a grid of 100 lambdas x 10 l1_ratios x 6 adaptive penalties x 5 folds and the refit: 300 paths. admiss is
measured as `AdaptiveRegressorCV` or `AdaptiveClassifierCV` on the whole grid, statistics and held-out errors included;
glmnet by the CPU time of its fits alone. All peers solve the same problems:

* glmnet receives its data in its own terms (:mod:`experiments.bench.peers`);
* scikit-learn has no penalty factors; scaling the columns is equivalent only for the lasso, which is compared;
* cvxpy solves the stated program, compiled once per fold and adaptive penalty; its objective is compared on 30 random
  points of the grid, or on as many as it solves in 4 seconds. Logistic programs of more than two million entries are
  left out for their time.

glmnet runs at the loosest threshold that keeps its objective within 1e-6 of the optimum on sampled paths. A random
sample of its paths is measured and scaled (marked ~), and of ours if the grid takes more than 90 seconds. Ratios are
medians of interleaved pairs, on the same paths if both are sampled.

Medians hide engines that explode on some paths: for the logistic loss the sum over the paths of a grid and the slowest
path are reported too, of admiss and its peers, on data from a seed of their own. Every fit is timed alone, with
the centring of its columns, the peers at the loosest tolerance as above. If the paths of a grid would take the peers
more than 240 seconds, a sample of them is taken, the same for everybody. Paths that a peer does not finish are counted
and left out of its ratio.
"""

import shutil
import tempfile
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
from admiss.estimator.cross_validation import make_folds
from admiss.linear.design import fit_design
from admiss.linear.penalty import penalty_weights
from admiss.study.report.sections import markdown
from experiments.bench.peers import (
    ACCURACY,
    Glmnet,
    PathProblem,
    glmnet_version,
    logistic_peers,
    python_peer_versions,
)
from experiments.bench.records import cached, footer, timed
from formulations.erm.program import AdaptiveERM, compile_erm, solve_erm
from formulations.erm.risk import EmpiricalRisk, compressed_squared_risk
from formulations.losses import Logistic, Squared

L1_RATIOS = tuple(np.arange(1, 11) / 10)
CLASSES: dict[str, Adaptivity] = {"affine intercept": AffineIntercept(), "affine": Affine(), "degree 2": Polynomial(2)}


@dataclass(frozen=True)
class Workload:
    """A grid to cross-validate.

    ``pairs`` are measured; our grid is sampled above ``own_seconds``, glmnet up to ``sample_seconds`` by ``sample``
    paths, least and most; cvxpy solves up to ``cvxpy_points`` points of the grid in ``cvxpy_seconds``.
    """

    loss: str
    name: str
    n: int
    d: int
    adaptive_penalties: tuple[float, ...] = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0)
    n_lambdas: int = 100
    n_folds: int = 5
    pairs: int = 5
    own_seconds: float = 90.0
    sample_seconds: float = 6.0
    sample: tuple[int, int] = (2, 30)
    cvxpy_points: int = 30
    cvxpy_seconds: float = 4.0

    @property
    def key(self) -> str:
        """Name of its file."""
        return f"{self.loss}-{self.name}-{self.n}-{self.d}".replace(" ", "-")

    @property
    def n_paths(self) -> int:
        """Paths of the grid."""
        return len(L1_RATIOS) * len(self.adaptive_penalties) * self.n_folds

    def rows(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Generated rows; for classes y is -1 or 1, above or below the median."""
        data = make_synthetic(n=self.n, d=self.d, random_state=seed)
        if self.loss == "squared":
            return data.X_train, data.y_train
        return data.X_train, np.where(data.y_train > np.median(data.y_train), 1.0, -1.0)


WORKLOADS = [
    *(Workload(loss, name, n, 10) for loss in ("squared", "logistic") for name in CLASSES for n in (100, 1000, 10_000)),
    Workload("squared", "affine", 1000, 50),
    Workload("logistic", "affine", 1000, 50),
]


# Grids that are summed path by path.
SUMMED = [("affine", 100), ("affine intercept", 1000), ("affine", 1000), ("degree 2", 1000), ("affine", 10_000)]


def run(folder: Path, *, quick: bool = False) -> str:
    """Run the missing measurements, and return the report."""
    workloads = [Workload("squared", "affine", 1000, 10)] if quick else WORKLOADS
    summed = [Workload("logistic", name, n, 10) for name, n in (SUMMED[:1] if quick else SUMMED)]
    sums = [cached(folder / f"paths-{each.key}.json", partial(measure_paths, each)) for each in summed]
    grids = [cached(folder / f"{each.key}.json", partial(measure, each)) for each in workloads]
    title = "CPU seconds of one thread, sum over paths of 100 lambdas of the logistic loss, and slowest path:"
    paths = [title, "", *markdown(HEADER, [table_row(row) for row in sums]), "", python_peer_versions()]
    return "\n".join([report(grids), "", *paths])


def measure(workload: Workload) -> dict[str, Any]:
    """All measurements of a workload, in CPU seconds for the whole grid."""
    X, y = workload.rows(seed=0)
    fit = _grid_fit(workload, X, y)
    problems = _problems(workload, X, y)
    rng = np.random.default_rng(0)
    least, most = workload.sample
    n_paths = workload.n_paths

    def some(count: int) -> list[PathProblem]:
        return [problems[i] for i in rng.choice(len(problems), count, replace=False)]

    def fit_each(sample: list[PathProblem]) -> None:
        for problem in sample:
            problem.fitted_by_engine(workload.loss)

    result: dict[str, Any] = {**asdict(workload), "n_paths": n_paths, "columns": int(problems[0].A.shape[1])}
    fit(2)  # compiles
    guess = timed(partial(fit_each, some(least)))[0] / least
    sampled = guess * n_paths > workload.own_seconds
    with tempfile.TemporaryDirectory() as scratch:
        glmnet = Glmnet(Path(scratch), workload.loss) if shutil.which("Rscript") else None
        if glmnet:
            result["glmnet_threshold"], result["glmnet_error"], guess = glmnet.loosest(some(least))
        count = int(np.clip(workload.sample_seconds / max(guess, 1e-6), least, most))
        result["admiss_paths"], result["glmnet_paths"] = count if sampled else n_paths, count
        ours, theirs = [], []
        for _ in range(workload.pairs):
            sample = some(count)
            seconds, _ = timed(partial(fit_each, sample) if sampled else partial(fit, workload.n_lambdas))
            ours.append(seconds * n_paths / result["admiss_paths"])
            if glmnet:
                theirs.append(np.mean(glmnet.seconds(sample, result["glmnet_threshold"])) * n_paths)
    result["admiss"] = float(np.median(ours))
    if theirs:
        result["glmnet"] = float(np.median(theirs))
        result["ratio"] = float(np.median(np.divide(theirs, ours)))
    if workload.loss == "squared":
        result["lasso_ratio"] = _scikit_learn_ratio(problems, rng)
    result.update(_against_cvxpy(workload, problems, rng))
    return result


def _grid_fit(workload: Workload, X: np.ndarray, y: np.ndarray) -> Callable[[int], None]:
    estimator: Any = AdaptiveRegressorCV
    if workload.loss == "logistic":
        estimator = partial(AdaptiveClassifierCV, search_rows=None)  # all settings on all rows, as the peers fit them

    def fit(n_lambdas: int) -> None:
        estimator(
            [CLASSES[workload.name]],
            l1_ratios=L1_RATIOS,
            adaptive_penalties=workload.adaptive_penalties,
            n_lambdas=n_lambdas,
            cv=workload.n_folds,
            random_state=0,
        ).fit(X, y)

    return fit


def _problems(workload: Workload, X: np.ndarray, y: np.ndarray) -> list[PathProblem]:
    """The 300 paths of the grid, on the folds of the estimators."""
    labels = None if workload.loss == "squared" else (y > 0).astype(int)
    problems = []
    for f, (train, _) in enumerate(make_folds(X, y, labels, np.ones(len(X)), workload.n_folds, 0)):
        s = np.ones(len(train))
        design = fit_design(X[train], s, CLASSES[workload.name])
        A = np.asarray(design.whole(X[train]))[:, ~design.free]
        target = y[train]
        slope = 2.0 if workload.loss == "squared" else 0.5
        g = np.abs((A - A.mean(axis=0)).T @ (target - target.mean())) * slope / len(A)
        eps = 1e-2 if len(X) < len(design.pairs) else 1e-4
        for c in workload.adaptive_penalties:
            weights = penalty_weights(design, X[train], s, kind="count", adaptive_penalty=c, standardise=True)[0]
            u = weights[~design.free]
            for alpha in L1_RATIOS:
                largest = np.max(g / u) / alpha
                lambdas = np.geomspace(largest, eps * largest, workload.n_lambdas)
                problems.append(PathProblem(f, A, target, u, alpha, lambdas))
    return problems


def _scikit_learn_ratio(problems: list[PathProblem], rng: np.random.Generator) -> float | None:
    """CPU time of scikit-learn's lasso_path over that of admiss, on lasso paths within 1e-6 of the optimum."""
    lassos = [p for p in problems if p.alpha == 1.0]
    sample = [lassos[i] for i in rng.choice(len(lassos), 3, replace=False)]
    ratios = []
    for problem in sample:
        ours, (b, W) = timed(partial(problem.fitted_by_engine, "squared"))
        best = problem.objective("squared", b, W)
        mean = problem.A.mean(axis=0)
        scaled = np.asfortranarray((problem.A - mean) / problem.u)
        y = problem.y - problem.y.mean()
        for tolerance in (1e-5, 1e-6, 1e-7, 1e-8):
            options = {"alphas": problem.lambdas / 2, "precompute": True, "tol": tolerance, "max_iter": 100_000}
            theirs, (_, coefficients, _) = timed(partial(lasso_path, scaled, y, **options))
            W = (coefficients / problem.u[:, None]).T
            error = np.max(problem.objective("squared", problem.y.mean() - W @ mean, W) / best - 1)
            if error <= ACCURACY or theirs > 60:
                break
        ratios.append(theirs / ours)
    return float(np.median(ratios))


def _against_cvxpy(workload: Workload, problems: list[PathProblem], rng: np.random.Generator) -> dict[str, Any]:
    """Largest relative difference of the objective on random points of the grid, and the seconds of a cvxpy grid."""
    if workload.loss == "logistic" and workload.n * problems[0].A.shape[1] > 2_000_000:
        return {"cvxpy_points": 0, "cvxpy_difference": None, "cvxpy": None}
    differences: list[float] = []
    seconds: list[float] = []
    while len(seconds) < workload.cvxpy_points and sum(seconds) < workload.cvxpy_seconds:
        problem = problems[rng.integers(len(problems))]
        at = rng.integers(workload.n_lambdas)
        objective = problem.objective(workload.loss, *problem.fitted_by_engine(workload.loss))[at]
        lam, alpha = problem.lambdas[at], problem.alpha
        A, q = np.column_stack([np.ones(len(problem.A)), problem.A]), np.full(len(problem.A), 1 / len(problem.A))
        u = np.concatenate([[0.0], problem.u])
        risk = EmpiricalRisk(A, problem.y, q, Squared() if workload.loss == "squared" else Logistic())
        if workload.loss == "squared" and len(A) > A.shape[1]:
            risk = compressed_squared_risk([(A, problem.y, q)])
        compiled = compile_erm(AdaptiveERM(risk, u, u))
        spent, (_, certificate) = timed(partial(solve_erm, compiled, alpha * lam, (1 - alpha) * lam))
        seconds.append(spent)
        differences.append(objective / certificate.objective - 1)
    return {
        "cvxpy_points": len(seconds),
        "cvxpy_difference": float(np.max(np.abs(differences))),
        "cvxpy": float(np.median(seconds)) * workload.n_paths * workload.n_lambdas,
    }


def report(rows: list[dict[str, Any]]) -> str:
    """The measurements of grids as a table."""
    header = ["loss", "adaptivity", "n", "d", "columns", "admiss s", "glmnet s", "glmnet / admiss", "cvxpy / admiss"]
    header += ["scikit-learn lasso / admiss", "largest difference to cvxpy"]
    cells = []
    for row in rows:
        line = [row["loss"], row["name"], f"{row['n']:,}", str(row["d"]), str(row["columns"])]
        line += [_seconds(row, name) for name in ("admiss", "glmnet")]
        line.append(_number(row.get("ratio"), ".1f"))
        line.append("-" if row["cvxpy"] is None else f"{row['cvxpy'] / row['admiss']:,.0f}")
        cells.append([*line, _number(row.get("lasso_ratio"), ".1f"), _number(row["cvxpy_difference"], ".0e")])
    lines = ["CPU seconds of one thread for a grid of 300 paths of 100 lambdas (~ scaled from a sample):", ""]
    lines += [*markdown(header, cells), ""]
    by_key = {(row["loss"], row["name"], row["n"], row["d"]): row["admiss"] for row in rows}
    small, wide = (by_key.get(("squared", "affine", 1000, d)) for d in (10, 50))
    if small and wide:
        lines.append(f"affine, n = 1000: d = 50 takes {wide / small:.1f} times as long as d = 10.")
    names = ("python", "admiss", "numpy", "scipy", "scikit-learn", "numba", "cvxpy", "clarabel")
    return "\n".join([*lines, footer(*names, peer=glmnet_version())])


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _seconds(row: dict[str, Any], name: str) -> str:
    """CPU seconds of a grid, with a mark if scaled from a sample."""
    if row.get(name) is None:
        return "-"
    return ("~" if row[f"{name}_paths"] < row["n_paths"] else "") + f"{row[name]:.2f}"


# Seed of the data of sums over paths; another one gives other problems.
SEED = 31
HEADER = ["adaptivity", "n", "d", "paths", "admiss s", "admiss slowest ms"]
HEADER += ["glmnet s", "glmnet slowest ms", "glmnet / admiss"]
HEADER += ["adelie s", "adelie slowest ms", "adelie / admiss", "adelie not finished"]
HEADER += ["glmnet-rs s", "glmnet-rs slowest ms", "glmnet-rs / admiss", "glmnet-rs not finished"]


def measure_paths(workload: Workload) -> dict[str, Any]:
    """Sums over the paths of a logistic grid, on fresh data."""
    return asdict(workload) | path_sums(_problems(workload, *workload.rows(SEED)))


def path_sums(problems: list[PathProblem], budget: float = 240.0, guide_seconds: float = 0.5) -> dict[str, Any]:
    """CPU seconds of the paths: sum and slowest of each engine, and how many times that of admiss the sum is.

    ``budget`` are CPU seconds of the peers. Tolerances are found on up to three paths, of ``guide_seconds`` of ours.
    """
    order = [problems[i] for i in np.random.default_rng(SEED).permutation(len(problems))]

    def own(problem: PathProblem) -> float:
        return timed(partial(problem.fitted_by_engine, "logistic"))[0]

    own(order[0])  # compiles
    guides, spent = [order[0]], own(order[0])
    for problem in order[1:3]:
        if spent < guide_seconds:
            guides.append(problem)
            spent += own(problem)
    with tempfile.TemporaryDirectory() as scratch:
        peers = logistic_peers(Path(scratch))
        found = {name: peer.loosest(guides) for name, peer in peers.items()}
        together = sum(seconds for _, _, seconds in found.values())
        sample = order[: max(len(guides), int(min(len(order), budget / max(together, 1e-6))))]
        ours = np.array([own(problem) for problem in sample])
        result: dict[str, Any] = {"seed": SEED, "tolerances": {name: found[name][0] for name in peers}}
        result |= {"paths": len(sample), "admiss": float(ours.sum()), "admiss_slowest": float(ours.max())}
        for name, peer in peers.items():
            theirs = peer.seconds(sample, found[name][0])
            done = np.isfinite(theirs)
            result[name] = float(theirs[done].sum())
            result[f"{name}_slowest"] = float(np.max(theirs[done], initial=0.0))
            result[f"{name}_unfinished"] = int((~done).sum())
            result[f"{name}_ratio"] = float(theirs[done].sum() / ours[done].sum())
    return result


def table_row(row: dict[str, Any]) -> list[str]:
    """The cells of a grid under HEADER."""
    cells = [row["name"], f"{row['n']:,}", str(row["d"]), str(row["paths"])]
    cells += [f"{row['admiss']:.2f}", f"{1e3 * row['admiss_slowest']:.1f}"]
    for peer in ("glmnet", "adelie", "glmnet-rs"):
        found = peer in row
        cells += [f"{row[peer]:.2f}", f"{1e3 * row[f'{peer}_slowest']:.1f}"] if found else ["-", "-"]
        cells.append(f"{row[f'{peer}_ratio']:.1f}" if found else "-")
        if peer != "glmnet":
            cells.append(str(row.get(f"{peer}_unfinished", "-")))
    return cells
