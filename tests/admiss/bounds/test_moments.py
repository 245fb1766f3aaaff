"""Biases by second moments: against least squares over enumerated populations, and against simulated rows."""

import numpy as np
import pytest

from admiss.bounds import moment_bias
from admiss.bounds.counts import all_patterns, read_class
from admiss.bounds.taylor import independent_law


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
    return float(((y - A @ np.linalg.lstsq(A, y, rcond=1e-10)[0]) ** 2).sum())


def enumerated(adaptivity, mean, C, beta, patterns, probabilities):
    """The excess risk over the best linear model of each pattern, by least squares on the package's own columns."""
    full = population(mean, C)
    rows = np.tile(full, (len(patterns), 1))
    M = np.repeat(patterns.astype(bool), len(full), axis=0)
    weights = np.repeat(probabilities / len(full), len(full))
    y = (rows - mean) @ beta
    X = np.where(M, np.nan, rows)
    columns = read_class(adaptivity, len(mean)).fit(X, M).columns(X, M)
    columns = columns.toarray() if hasattr(columns, "toarray") else columns
    best = 0.0
    for m in np.flatnonzero(probabilities):
        own = slice(m * len(full), (m + 1) * len(full))
        observed = np.column_stack([np.ones(len(full)), np.where(M[own], 0.0, rows[own])])
        best += least_squares_risk(observed, y[own], weights[own])
    return least_squares_risk(np.asarray(columns), y, weights) - best


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
    for kind, largest in (("full", 3), ("low rank", 2)):
        C = covariance_of(kind, d, rng)
        mean, beta, rates = rng.normal(size=d), rng.normal(size=d), rng.uniform(0.05, 0.6, d)
        for F in classes(d, largest):
            found = moment_bias(F, (mean, C), missing=rates, beta=beta).value
            expected = enumerated(F, mean, C, beta, all_patterns(d), independent_law(rates))
            assert abs(found - expected) <= 1e-12 * (beta @ C @ beta), F
