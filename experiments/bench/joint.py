"""Joint impute-then-regress: the speed of its search, and its gain over mean imputation.

* The inner search of Algorithm 2, accelerated against plain, on the same fitted f and with the same moves (compared).
* Least squares on 200,000 rows with censored values, against the affine intercept by least squares, the best linear
  model with constant imputation in training.
* Untuned predictors on generated data: R2 on test rows minus that with the mean imputed, for ``algorithm="auto"``, for
  the mean with indicators, and for missing values left to the predictor.
* A random forest tuned over trees and depths, against scikit-learn's grid search on the same folds.

All times are CPU seconds of one thread.
"""

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBRegressor

from admiss import JointImputeRegressor
from admiss.baselines import GRIDS, TunedRegressor
from admiss.datasets import make_synthetic
from admiss.joint import JointProblem, PaperSearch
from admiss.joint.paper_search import inner_search
from admiss.study.report.sections import markdown
from experiments.bench.records import footer, measured, timed

PREDICTORS: dict[str, Callable[[], Any]] = {
    "linear": LinearRegression,
    "tree": partial(DecisionTreeRegressor, max_depth=6, random_state=0),
    "forest": partial(RandomForestRegressor, 50, random_state=0),
    "xgboost": partial(XGBRegressor, n_estimators=50, n_jobs=1, random_state=0),
}
MECHANISMS = ("mcar", "censoring")
# Seeds from here on were not used for tuning.
FIRST_SEED = 1000


def run(folder: Path, *, quick: bool = False) -> str:
    """Run the missing measurements, and return the report."""
    n, large, sizes, seeds = (100, 2000, (100,), 2) if quick else (1000, 200_000, (200, 1000), 12)
    features = (10,) if quick else (10, 30)
    grid = {"n_estimators": [5, 10], "max_depth": [2, 4]} if quick else GRIDS["authors"]["forest"]
    searches = {
        f"search-{f}-{d}-{mechanism}": partial(search_speed, f, n, d, mechanism)
        for f, d, mechanism in product(PREDICTORS, features, MECHANISMS)
    }
    linear = {f"large-{p}": partial(large_linear, large, p) for p in (0.3, 0.5)}
    gains = {
        f"gain-{mechanism}-{signal}-{rows}-{seed}": partial(gain, mechanism, signal, rows, seed)
        for mechanism, signal, rows in product(MECHANISMS, ("linear", "nn"), sizes)
        for seed in range(FIRST_SEED, FIRST_SEED + seeds)
    }
    records = measured(folder, {**searches, **linear, **gains, "forest": partial(forest_tuning, n, grid)})
    parts = [[records[name] for name in names] for names in (searches, linear, gains)]
    return report(parts[0], parts[1], parts[2], records["forest"])


