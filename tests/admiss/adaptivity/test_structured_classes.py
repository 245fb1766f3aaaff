"""Classes with a structure on their weights: corrections of low rank, and fused models of patterns."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import clone

from admiss import AdaptiveClassifier, AdaptiveRegressor
from admiss.adaptivity import Affine, FullyAdaptive
from admiss.adaptivity.fused import FusedPatterns
from admiss.adaptivity.low_rank import LowRankAffine
from admiss.bounds import coefficient_count
from formulations.certificate import SolverError

STRUCTURED = [LowRankAffine(0.05), FusedPatterns(0.2)]


def matrix_of(model):
    """W in the units of the scaled features."""
    design = model.design_
    shape = (len(design.features) + 1, design.n_basis)
    return (design.scatter() @ (model.coefficients_ * design.column_scale)).reshape(shape)


@pytest.mark.parametrize("adaptivity", [LowRankAffine(30.0), FusedPatterns(30.0)])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_in_bad_units(adaptivity, seed):
    """A small target and large features: no bound is above a model that is known, and weights count as copies."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(22, 3)) * [1e3, 1.0, 1e-7] + [5e4, 0.0, 1.25]
    X[rng.uniform(size=X.shape) < 0.4] = np.nan
    y, counts = 1e-3 * (2.0 + rng.normal(size=22)), rng.integers(1, 4, size=22)
    model = AdaptiveRegressor(adaptivity, lam=30.0, scale=False)
    weighted = clone(model).fit(X, y, sample_weight=counts.astype(float)).certificate_
    copied = model.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).certificate_
    assert weighted.objective == pytest.approx(copied.objective, rel=1e-6)
    assert (
        max(weighted.bound, copied.bound) <= min(weighted.objective, copied.objective) <= np.var(np.repeat(y, counts))
    )


def test_an_inherited_mark_of_homogeneity_is_lost_with_another_structure():
    class Squared(LowRankAffine):
        def structure(self, W):
            return cp.sum_squares(W[1:, 1:]), []

    assert LowRankAffine().has_homogeneous_structure()
    assert not Squared().has_homogeneous_structure()


def test_contradictory_constraints_and_wrong_returns_are_named():
    class Contradictory(Affine):
        def structure(self, W):
            return 0.0, [W[0, 0] >= 1, W[0, 0] <= 0]

    class OnlyConstraints(Affine):
        def structure(self, W):
            return [W >= 0]

    class OnlyPenalty(Affine):
        def structure(self, W):
            return cp.norm1(W)

    X, y = rank_one_rows(60, 3)
    with pytest.raises(SolverError, match="constraints of the structure contradict each other"):
        AdaptiveRegressor(Contradictory()).fit(X, y)
    for wrong in (OnlyConstraints(), OnlyPenalty()):
        with pytest.raises(ValueError, match=f"{type(wrong).__name__} must return a penalty and a list of constraints"):
            AdaptiveRegressor(wrong).fit(X, y)


# low rank


