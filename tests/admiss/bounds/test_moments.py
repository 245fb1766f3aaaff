"""Biases by second moments: against least squares over enumerated populations, and against simulated rows."""

import numpy as np
import pytest
from scipy.linalg import lstsq

from admiss.adaptivity import Adaptivity
from admiss.bounds import (
    BoundSetting,
    bias_bound,
    crossover,
    design_moments,
    generalization_bound,
    moment_bias,
    moment_gain,
    recommend,
)
from admiss.bounds import moments as by_moments
from admiss.bounds.counts import all_patterns, dense, read_class
from admiss.laws import fit_law
from tests.admiss.bounds.lemma_1 import independent_law


def covariance_of(kind, d, rng):
    if kind == "ar":
        C = 0.5 ** np.abs(np.subtract.outer(range(d), range(d)))
    elif kind == "low rank":
        A = rng.normal(size=(d, max(1, d // 2)))
        C = A @ A.T
    elif kind == "copies":
        A = rng.normal(size=(d, d))
        A[-1] = A[0]
        C = A @ A.T
    else:
        A = rng.normal(size=(d, d))
        C = A @ A.T
    return C


def population(mean, C):
    """Equally likely rows with exactly these moments."""
    values, vectors = np.linalg.eigh(C)
    root = vectors * np.sqrt(np.maximum(values, 0.0) * len(C))
    return np.vstack([mean + root.T, mean - root.T])


def least_squares_risk(A, y, weights):
    root = np.sqrt(weights)
    A, y = A * root[:, None], y * root
    norm = np.sqrt((A**2).sum(axis=0))
    A = A[:, norm > 0] / norm[norm > 0]
    # a QR factorisation with pivots, several times faster than the singular values
    return float(((y - A @ lstsq(A, y, cond=1e-10, lapack_driver="gelsy")[0]) ** 2).sum())


def enumerated(adaptivity, mean, C, beta, patterns, probabilities):
    """The excess risk over the best linear model of each pattern, by least squares on the package's own columns."""
    full = population(mean, C)
    rows = np.tile(full, (len(patterns), 1))
    M = np.repeat(patterns.astype(bool), len(full), axis=0)
    weights = np.repeat(probabilities / len(full), len(full))
    y = (rows - mean) @ beta
    X = np.where(M, np.nan, rows)
    columns = dense(read_class(adaptivity, len(mean)).fit(X, M).columns(X, M))
    best = 0.0
    for m in np.flatnonzero(probabilities):
        own = slice(m * len(full), (m + 1) * len(full))
        observed = np.column_stack([np.ones(len(full)), np.where(M[own], 0.0, rows[own])])
        best += least_squares_risk(observed, y[own], weights[own])
    return least_squares_risk(columns, y, weights) - best


def classes(d, largest):
    return ["static", "affine_intercept", "affine", *(("polynomial", t) for t in range(2, largest + 1))]


@pytest.mark.parametrize("kind", ["full", "ar", "low rank", "copies"])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_moments_agree_with_enumeration(d, kind):
    rng = np.random.default_rng([d, len(kind)])
    C = covariance_of(kind, d, rng)
    rates = rng.uniform(0.1, 0.9, d)
    if d > 2:
        rates[1], rates[2] = 0.0, 1.0
    mean, beta = rng.normal(size=d), rng.normal(size=d)
    for centre in (mean, np.zeros(d)):
        for F in classes(d, d):
            found = moment_bias(F, (centre, C), missing=rates, beta=beta)
            expected = enumerated(F, centre, C, beta, all_patterns(d), independent_law(rates))
            assert found.standard_error == 0
            assert abs(found.value - expected) <= 1e-12 * (beta @ C @ beta), (F, found.value, expected)


@pytest.mark.slow
@pytest.mark.parametrize("d", [6, 7, 8])
def test_moments_agree_with_enumeration_of_more_features(d):
    rng = np.random.default_rng(d)
    for kind, largest in (("full", {6: 6, 7: 4, 8: 3}[d]), ("low rank", 2)):
        C = covariance_of(kind, d, rng)
        mean, beta, rates = rng.normal(size=d), rng.normal(size=d), rng.uniform(0.05, 0.6, d)
        for F in classes(d, largest):
            found = moment_bias(F, (mean, C), missing=rates, beta=beta).value
            expected = enumerated(F, mean, C, beta, all_patterns(d), independent_law(rates))
            assert abs(found - expected) <= 1e-12 * (beta @ C @ beta), F


class CountAdaptive(Adaptivity):
    """Weights affine in the number of missing features."""

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), M.sum(axis=1)])


