"""Rows to fit, to calibrate and to test: generated ones with known mechanisms and shifts, and real sets.

    ConformalDraw   six correlated normal features, of which two are active; y is linear with noise
    ConformalSet    a real set with its own missing values and target, split at random

Mechanisms of the generated rows, for every feature: ``mcar`` (20 %), ``censoring`` (the largest 20 %), ``target``
(10 %, and 50 % among the largest quarter of y). Shifts of the test rows:

    none        the law of the calibration rows
    one         the first feature is missing in 40 % of the rows instead of 10 %          (MCAR only)
    all         every feature is missing in 40 % of the rows instead of 10 %              (MCAR only)
    gone        the first feature is missing in every row

The guarantee of the basis (1, m) includes a shift if its density ratio is linear in m and the law of (X, Y) given M
stays: ``one``, and ``gone`` under MCAR. It does not include ``all``, whose ratio is a product, nor ``gone`` under
censoring, where the rows that lose the feature are not those that lacked it.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.stats import norm

from admiss.datasets import load_dataset
from admiss.study import instance_seed
from experiments.studies.methods.rows import StudyRows, Task
from formulations.arrays import BoolArray, FloatArray

FEATURES, CORRELATION, WEIGHTS, NOISE = 6, 0.3, (2.0, 1.5, 0.0, 0.0, 0.0, 0.0), 1.0
FIT_ROWS, TEST_ROWS = 1000, 1000
SHARE, LOW, HIGH = 0.2, 0.1, 0.4
# Shifts that the basis (1, m) includes.
INCLUDED = (("mcar", "one"), ("mcar", "gone"))


@dataclass(frozen=True)
class ConformalDraw:
    """Generated rows.

    Attributes
    ----------
    mechanism : {"mcar", "censoring", "target"}
    shift : {"none", "one", "all", "gone"}
    n : int
        Calibration rows.
    replicate : int
    """

    mechanism: str
    shift: str
    n: int
    replicate: int = 0

    def make(self) -> StudyRows:
        """Make the rows; the last ``n`` training rows calibrate."""
        rng = np.random.default_rng(instance_seed(self))
        covariance = CORRELATION + (1 - CORRELATION) * np.eye(FEATURES)
        before = FIT_ROWS + self.n
        X = rng.multivariate_normal(np.zeros(FEATURES), covariance, size=before + TEST_ROWS)
        y = X @ WEIGHTS + NOISE * rng.normal(size=len(X))
        spread = float(np.sqrt(np.asarray(WEIGHTS) @ covariance @ WEIGHTS + NOISE**2))
        M = self._missing(X, y / spread, rng.uniform(size=X.shape), np.arange(len(X)) >= before)
        X = np.where(M, np.nan, X)
        facts = {"task": "regression", "n_calibration": self.n, "d": FEATURES}
        return StudyRows(X[:before], y[:before], X[before:], y[before:], None, None, "regression", facts)

    def _missing(self, X: FloatArray, y: FloatArray, draws: FloatArray, is_test: BoolArray) -> BoolArray:
        """Patterns for features of variance 1, a target of variance 1, uniform draws and the test rows."""
        if self.mechanism == "censoring":
            M = X > norm.ppf(1 - SHARE)
        elif self.mechanism == "target":
            M = draws < np.where(y > norm.ppf(0.75), 0.5, 0.1)[:, None]
        else:
            share = np.full(X.shape, SHARE if self.shift in ("none", "gone") else LOW)
            n_shifted = {"one": 1, "all": FEATURES}.get(self.shift, 0)
            share[is_test, :n_shifted] = HIGH
            M = draws < share
        if self.shift == "gone":
            M[is_test, 0] = True
        return M


@dataclass(frozen=True)
class ConformalSet:
    """A real set.

    Attributes
    ----------
    dataset : str
    split : int
        40 % of the rows fit, 30 % calibrate and 30 % test.
    max_rows : int
    """

    dataset: str
    split: int = 0
    max_rows: int = 3000

    def make(self) -> StudyRows:
        """Make the rows; raises ``DataUnavailableError`` if the data set cannot be loaded."""
        data = load_dataset(self.dataset)
        if data.y is None or data.task is None:
            raise ValueError(f"{self.dataset} has no target.")
        order = np.random.default_rng(instance_seed(self)).permutation(len(data.y))[: self.max_rows]
        X, y = data.X[order], data.y[order]
        before, n = round(0.7 * len(y)), round(0.3 * len(y))
        facts = {"task": data.task, "n_calibration": n, "d": X.shape[1]}
        return StudyRows(X[:before], y[:before], X[before:], y[before:], None, None, cast(Task, data.task), facts)