def rank_one_rows(n, d, seed=0):
    """Rows whose weights have corrections of rank 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    M = rng.uniform(size=X.shape) < 0.4
    W = np.outer(rng.normal(size=d), rng.normal(size=d)) / np.sqrt(0.4 * d)
    f = (np.where(M, 0.0, X) * (rng.normal(size=d) + M @ W.T)).sum(axis=1) + 0.3 * M @ rng.normal(size=d)
    y = f + f.std() / 2 * rng.normal(size=n)
    return np.where(M, np.nan, X), y / y.std()


def objective_at(model, X, y, W, lam, strength):
    """The objective at the matrix [b; w_0, C], with C_jj those of the best diagonal."""
    scale, counts = model.design_.scale, model.design_.adaptivity.counts(np.isnan(X), np.ones(len(X)))
    z, M = np.nan_to_num((X - model.design_.centre) / scale), np.isnan(X).astype(float)
    phi = np.column_stack([np.ones(len(X)), M])
    f = phi @ W[0] + ((phi @ W[1:].T) * z).sum(axis=1)
    ridge = np.divide(lam, counts, out=np.zeros_like(counts), where=counts > 0)
    ridge[0, 0] = 0.0
    nuclear = np.linalg.svd(W[1:, 1:], compute_uv=False).sum()
    return np.mean((y - f) ** 2) + (ridge * W**2).sum() / 2 + strength * nuclear


def proximal_gradient(model, X, y, lam, strength, steps=20_000):
    """Ridge and nuclear norm by accelerated steps with soft thresholding of the singular values; C_jj is free."""
    scale, counts = model.design_.scale, model.design_.adaptivity.counts(np.isnan(X), np.ones(len(X)))
    z = np.column_stack([np.ones(len(X)), np.nan_to_num((X - model.design_.centre) / scale)])
    M = np.isnan(X).astype(float)
    phi = np.column_stack([np.ones(len(X)), M])
    ridge = np.divide(lam, counts, out=np.zeros_like(counts), where=counts > 0)
    ridge[0, 0] = 0.0
    A = (z[:, :, None] * phi[:, None, :]).reshape(len(X), -1)
    step = 1.0 / (2 * np.linalg.norm(A, 2) ** 2 / len(X) + ridge.max())
    W = V = np.zeros(counts.shape)
    for t in range(steps):
        gradient = (2 * A.T @ (A @ V.ravel() - y) / len(X)).reshape(W.shape) + ridge * V
        new = V - step * gradient
        left, sizes, right = np.linalg.svd(new[1:, 1:], full_matrices=False)
        new[1:, 1:] = left * np.maximum(sizes - step * strength, 0.0) @ right
        V = new + t / (t + 3) * (new - W)
        done, W = np.abs(new - W).max() < 1e-13, new
        if done:
            break
    return W


@pytest.mark.parametrize("strength", [0.02, 0.2])
def test_low_rank_certificate_against_proximal_gradient(strength):
    X, y = rank_one_rows(120, 5)
    model = AdaptiveRegressor(LowRankAffine(strength), lam=0.3, adaptive_penalty=1.0).fit(X, y)
    other = proximal_gradient(model, X, y, 0.3, strength)
    least = objective_at(model, X, y, other, 0.3, strength)
    certificate = model.certificate_
    assert certificate.bound <= least + 1e-9
    assert certificate.objective >= least - 1e-9
    assert certificate.objective == pytest.approx(least, rel=1e-7)
    assert certificate.gap < certificate.tolerance
    corrections, expected = matrix_of(model)[1:, 1:], other[1:, 1:] * (1 - np.eye(5))
    np.testing.assert_allclose(corrections, expected, atol=1e-5)


def test_low_rank_objective_is_attained_with_the_best_diagonal():
    """The norm at the fitted corrections, minimised over the diagonal by another solver, is that of the certificate."""
    X, y = rank_one_rows(150, 5, seed=1)
    strength = 0.1
    model = AdaptiveRegressor(LowRankAffine(strength), lam=0.0).fit(X, y)
    W, D = matrix_of(model), cp.Variable(5)
    norm = cp.Problem(cp.Minimize(cp.normNuc(W[1:, 1:] + cp.diag(D)))).solve("SCS", eps_abs=1e-9, eps_rel=1e-9)
    attained = np.mean((y - model.predict(X)) ** 2) + strength * norm
    assert model.certificate_.objective == pytest.approx(attained, rel=1e-6)
    assert norm < np.linalg.svd(W[1:, 1:], compute_uv=False).sum() - 1e-3


def test_rank_falls_with_the_strength():
    X, y = rank_one_rows(200, 6)
    ranks = []
    for strength in (0.003, 0.03, 0.1, 0.3, 3.0):
        W = matrix_of(AdaptiveRegressor(LowRankAffine(strength), lam=0.1).fit(X, y))[1:, 1:]
        D = cp.Variable(6)
        cp.Problem(cp.Minimize(cp.normNuc(W + cp.diag(D)))).solve("CLARABEL")
        ranks.append(int(np.linalg.matrix_rank(W + np.diag(D.value), tol=1e-4)))
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] >= 4
    assert 1 in ranks
    assert ranks[-1] == 0


def test_low_rank_goes_from_affine_to_affine_intercept(make_rows):
    X, y = make_rows(n=150, d=4)
    for strength, limit in ((0.0, "affine"), (1e-9, "affine"), (50.0, "affine_intercept"), (1e6, "affine_intercept")):
        found = AdaptiveRegressor(LowRankAffine(strength), lam=0.4).fit(X, y).predict(X)
        np.testing.assert_allclose(found, AdaptiveRegressor(limit, lam=0.4).fit(X, y).predict(X), atol=2e-5)


def test_low_rank_where_few_features_are_missing(make_rows):
    X, y = make_rows(n=100, d=4)
    X[:, 1:3] = np.nan_to_num(X[:, 1:3])
    assert matrix_of(AdaptiveRegressor(LowRankAffine(0.05)).fit(X, y)).shape == (5, 3)
    complete = np.nan_to_num(X)
    found = AdaptiveRegressor(LowRankAffine(0.05)).fit(complete, y).predict(complete)
    np.testing.assert_allclose(found, AdaptiveRegressor("static").fit(complete, y).predict(complete), atol=1e-6)


# fused


def explicit_edges(patterns):
    """(j, p, q) by definition: patterns with x_j not connected by a path of shorter steps, found by search."""
    edges = []
    for j in range(patterns.shape[1] + 1):
        own = [p for p, m in enumerate(patterns) if j == 0 or not m[j - 1]]
        apart = {(p, q): int((patterns[p] != patterns[q]).sum()) for p in own for q in own if p != q}
        for p in own:
            for q in own:
                if p < q:
                    reached, waiting = {p}, [p]
                    while waiting:
                        a = waiting.pop()
                        new = [b for b in own if b not in reached and apart[a, b] < apart[p, q]]
                        reached.update(new)
                        waiting += new
                    if q not in reached:
                        edges.append((j, p, q))
    return edges


def total_variation(model):
    W, edges = matrix_of(model), model.design_.adaptivity.edges_
    return np.abs(W[edges[:, 0], edges[:, 1]] - W[edges[:, 0], edges[:, 2]]).sum()


def test_edges_are_those_of_all_minimum_spanning_trees():
    for seed in range(5):
        M = np.random.default_rng(seed).uniform(size=(14, 6)) < 0.5
        fitted = FusedPatterns().fit(np.where(M, np.nan, 1.0), M)
        assert list(map(tuple, fitted.edges_.tolist())) == explicit_edges(fitted.patterns_)


@pytest.mark.parametrize("adaptive_penalty", ["auto", 0.0])
@pytest.mark.parametrize(("solver", "loss"), [("CLARABEL", "squared"), ("SCS", "squared"), ("CLARABEL", "absolute")])
def test_fused_program_written_out(make_rows, solver, loss, adaptive_penalty):
    X, y = make_rows(n=90, d=3)
    s = np.random.default_rng(0).uniform(0.5, 2.0, size=90)
    strength, lam = 0.15, 0.7
    settings = {"lam": lam, "l1_ratio": 0.3, "adaptive_penalty": adaptive_penalty, "loss": loss}
    model = AdaptiveRegressor(FusedPatterns(strength), **settings).fit(X, y, s)
    if adaptive_penalty == 0.0:  # every weight depends on the pattern
        lam = 0.0
    patterns, scale, M = model.design_.patterns.patterns, model.design_.scale, np.isnan(X)
    centre = model.design_.centre
    np.testing.assert_allclose(centre, [np.average(x[~m], weights=s[~m]) for x, m in zip(X.T, M.T, strict=True)])
    b = [cp.Variable() for _ in patterns]
    w = [[cp.Variable() for _ in range(3)] for _ in patterns]
    risk, penalty, variation = 0.0, 0.0, 0.0
    for x, target, weight in zip((X - centre) / scale, y, s, strict=True):
        p = [np.array_equal(m, np.isnan(x)) for m in patterns].index(True)
        residual = target - b[p] - sum(w[p][j] * x[j] for j in range(3) if not np.isnan(x[j]))
        risk += weight / s.sum() * (cp.square(residual) if loss == "squared" else cp.abs(residual))
    for p, m in enumerate(patterns):
        n_p = s[(M == m).all(axis=1)].sum()
        for j in np.flatnonzero(~m):
            share = n_p / s[~M[:, j]].sum() ** 2
            penalty += lam * share * (0.3 * cp.abs(w[p][j]) + 0.7 * cp.square(w[p][j]) / 2)
    for j, p, q in explicit_edges(patterns):
        variation += cp.abs(b[p] - b[q] if j == 0 else w[p][j - 1] - w[q][j - 1])
    problem = cp.Problem(cp.Minimize(risk + penalty + strength / len(patterns) * variation))
    options = {"eps_abs": 1e-8, "eps_rel": 1e-8} if solver == "SCS" else {}
    least = problem.solve(solver, **options)
    assert model.certificate_.objective == pytest.approx(least, rel=1e-6)
    assert model.certificate_.bound <= least + 1e-6
    if loss == "squared":
        for p, m in enumerate(patterns):
            expected = [0.0 if m[j] else w[p][j].value / scale[j] for j in range(3)]
            assert model.intercept_at(m) == pytest.approx(b[p].value - expected @ centre, abs=2e-3)
            np.testing.assert_allclose(model.coef_at(m), expected, atol=2e-3)


@pytest.mark.parametrize("lam", [0.0, 0.5])
@pytest.mark.parametrize("strength", [20.0, 1e4])
def test_fused_ends_in_static(make_rows, lam, strength):
    """Also with sparse patterns, few of which are one bit apart, and with new patterns."""
    X, y = make_rows(n=60, d=7, fraction=0.45)
    new, _ = make_rows(n=100, d=7, fraction=0.45, seed=1)
    fused = AdaptiveRegressor(FusedPatterns(strength), lam=lam).fit(X, y)
    static = AdaptiveRegressor("static", lam=lam).fit(X, y)
    assert len(fused.design_.patterns.patterns) > 30
    assert total_variation(fused) < 1e-4
    for rows in (X, new):
        np.testing.assert_allclose(fused.predict(rows), static.predict(rows), atol=1e-4)


def test_fused_starts_at_fully_adaptive(make_rows):
    X, y = make_rows(n=150, d=3)
    expected = AdaptiveRegressor(FullyAdaptive(), lam=0.0).fit(X, y).predict(X)
    for strength in (0.0, 1e-8):
        found = AdaptiveRegressor(FusedPatterns(strength), lam=0.0).fit(X, y)
        np.testing.assert_allclose(found.predict(X), expected, atol=1e-4)


def test_fused_borrows_weights_from_neighbours(make_rows):
    """A feature that is 0 in all rows of a pattern has the weight of the neighbours, not 0."""
    X, y = make_rows(n=150, d=3)
    alone = (np.isnan(X) == [False, True, False]).all(axis=1)
    X[alone, 0] = 0.0
    model = AdaptiveRegressor(FusedPatterns(20.0), lam=0.1).fit(X, y)
    assert model.coef_at([0, 1, 0])[0] == pytest.approx(model.coef_at([0, 0, 0])[0], abs=1e-5)
    np.testing.assert_allclose(model.predict(X), AdaptiveRegressor("static", lam=0.1).fit(X, y).predict(X), atol=1e-5)


def test_fused_takes_each_weight_from_the_nearest_pattern_that_has_it():
    M = np.array([[0, 0, 1], [0, 0, 1], [0, 1, 0]], dtype=bool)
    fitted = FusedPatterns().fit(np.where(M, np.nan, 1.0), M)
    columns = fitted.columns(np.array([[5.0, 6.0, 7.0]]), np.zeros((1, 3), dtype=bool)).toarray()[0]
    pairs = np.argwhere(fitted.mask(3))
    taken = {tuple(pair): value for pair, value in zip(pairs.tolist(), columns, strict=True) if value}
    assert taken == {(0, 0): 1.0, (1, 0): 5.0, (2, 0): 6.0, (3, 1): 7.0}


@pytest.mark.parametrize("n", [10, 40])
def test_fused_models_of_a_constant_target(make_rows, n):
    """Models of all patterns are the same, without differences by rounding; few rows, and rows that are compressed."""
    X = make_rows(n=n, d=2)[0]
    for seed, target in enumerate((0.25, 0.3, 7.1)):
        s = np.random.default_rng(seed).uniform(1, 3, size=n)
        model = AdaptiveRegressor(FusedPatterns(1e5), lam=1e-3, scale=False).fit(X, np.full(n, target), s)
        np.testing.assert_allclose(model.predict(X), target, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_fused_models_of_features_far_from_zero(seed):
    """A tiny coefficient of such a feature stands in for the intercept, whose differences cost more."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.full(24, 4250.0), 5.125 + 1e-8 * rng.normal(size=24)])
    X[::2] = np.nan
    y = np.where(np.isnan(X[:, 0]), 999.77, 999.9) + 0.03 * rng.normal(size=24)
    model = AdaptiveRegressor(FusedPatterns(0.03), loss="quantile", center=False, scale=False).fit(X, y)
    assert 0 <= model.certificate_.gap <= 1e-4 * model.certificate_.objective


