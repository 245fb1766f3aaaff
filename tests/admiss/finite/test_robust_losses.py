"""Finite models under the absolute, quantile and Huber losses on data that leave little to fit."""

import numpy as np
import pytest

from admiss import FiniteRegressor
from admiss.partition import BoxPartition, Greedy, OptimalTree
from formulations.losses import Quantile


@pytest.mark.parametrize("loss", ["absolute", "quantile", "huber", Quantile(0.9)], ids=str)
@pytest.mark.parametrize("partitioner", [Greedy(), OptimalTree(2), BoxPartition(2)], ids=lambda p: type(p).__name__)
def test_nothing_observed_leaves_the_best_constant(loss, partitioner):
    y = np.random.default_rng(0).standard_t(2, size=31)
    X = np.full((31, 3), np.nan)
    with pytest.warns(UserWarning, match="Never observed"):
        model = FiniteRegressor(partitioner, loss=loss).fit(X, y)
    level = {"absolute": 0.5, "quantile": 0.5}.get(loss, 0.9)
    if loss != "huber":
        assert model.predict(X) == pytest.approx(np.full(31, np.sort(y)[int(level * 31)]))
    assert model.n_leaves_ == 1


@pytest.mark.parametrize("loss", ["absolute", "quantile", "huber"])
@pytest.mark.parametrize("ridge", [0.0, 1e-12, 1.0])
def test_ill_conditioned_tables_are_fitted(loss, ridge):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    X[:, 1], X[:, 2], y = X[:, 0], 1e6 + X[:, 2], 1e6 + X[:, 0] + rng.standard_t(1.5, size=60)
    X = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    s = 10.0 ** rng.uniform(-6, 6, size=60)
    for partitioner in (Greedy(1, min_rows=3), OptimalTree(1, min_rows=3)):
        model = FiniteRegressor(partitioner, ridge, loss=loss).fit(X, y, s)
        assert np.isfinite(model.predict(X)).all()
        assert model.certificate_.bound <= model.certificate_.objective < np.inf
