"""Conformal sets around one boosting model, which all methods but the last share.

    split             phi = 1
    class             the basis "auto": (1, m) if it has at most 2 % as many functions as rows, else (1, |m|)
    class (1, m)      always
    MDA-exact, MDA-nested
    split, mean       split conformal prediction of a model of mean-imputed features: what mapie computes there. Its
                      rule, the order statistic of rank ceil((1 - a)(n + 1)), is that of phi = 1; mapie is not needed.

A cell holds the coverage of the test rows, the mean width of finite intervals as a share of the standard deviation of y
(the mean size of sets for classes), the share of infinite ones, and the counts by feature and by pattern from which
coverage is pooled over draws.
"""

import json
import time
import warnings
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from admiss import PatternConformalClassifier, PatternConformalRegressor
from admiss.intervals.basis import resolve_basis
from admiss.patterns import PatternTable, pattern_name
from admiss.study import Scores
from experiments.studies.methods.rows import StudyRows

LEVEL = 0.9
ITERATIONS = 60
METHODS: dict[str, dict[str, Any]] = {
    "split": {"basis": "constant"},
    "class": {"basis": "auto"},
    "class (1, m)": {"basis": "features"},
    "MDA-exact": {"method": "mda_exact"},
    "MDA-nested": {"method": "mda_nested"},
    "split, mean": {"basis": "constant", "imputed": True},
}


def cover(
    rows: StudyRows, seed: int, *, imputed: bool = False, basis: str = "constant", method: str = "class"
) -> Scores:
    """Fit the model once, calibrate it with a method, and count the covered test rows."""
    n_fit = len(rows.y_train) - rows.facts["n_calibration"]
    if imputed not in rows.cache:
        rows.cache[imputed] = _model(rows, imputed, seed).fit(rows.X_train[:n_fit], rows.y_train[:n_fit])
    kind = PatternConformalRegressor if rows.task == "regression" else PatternConformalClassifier
    M_fit = np.isnan(rows.X_train[:n_fit])
    name = resolve_basis(basis, rows.facts["n_calibration"], M_fit.shape[1], M_fit).name
    model = kind(rows.cache[imputed], LEVEL, name, method=method, prefit=True)
    known = np.isin(rows.y_train[n_fit:], getattr(rows.cache[imputed], "classes_", rows.y_train))
    start = time.process_time()
    model.conformalize(rows.X_train[n_fit:][known], rows.y_train[n_fit:][known])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # infinite sets are counted
        if rows.task == "regression":
            interval = model.predict_interval(rows.X_test)[1][:, :, 0]
            covered = (interval[:, 0] <= rows.y_test) & (rows.y_test <= interval[:, 1])
            sizes = (interval[:, 1] - interval[:, 0]) / rows.y_test.std()
        else:
            sets = model.predict_set(rows.X_test)[1][:, :, 0]
            covered = (sets & (rows.y_test[:, None] == model.classes_)).any(axis=1)
            sizes = np.where(sets.all(axis=1), np.inf, sets.sum(axis=1))
    seconds = time.process_time() - start
    finite = np.isfinite(sizes)
    return {
        **rows.facts,
        "score": float(covered.mean()),
        "width": float(sizes[finite].mean()) if finite.any() else None,
        "infinite": float(1 - finite.mean()),
        "counts": json.dumps(_counts(np.isnan(rows.X_test), covered)),
        "basis": model.basis_.name,
        "seconds": seconds,
    }


def _model(rows: StudyRows, imputed: bool, seed: int) -> Any:
    regression = rows.task == "regression"
    boosting = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    model = boosting(max_iter=ITERATIONS, random_state=seed % 2**31)
    return make_pipeline(SimpleImputer(keep_empty_features=True), model) if imputed else model


def _counts(M: Any, covered: Any) -> dict[str, list[int]]:
    """Rows and covered rows by feature missing or observed, and by pattern, of groups with rows."""
    d = M.shape[1]
    groups = {f"x{j} missing": M[:, j] for j in range(d)} | {f"x{j} observed": ~M[:, j] for j in range(d)}
    table = PatternTable.of(M)
    names = [f"x{j}" for j in range(d)]
    groups |= {pattern_name(pattern, names): table.codes == p for p, pattern in enumerate(table.patterns) if d <= 8}
    return {name: [int(rows.sum()), int(covered[rows].sum())] for name, rows in groups.items() if rows.any()}