def test_any_class_and_any_law_of_patterns():
    rng = np.random.default_rng(0)
    d = 4
    C, mean, beta = covariance_of("full", d, rng), rng.normal(size=d), rng.normal(size=d)
    rates = rng.uniform(0.1, 0.5, d)
    found = moment_bias(CountAdaptive(), (mean, C), missing=rates, beta=beta).value
    assert found == pytest.approx(enumerated(CountAdaptive(), mean, C, beta, all_patterns(d), independent_law(rates)))
    # a law of dependent M_j, given by rows
    rows = (rng.uniform(size=(60, d)) < rng.uniform(size=(60, 1))).astype(float)
    law = np.array([np.mean((rows == m).all(axis=1)) for m in all_patterns(d)])
    seen = law > 0
    for F in ("static", "affine_intercept", "affine", ("polynomial", 2), CountAdaptive()):
        found = moment_bias(F, (mean, C), missing=rows, beta=beta).value
        assert found == pytest.approx(enumerated(F, mean, C, beta, all_patterns(d)[seen], law[seen]), abs=1e-10)
    assert moment_bias("fully_adaptive", (mean, C), missing=rows, beta=beta).value == 0.0


def test_the_worst_slopes():
    rng = np.random.default_rng(1)
    d = 6
    for kind in ("full", "low rank"):
        C = covariance_of(kind, d, rng) * np.outer(10.0 ** np.arange(d), 10.0 ** np.arange(d))
        moments = (np.zeros(d), C)
        worst = moment_bias("affine", moments, missing=0.3)
        assert worst.beta @ C @ worst.beta == pytest.approx(1.0)
        assert moment_bias("affine", moments, missing=0.3, beta=worst.beta).value == pytest.approx(worst.value)
        for _ in range(20):
            beta = rng.normal(size=d) / np.sqrt(np.diag(C))
            share = moment_bias("affine", moments, missing=0.3, beta=beta).value / (beta @ C @ beta)
            assert share <= worst.value * (1 + 1e-9)
    # as a share of Var(beta'X): d = 10, 30 % missing
    C = covariance_of("ar", 10, rng)
    shares = [moment_bias(("polynomial", t), (np.zeros(10), C), missing=0.3).value for t in (0, 1, 2)]
    assert shares == pytest.approx([0.106, 0.004, 0.0002], abs=5e-4)


def test_units_and_constant_features_do_not_matter():
    rng = np.random.default_rng(2)
    C, beta = covariance_of("full", 4, rng), rng.normal(size=4)
    scale = np.array([1e-8, 1.0, 1e5, 1e9])
    plain = moment_bias("affine", (np.ones(4), C), missing=0.3, beta=beta).value
    scaled = moment_bias("affine", (scale, C * np.outer(scale, scale)), missing=0.3, beta=beta / scale).value
    assert scaled == pytest.approx(plain, rel=1e-9)
    wider = np.zeros((6, 6))
    wider[:4, :4] = C
    for value in (0.0, 3.0):  # two constant features
        moments = (np.concatenate([np.zeros(4), [value, value]]), wider)
        found = moment_bias("static", moments, missing=[0.3] * 4 + [0.0] * 2, beta=np.append(beta, [1.0, 2.0])).value
        assert found == pytest.approx(moment_bias("static", (np.zeros(4), C), missing=0.3, beta=beta).value)
    assert moment_bias("static", (np.zeros(3), np.zeros((3, 3))), missing=0.5).value == 0.0


