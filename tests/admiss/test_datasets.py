import numpy as np
import pytest

from admiss.datasets import Censoring, CompletelyAtRandom, make_synthetic


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


def test_the_signal_uses_its_features_only():
    data = make_synthetic(n=500, d=6, rank=6, n_active=2, random_state=0)
    A = np.column_stack([np.ones(500), data.X_full_train])
    w = np.linalg.lstsq(A, data.signal_train, rcond=None)[0]
    assert (np.abs(w[1:]) > 1e-6).sum() == 2
    assert np.all(np.abs(w[1:]) <= 1 + 1e-6)


def test_mechanisms_depend_on_what_they_should():
    X = np.random.RandomState(0).normal(size=(20_000, 3))
    M = Censoring(0.25)(X, np.random.RandomState(0))
    assert X[M[:, 0], 0].min() > X[~M[:, 0], 0].max()
    M = CompletelyAtRandom(0.25)(X, np.random.RandomState(0))
    assert abs(np.corrcoef(M[:, 0], X[:, 0])[0, 1]) < 5 / np.sqrt(20_000)
    assert abs(np.corrcoef(M[:, 0], M[:, 1])[0, 1]) < 5 / np.sqrt(20_000)


def test_same_seed_same_data_and_own_mechanism():
    first, second = make_synthetic(n=50, random_state=7), make_synthetic(n=50, random_state=7)
    np.testing.assert_array_equal(first.X_train, second.X_train)
    np.testing.assert_array_equal(first.y_test, second.y_test)
    assert not np.array_equal(first.y_train, make_synthetic(n=50, random_state=8).y_train)
    own = make_synthetic(n=50, mechanism=lambda X, random_state: X < 0, random_state=7)
    assert (np.nan_to_num(own.X_train) >= 0).all()


@pytest.mark.parametrize(
    "bad",
    [
        {"signal": "cubic"},
        {"mechanism": "mar"},
        {"missing_fraction": 1.5},
        {"n_active": 11},
        {"n": 0},
        {"protocol": "x"},
    ],
)
def test_bad_arguments(bad):
    with pytest.raises(ValueError, match="choose|between 0 and 1|needs"):
        make_synthetic(**bad)