def test_fused_refuses_too_many_patterns(make_rows):
    X, y = make_rows(n=100, d=6)
    with pytest.raises(ValueError, match=r"FusedPatterns has \d+ patterns, more than max_patterns=20: use Affine"):
        AdaptiveRegressor(FusedPatterns(max_patterns=20)).fit(X, y)
    AdaptiveRegressor(FusedPatterns(0.0, max_patterns=20)).fit(X, y)


# both


@pytest.mark.parametrize("adaptivity", STRUCTURED, ids=str)
def test_classification(make_rows, adaptivity):
    """Also with cells of one class, whose intercept the structure bounds; the objective is that of a plain program."""
    X, y = make_rows(n=120)
    labels = np.where(np.isnan(X[:, 0]) & np.isnan(X[:, 1]), 1, y > np.median(y))
    model = AdaptiveClassifier(adaptivity, lam=0.2, l1_ratio=0.5).fit(X, labels)
    scores = model.decision_function(X)
    assert np.abs(scores).max() < 25
    assert model.score(X, labels) > 0.7
    design = model.design_
    A = design.whole(X)
    w = cp.Variable(A.shape[1])
    W = cp.reshape(design.scatter() @ w, (len(design.features) + 1, design.n_basis), order="C")
    u = np.where(design.free, 0.0, 0.2 / design.counts)
    penalty = 0.5 * (u @ cp.abs(w)) + 0.25 * (u @ cp.square(w)) + design.adaptivity.structure(W)[0]
    loss = cp.sum(cp.logistic(cp.multiply(1 - 2 * labels, A @ w))) / len(labels)
    least = cp.Problem(cp.Minimize(loss + penalty)).solve("CLARABEL")
    assert model.certificate_.objective == pytest.approx(least, rel=1e-6)
    assert model.certificate_.relative_gap < 1e-6


def test_coefficients_are_counted():
    for d in (2, 4):
        assert coefficient_count(LowRankAffine(), d) == coefficient_count("affine", d)
        assert coefficient_count(FusedPatterns(), d) == coefficient_count("fully_adaptive", d)
    assert coefficient_count(LowRankAffine(), 12) == 12**2 + 12 + 1