def test_gains_are_differences_of_biases():
    rng = np.random.default_rng(3)
    C, mean, beta = covariance_of("ar", 7, rng), rng.normal(size=7), rng.normal(size=7)
    known = {"moments": (mean, C), "missing": 0.2, "beta": beta}
    biases = {F: moment_bias(F, **known).value for F in ("static", "affine", ("polynomial", 2), "fully_adaptive")}
    for poor, rich in (("static", "affine"), ("affine", ("polynomial", 2)), ("affine", "fully_adaptive")):
        assert moment_gain(poor, rich, **known) == pytest.approx(biases[poor] - biases[rich], rel=1e-9)
        assert moment_gain(rich, poor, **known) == pytest.approx(biases[rich] - biases[poor], rel=1e-9)
    setting = BoundSetting(7, 1.0, 2.0, bias="moments", **known)
    n = crossover(setting, "static", "affine")
    same = crossover(BoundSetting(7, 1.0, 2.0, bias=(biases["static"], biases["affine"])), "static", "affine")
    assert n == pytest.approx(same, rel=1e-9)
    assert crossover(setting, "affine", "static") == pytest.approx(n)
    # the default classes are ranked by it, too
    ranking = recommend(setting, 10**6)
    assert {bound.name: bound.b for bound in ranking.ranking}["affine"] == pytest.approx(biases["affine"])


def test_conjugate_gradients_agree_with_the_factor(monkeypatch):
    rng = np.random.default_rng(4)
    for kind in ("full", "low rank"):
        moments = (rng.normal(size=6), covariance_of(kind, 6, rng))
        factorised = moment_bias(("polynomial", 2), moments, missing=0.2).value
        monkeypatch.setattr(design_moments, "FACTORISED", 10)
        assert moment_bias(("polynomial", 2), moments, missing=0.2).value == pytest.approx(factorised, rel=1e-7)
        monkeypatch.undo()


def test_drawn_patterns_agree_with_all_patterns(monkeypatch):
    rng = np.random.default_rng(5)
    known = {"moments": (np.zeros(8), covariance_of("full", 8, rng)), "missing": 0.3, "beta": rng.normal(size=8)}
    exact = moment_bias("affine", **known)
    monkeypatch.setattr(by_moments, "ENUMERATED", 3)
    drawn = moment_bias("affine", **known, draws=4000)
    assert 0 < drawn.standard_error
    assert abs(drawn.value - exact.value) < 4 * drawn.standard_error
    assert moment_bias("affine", **known, draws=4000).value == drawn.value
    assert "standard error" in drawn.note
    assert "±" in str(drawn)
    assert moment_bias("fully_adaptive", **known).value == moment_bias("fully_adaptive", **known).standard_error == 0


def test_twenty_features():
    C = covariance_of("ar", 20, None)
    found = moment_bias("affine", (np.zeros(20), C), missing=0.3, beta=np.ones(20), draws=2000)
    assert 0 < found.standard_error < 0.02 * np.ones(20) @ C @ np.ones(20)
    # gains are exact at any d
    assert moment_gain("static", "affine", (np.zeros(20), C), missing=0.3, beta=np.ones(20)) > 0


