import subprocess
import sys

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from admiss.datasets import make_synthetic
from admiss.datasets.generated import draw_signal


@pytest.mark.parametrize("signal", ["linear", "nn"])
@pytest.mark.parametrize("mechanism", ["mcar", "censoring"])
def test_shapes_rates_and_noise(signal, mechanism):
    data = make_synthetic(n=3000, signal=signal, mechanism=mechanism, missing_fraction=0.4, n_test=7000, random_state=3)
    X, full = np.vstack([data.X_train, data.X_test]), np.vstack([data.X_full_train, data.X_full_test])
    y, f = np.append(data.y_train, data.y_test), np.append(data.signal_train, data.signal_test)
    M = np.isnan(X)
    assert X.shape == (10_000, 10)
    np.testing.assert_array_equal(X[~M], full[~M])
    five_errors = 5 * np.sqrt(0.24 / 10_000)
    np.testing.assert_allclose(M.mean(axis=0), 0.4, atol=1e-9 if mechanism == "censoring" else five_errors)
    assert 1 - np.var(y - f) / np.var(y) == pytest.approx(data.ceiling, abs=0.02)
    assert np.var(f) / np.var(y - f) == pytest.approx(2.0, rel=0.08)
    values = np.linalg.svd(full - full.mean(axis=0), compute_uv=False)
    assert values[4] > 100 * values[5]


@pytest.mark.parametrize("signal", ["linear", "nn", "tree"])
@pytest.mark.parametrize("mechanism", ["mcar", "mar", "self_masking", "censoring", "blocks"])
def test_protocol_of_the_authors(signal, mechanism):
    data = make_synthetic(n=4000, signal=signal, mechanism=mechanism, protocol="authors", n_test=6000, random_state=1)
    full = np.vstack([data.X_full_train, data.X_full_test])
    y, f = np.append(data.y_train, data.y_test), np.append(data.signal_train, data.signal_test)
    assert np.abs(full.mean(axis=0)).max() > 0.3
    assert np.linalg.norm(f) / np.linalg.norm(y - f) == pytest.approx(2.0, rel=1e-9)
    assert data.ceiling <= 0.8
    assert 1 - np.var(y - f) / np.var(y) == pytest.approx(data.ceiling, abs=0.02)
    values = np.linalg.svd(full - full.mean(axis=0), compute_uv=False)
    assert values[5] < 1e-5 * values[4]
    rates = np.vstack([data.M_train, data.M_test]).mean(axis=0)
    np.testing.assert_allclose(rates[1:], 0.3, atol=5 * np.sqrt(0.21 / 10_000))
    if mechanism == "censoring":
        M = np.vstack([data.M_train, data.M_test])
        high = [full[M[:, j], j].min() > full[~M[:, j], j].max() for j in range(10)]
        low = [full[M[:, j], j].max() < full[~M[:, j], j].min() for j in range(10)]
        assert all(np.array(high) ^ np.array(low))
        assert 0 < sum(high) < 10


def test_the_tree_is_a_tree():
    data = make_synthetic(n=3000, d=6, rank=6, n_active=3, signal="tree", n_test=10, random_state=5)
    X, f = data.X_full_train, data.signal_train
    values = np.unique(f)
    assert len(values) == 16
    used = DecisionTreeRegressor(random_state=0).fit(X, f).feature_importances_ > 1e-12
    assert used.sum() == 3
    # The leaves are boxes: none contains a row of another one.
    for value in values:
        leaf = X[f == value][:, used]
        inside = ((leaf.min(axis=0) <= X[:, used]) & (X[:, used] <= leaf.max(axis=0))).all(axis=1)
        assert (f[inside] == value).all()


@pytest.mark.parametrize("X", [np.zeros((5, 2)), np.eye(3), np.ones((1, 1))])
def test_a_tree_on_few_or_equal_rows(X):
    f = draw_signal("tree", X, np.random.RandomState(0))
    assert len(f) == len(X)
    assert np.isfinite(f).all()


def test_the_signal_uses_its_features_only():
    data = make_synthetic(n=500, d=6, rank=6, n_active=2, random_state=0)
    A = np.column_stack([np.ones(500), data.X_full_train])
    w = np.linalg.lstsq(A, data.signal_train, rcond=None)[0]
    assert (np.abs(w[1:]) > 1e-6).sum() == 2
    assert np.all(np.abs(w[1:]) <= 1 + 1e-6)


def test_same_seed_same_data_and_own_mechanism():
    first, second = make_synthetic(n=50, random_state=7), make_synthetic(n=50, random_state=7)
    np.testing.assert_array_equal(first.X_train, second.X_train)
    np.testing.assert_array_equal(first.y_test, second.y_test)
    assert not np.array_equal(first.y_train, make_synthetic(n=50, random_state=8).y_train)
    own = make_synthetic(n=50, mechanism=lambda X, random_state: X < 0, random_state=7)
    assert (np.nan_to_num(own.X_train) >= 0).all()


@pytest.mark.parametrize(
    "bad",
    [{"signal": "cubic"}, {"mechanism": "x"}, {"missing_fraction": 2}, {"n_active": 11}, {"n": 0}, {"protocol": "x"}],
)
def test_bad_arguments(bad):
    with pytest.raises(ValueError, match="choose|between 0 and 1|must be"):
        make_synthetic(**bad)


def test_the_data_of_the_paper_are_imported_only_when_asked_for():
    code = """
import sys
import admiss.datasets
loaded = [name for name in sys.modules if name.startswith("admiss.datasets.paper")]
every = [getattr(admiss.datasets, name).__module__ for name in admiss.datasets.__all__ if name != "Mechanism"]
print(loaded, "admiss.datasets.paper.instances" in every)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "True"]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sys.modules["admiss.datasets"].nothing  # noqa: B018