def search_speed(f: str, n: int, d: int, mechanism: str) -> dict[str, Any]:
    """Time the inner searches of all outer rounds of Algorithm 2, plain and accelerated."""
    data = make_synthetic(n=n, d=d, rank=d // 2, mechanism=mechanism, n_test=1, random_state=0)
    problem = JointProblem(data.X_train, data.y_train, np.ones(n), PREDICTORS[f](), "squared")
    search = PaperSearch()
    mu, step = search.start(problem)
    seconds, moves = {True: 0.0, False: 0.0}, 0
    inner_search(problem, problem.fit(mu), mu, step, search.orders(problem, np.random.RandomState(0))[:1])
    for _ in range(search.outer_rounds):
        fitted = problem.fit(mu)
        orders = search.orders(problem, np.random.RandomState(0))
        found = {}
        for accelerated in (False, True):
            search_once = partial(inner_search, problem, fitted, mu, step, orders, accelerated)
            spent, found[accelerated] = timed(search_once)
            seconds[accelerated] += spent
        if found[True].moves != found[False].moves:
            raise AssertionError("the accelerated search made other moves")
        mu, moves = found[True].mu, moves + len(found[True].moves)
        if not found[True].moves:
            break
    return {"f": f, "d": d, "mechanism": mechanism, "plain": seconds[False], "fast": seconds[True], "moves": moves}


def large_linear(n: int, p: float) -> dict[str, Any]:
    """Fit least squares on many rows with censored values."""
    data = make_synthetic(n=n, mechanism="censoring", missing_fraction=p, random_state=FIRST_SEED)
    seconds, auto = timed(lambda: JointImputeRegressor(random_state=0).fit(data.X_train, data.y_train))
    paper = JointImputeRegressor(algorithm="paper").fit(data.X_train, data.y_train)
    mean = make_pipeline(SimpleImputer(), LinearRegression()).fit(data.X_train, data.y_train)
    affine = make_pipeline(SimpleImputer(add_indicator=True), LinearRegression()).fit(data.X_train, data.y_train)
    models = {"auto": auto, "paper": paper, "mean": mean, "affine": affine}
    scores = {name: model.score(data.X_test, data.y_test) for name, model in models.items()}
    return {"n": n, "p": p, "seconds": seconds, **scores}


def gain(mechanism: str, signal: str, n: int, seed: int) -> dict[str, Any]:
    """R2 on test rows of each untuned predictor, by the treatment of missing values."""
    data = make_synthetic(n=n, signal=signal, mechanism=mechanism, missing_fraction=0.3, random_state=seed)
    result: dict[str, Any] = {"mechanism": mechanism, "signal": signal, "n": n, "seed": seed}
    for name, make in PREDICTORS.items():
        models = {
            "mean": make_pipeline(SimpleImputer(), make()),
            "auto": JointImputeRegressor(make(), random_state=seed),
            "indicators": make_pipeline(SimpleImputer(add_indicator=True), make()),
        }
        if name != "linear":
            models["native"] = make()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about features never observed in a small sample
            for way, model in models.items():
                fitted = model.fit(data.X_train, data.y_train)
                result[f"{name}/{way}"] = fitted.score(data.X_test, data.y_test)
    return result


def forest_tuning(n: int, grid: dict[str, list[Any]]) -> dict[str, Any]:
    """Tune a forest from one fit per fold, and cell by cell."""
    data = make_synthetic(n=n, n_test=1, random_state=0)
    folds = list(KFold(5, shuffle=True, random_state=0).split(data.X_train))
    tuned = TunedRegressor("forest", grid=grid, cv=folds, random_state=0)
    seconds, _ = timed(lambda: tuned.fit(data.X_train, data.y_train))
    plain = GridSearchCV(RandomForestRegressor(random_state=0), grid, cv=folds, scoring="r2")
    plain_seconds, _ = timed(lambda: plain.fit(data.X_train, data.y_train))
    by_cell = dict(zip(map(_cell, plain.cv_results_["params"]), plain.cv_results_["mean_test_score"], strict=True))
    table = tuned.cv_results_
    read = {_cell({name: table[name][row] for name in grid}): table["mean_score"][row] for row in range(table.n_rows)}
    return {
        "seconds": seconds, "plain": plain_seconds, "fits": tuned.n_fits_, "cells": len(by_cell),
        "difference": max(abs(read[cell] - by_cell[cell]) for cell in by_cell),
        "same choice": _cell(tuned.best_params_) == _cell(plain.best_params_),
    }  # fmt: skip


def _cell(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={parameters[name]}" for name in sorted(parameters))


def report(
    searches: list[dict[str, Any]],
    linear: list[dict[str, Any]],
    gains: list[dict[str, Any]],
    forest: dict[str, Any],
) -> str:
    """The measurements as tables."""
    lines = []
    rows = []
    for f in PREDICTORS:
        cells = [row for row in searches if row["f"] == f]
        ratios = [row["plain"] / row["fast"] for row in cells]
        moves = ", ".join(f"{row['moves']:,}" for row in cells)
        rows.append([f, f"{median(ratios):.1f}", f"{min(ratios):.1f}", moves])
    lines += markdown(["f", "plain / accelerated, median", "least", "moves (by d and mechanism)"], rows)
    lines += ["", *markdown(
        ["rows", "missing", "auto", "affine intercept by least squares", "Algorithm 2", "mean", "auto, s"],
        [[f"{row['n']:,}", f"{row['p']:.0%}", *(f"{row[way]:.4f}" for way in ("auto", "affine", "paper", "mean")),
          f"{row['seconds']:.1f}"] for row in linear],
    ), ""]  # fmt: skip
    rows = []
    for mechanism in MECHANISMS:
        for f in PREDICTORS:
            cells = [row for row in gains if row["mechanism"] == mechanism]
            row = [mechanism, f, f"{np.mean([cell[f'{f}/mean'] for cell in cells]):.3f}"]
            for way in ("auto", "indicators", "native"):
                known = f"{f}/{way}" in cells[0]
                differences = [cell[f"{f}/{way}"] - cell[f"{f}/mean"] for cell in cells] if known else []
                row.append(_mean(differences) if known else "-")
            rows.append(row)
    lines += markdown(["missing", "f", "R2, mean", "auto", "mean and indicators", "native"], rows)
    lines += [
        "",
        f"Tuning a forest over {forest['cells']} cells and 5 folds: {forest['seconds']:.1f} s with {forest['fits']} "
        f"fits, cell by cell {forest['plain']:.1f} s: {forest['plain'] / forest['seconds']:.1f} x; largest difference "
        f"of a score {forest['difference']:.0e}, {'the same' if forest['same choice'] else 'another'} cell chosen.",
        "",
        footer(),
    ]
    return "\n".join(lines)


def _mean(values: list[float]) -> str:
    return f"{np.mean(values):+.4f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.4f}"