def test_labels_and_errors():
    moments = (np.zeros(3), np.eye(3) + 0.5)
    setting = BoundSetting(3, 1.0, 1.0, bias="moments", moments=moments, missing=0.2)
    text = str(generalization_bound(setting, 100, "static"))
    assert "depends on X or y" in text
    assert "the worst slopes" in text
    assert "not a bound" in text
    rng = np.random.default_rng(6)
    X = rng.normal(size=(200, 3)) + 5
    X[rng.uniform(size=X.shape) < 0.2] = np.nan
    law = fit_law(X, np.ones(200))
    found = moment_bias("static", law, missing=np.isnan(X).mean(axis=0), beta=np.ones(3))
    assert "an estimate" in found.note
    centred = (law.mean - np.nanmean(X, axis=0), law.covariance)
    assert found.value == pytest.approx(moment_bias("static", centred, missing=np.isnan(X).mean(axis=0),
                                                    beta=np.ones(3)).value)  # fmt: skip
    for change, sentence in (
        ({"missing": None}, "needs the law of M"),
        ({"moments": None}, "a pair of a mean and a covariance"),
        ({"moments": (np.zeros(2), np.eye(3))}, "have shapes"),
        ({"moments": (np.zeros(3), -np.eye(3) + 2)}, "positive semidefinite"),
        ({"moments": (np.zeros(3), np.triu(np.ones((3, 3))))}, "symmetric"),
        ({"moments": (np.full(3, np.nan), np.eye(3))}, "finite"),
        ({"beta": np.ones(2)}, "3 finite slopes"),
        ({"beta": [1.0, 2.0, np.inf]}, "3 finite slopes"),
    ):
        options = {"moments": moments, "missing": 0.2, **change}
        with pytest.raises(ValueError, match=sentence) as error:
            bias_bound("static", 3, 1.0, bias="moments", **options)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="more than 200,000 columns"):
        moment_gain(("polynomial", 6), "static", (np.zeros(30), np.eye(30)), missing=0.2)
    with pytest.raises(ValueError, match="up to 12 features"):
        moment_gain(CountAdaptive(), "static", (np.zeros(30), np.eye(30)), missing=0.2)


def simulated(setting, F, rows):
    """The excess of least squares over the best linear predictor of each pattern, without estimation error."""
    rng, mean, C, beta, rates = setting
    d = len(mean)
    values, vectors = np.linalg.eigh(C)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    X = mean + rng.normal(size=(rows, d)) @ root.T
    y = X @ beta + rng.normal(size=rows)
    M = rng.uniform(size=X.shape) < rates
    best = np.full(rows, mean @ beta)
    for m in np.unique(M, axis=0):
        own, o = (M == m).all(axis=1), ~m
        slopes = np.linalg.pinv(C[np.ix_(o, o)], 1e-10, hermitian=True) @ C[o] @ beta
        best[own] += (X[np.ix_(own, o)] - mean[o]) @ slopes
    X = np.where(M, np.nan, X)
    A = np.asarray(read_class(F, d).fit(X, M).columns(X, M))
    Q = np.linalg.qr(A)[0]
    residual = y - Q @ (Q.T @ y)
    # the loss on the fitted rows is too small by the mean of r^2 times the leverage
    corrected = residual**2 * (1 + (Q**2).sum(axis=1)) - (y - best) ** 2
    return corrected.mean(), corrected.std() / np.sqrt(rows)


@pytest.mark.slow
def test_moments_agree_with_simulated_least_squares():
    """20 settings of laws, means, rates and orders."""
    distances = []
    for k in range(20):
        rng = np.random.default_rng([20, k])
        d, t = (4, 5, 6)[k % 3], (0, 1, 0, 2, 1)[k % 5]
        C = covariance_of(("ar", "low rank", "full", "copies")[k % 4], d, rng)
        C /= np.diag(C).mean()
        mean = rng.normal(size=d) * (k % 2)
        beta, rates = rng.normal(size=d), rng.uniform(0.1, 0.5, d)
        expected = moment_bias(("polynomial", t), (mean, C), missing=rates, beta=beta).value
        found, error = simulated((rng, mean, C, beta, rates), ("polynomial", t), 20_000)
        distances.append(abs(found - expected) / error)
    assert max(distances) < 4
    assert np.sum(np.array(distances) < 2) >= 16
