"""Partitioners: limits, agreement, interruption, edge cases."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import admiss.partition.optimal_tree
from admiss import AdaptiveRegressor, FiniteClassifier, FiniteRegressor
from admiss.datasets import make_interacting, make_synthetic
from admiss.finite.base import LeafFeatures
from admiss.partition import BoxPartition, Greedy, OptimalTree, Partition, Partitioner, PatternGroups, SplitAssignTree
from formulations.certificate import Certificate
from formulations.leaves.squared import SquaredLeafCost

PARTITIONERS = [
    Greedy(),
    OptimalTree(),
    OptimalTree(method="mio"),
    OptimalTree(method="both"),
    BoxPartition(max_depth=2),
    PatternGroups(max_leaves=3),
]


@pytest.fixture(params=PARTITIONERS, ids=repr)
def partitioner(request):
    return clone(request.param)


def fitted(partitioner, X, y, **parameters):
    return FiniteRegressor(partitioner, **{"ridge": 0.01, "ridge_scale": "sample", **parameters}).fit(X, y)


def rows_of(make_rows, n=200, d=3, seed=0, **leaf):
    X, y = make_rows(n=n, d=d, seed=seed)
    features = LeafFeatures.fit(X, np.ones(n), leaf.get("leaf_model", "static"), True, True)
    return features.pattern_rows(X, y, np.ones(n))


@pytest.mark.parametrize("scale", [True, False])
def test_objective_is_the_training_objective_of_the_model(partitioner, make_rows, scale):
    X, y = make_rows(n=300, d=4)
    model = fitted(partitioner.set_params(min_rows=10), X, y, scale=scale, truncate=False)
    leaves, unit = model.apply(X), np.append(np.nanstd(X, axis=0) if scale else np.ones(4), np.ones(4))
    total = np.sum((y - model.predict(X)) ** 2)
    for leaf in range(model.n_leaves_):
        total += 0.01 * (leaves == leaf).sum() * np.sum((unit * model.leaf_weights_[leaf]) ** 2)
        assert (leaves == leaf).sum() == model.leaf_rows_[leaf] >= 10
    assert model.certificate_.objective == pytest.approx(total, rel=1e-10)
    assert model.certificate_.objective == pytest.approx(model.leaf_costs_.sum(), rel=1e-12)
    assert model.certificate_.bound <= model.certificate_.objective
    assert model.partition_.certificate == model.certificate_


@pytest.mark.parametrize("seed", range(5))
def test_larger_classes_cost_no_more(make_rows, seed):
    X, y = make_rows(n=250, d=4, seed=seed)
    limits = {"max_leaves": 4, "min_rows": 10}
    costs = [
        fitted(p, X, y, leaf_model="static").certificate_.objective
        for p in (
            Greedy(max_leaves=1, min_rows=10),
            Greedy(max_depth=2, **limits),
            OptimalTree(max_depth=2, **limits),
            BoxPartition(max_depth=2, **limits),
            PatternGroups(**limits),
        )
    ]
    assert np.all(np.diff(costs) <= 1e-9 * costs[0])


def plain_greedy(rows, cost, leaves, depth, min_rows):
    """Algorithm 1, word by word: each leaf fitted on its rows, all splits of all leaves tried at each step."""
    parts = [(np.arange(len(rows.patterns)), 0)]
    while len(parts) < leaves:
        best = (1e-9, None)
        for index, (members, level) in enumerate(parts):
            for j in range(rows.patterns.shape[1]):
                missing = rows.patterns[members, j]
                sides = members[~missing], members[missing]
                if level < depth and min(rows.counts[side].sum() for side in sides) >= min_rows:
                    gain = cost.fit(members).cost - sum(cost.fit(side).cost for side in sides)
                    best = max(best, (gain, (index, sides)), key=lambda pair: pair[0])
        if best[1] is None:
            break
        index, sides = best[1]
        level = parts.pop(index)[1] + 1
        parts += [(side, level) for side in sides]
    return sum(cost.fit(members).cost for members, _ in parts), len(parts)


@pytest.mark.parametrize("seed", range(10))
def test_greedy_is_the_algorithm_of_the_paper(make_rows, seed):
    rows = rows_of(make_rows, n=300, d=4, seed=seed)
    cost = SquaredLeafCost(rows, 0.1)
    for leaves in range(1, 9):
        partition = Greedy(max_depth=3, max_leaves=leaves, min_rows=10).partition(rows, cost)
        expected, count = plain_greedy(rows, cost, leaves, 3, 10)
        assert partition.certificate.objective == pytest.approx(expected, rel=1e-10)
        assert partition.n_leaves == count


def test_greedy_stops_by_relative_improvement(make_rows):
    X, y = make_rows(n=400, d=4)
    assert fitted(Greedy(max_depth=4, min_improvement=0.99), X, y).n_leaves_ == 1
    some = fitted(Greedy(max_depth=4, min_improvement=0.05), X, y).n_leaves_
    assert 1 <= some <= fitted(Greedy(max_depth=4), X, y).n_leaves_


def test_exact_finds_what_greedy_misses():
    data = make_interacting(n=600, d=6, random_state=0)
    greedy = fitted(Greedy(max_depth=2), data.X_train, data.y_train)
    exact = fitted(OptimalTree(max_depth=2, method="both"), data.X_train, data.y_train)
    assert exact.certificate_.status == "optimal"
    assert exact.certificate_.objective < 0.7 * greedy.certificate_.objective
    assert {j for literals in exact.partition_.boxes for j, _ in literals} == {0, 1}
    assert exact.score(data.X_test, data.y_test) > greedy.score(data.X_test, data.y_test) + 0.2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"max_depth": 0}, "max_depth must be .* use max_leaves=1"),
        ({"min_rows": 10_000}, "min_rows=10000 is more than the 120 rows"),
        ({"split_features": ["x9"]}, "split_features lists 'x9'"),
        ({"split_features": [0, 0]}, "a feature twice"),
        ({"split_features": [7]}, "split_features lists 7"),
    ],
)
def test_bad_limits_are_one_sentence(wrong, words, make_rows):
    X, y = make_rows()
    for kind in (Greedy, OptimalTree, BoxPartition, SplitAssignTree):
        with pytest.raises(ValueError, match=words):
            FiniteRegressor(kind(**wrong)).fit(X, y)


def test_bad_options_are_one_sentence(make_rows):
    X, y = make_rows()
    for wrong, words in (
        (Greedy(min_improvement=1.5), "min_improvement must be"),
        (OptimalTree(method="mio", solver="nosolver"), "nosolver"),
    ):
        with pytest.raises(ValueError, match=words):
            FiniteRegressor(wrong).fit(X, y)
    with pytest.raises(ValueError, match="absolute"):
        FiniteRegressor(SplitAssignTree()).fit(X, y)
    with pytest.raises(ValueError, match="squared loss"):
        FiniteRegressor(PatternGroups(), loss="absolute").fit(X, y)


def test_more_leaves_than_patterns_is_no_harm(partitioner, make_rows):
    X, y = make_rows(n=200, d=2)
    model = fitted(partitioner.set_params(max_leaves=50, min_rows=1), X, y)
    assert 1 <= model.n_leaves_ <= len(model.partition_.patterns)


def test_no_missing_data_and_a_single_pattern(partitioner, make_rows):
    X, y = make_rows(n=60, d=3)
    full = np.nan_to_num(X)
    one = full.copy()
    one[:, 1] = np.nan
    for data in (full, one):
        model = fitted(partitioner, data, y) if data is full else None
        if model is None:
            with pytest.warns(UserWarning, match="Never observed"):
                model = fitted(partitioner, data, y)
        assert model.n_leaves_ == 1
        assert np.isfinite(model.predict(data)).all()


def test_duplicate_columns(partitioner, make_rows):
    X, y = make_rows(n=200, d=3)
    doubled = np.hstack([X, X[:, :1]])
    for ridge in (0.0, 0.01):
        model = fitted(partitioner.set_params(min_rows=15), doubled, y, ridge=ridge)
        assert np.isfinite(model.predict(doubled)).all()
        assert model.certificate_.bound <= model.certificate_.objective * (1 + 1e-12)


def test_split_features_by_name_and_number(make_rows):
    import pandas as pd

    X, y = make_rows(n=300, d=4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for listed in (["b", "d"], [1, 3]):
        model = fitted(OptimalTree(max_depth=2, split_features=listed, min_rows=5), frame, y)
        assert {j for literals in model.partition_.boxes for j, _ in literals} <= {1, 3}


def test_time_limit_zero_has_a_gap(make_rows):
    X, y = make_rows(n=300, d=4)
    for p in (OptimalTree(time_limit=0), OptimalTree(time_limit=0, method="mio"), BoxPartition(time_limit=0)):
        model = fitted(p.set_params(min_rows=10), X, y)
        assert model.certificate_.gap > 0
        assert model.certificate_.status == "time limit"
        assert np.isfinite(model.predict(X)).all()
    groups = fitted(PatternGroups(time_limit=0, min_rows=10), X, y)
    assert groups.certificate_.gap > 0
    assert groups.certificate_.status != "optimal"


def test_an_interrupt_returns_the_greedy_tree(monkeypatch, make_rows):
    X, y = make_rows(n=300, d=4)

    def interrupted(*arguments, **keywords):
        raise KeyboardInterrupt

    greedy = fitted(Greedy(max_depth=3, min_rows=10), X, y)
    monkeypatch.setattr(admiss.partition.optimal_tree, "box_costs", interrupted)
    model = fitted(OptimalTree(max_depth=3, min_rows=10), X, y)
    assert model.certificate_.status == "interrupted"
    assert model.certificate_.gap > 0
    assert model.certificate_.objective == greedy.certificate_.objective


def test_too_many_boxes_fall_back_to_greedy_with_a_bound(monkeypatch, make_rows):
    X, y = make_rows(n=500, d=4)
    exact = fitted(OptimalTree(max_depth=2, min_rows=10), X, y)
    monkeypatch.setattr(admiss.partition.optimal_tree, "MOST_BOXES", 5)
    with pytest.warns(UserWarning, match="too many to enumerate"):
        model = fitted(OptimalTree(max_depth=2, min_rows=10), X, y)
    assert 0 < model.certificate_.bound <= exact.certificate_.objective <= model.certificate_.objective
    assert model.certificate_.status == "too many boxes to enumerate"


def rows_with_patterns(listed, targets, n=30, seed=0):
    """Rows with the given patterns, n each, whose target is a multiple of one function of the values."""
    rng = np.random.default_rng(seed)
    M = np.repeat(np.array(listed, dtype=bool), n, axis=0)
    X = rng.normal(size=M.shape)
    signs = np.repeat(np.array(targets, dtype=float), n)
    y = signs * (1.0 + np.where(M, 0.0, X).sum(axis=1)) + 0.01 * rng.normal(size=len(M))
    return np.where(M, np.nan, X), y


def test_boxes_may_have_more_literals_and_leaves_than_a_tree():
    X, y = rows_with_patterns(
        [(0, 0, 1, 1), (0, 0, 0, 1), (0, 0, 1, 0), (1, 1, 0, 0), (0, 1, 0, 0), (1, 0, 0, 0)], [1, 1, 1, -1, -1, -1]
    )
    as_printed = {"ridge": 1e-3, "leaf_model": "static", "center": False, "scale": False}
    two, three = (
        FiniteRegressor(BoxPartition(max_depth=2, max_leaves=q, min_rows=5), **as_printed).fit(X, y) for q in (2, 3)
    )
    assert two.certificate_.objective < 1.01 * three.certificate_.objective
    assert two.n_leaves_ == 2
    X, y = rows_with_patterns([(0, 1, 1), (1, 0, 1), (1, 1, 0)], [1, -1, 2])
    free = FiniteRegressor(BoxPartition(max_depth=1, min_rows=5), **as_printed).fit(X, y)
    assert free.n_leaves_ == 3
    assert free.certificate_.status == "optimal"


@pytest.mark.parametrize("scale", [1e-5, 1e-3, 1e6])
@pytest.mark.parametrize("leaves", [5, None])
def test_units_of_the_target_do_not_matter(scale, leaves):
    data = make_interacting(n=300, d=6, random_state=0)
    expected = fitted(OptimalTree(3, leaves), data.X_train, data.y_train).certificate_.objective
    model = fitted(OptimalTree(3, leaves, method="mio"), data.X_train, scale * data.y_train)
    assert model.certificate_.objective == pytest.approx(scale**2 * expected, rel=1e-8)
    assert model.certificate_.status == "solver's bound"


@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8])
def test_a_feature_far_from_zero_is_fitted_and_proven(offset, make_rows):
    X, y = make_rows(n=400, d=4)
    far = X.copy()
    far[:, 0] += offset
    for p in (OptimalTree(max_depth=2), OptimalTree(max_depth=2, method="mio"), PatternGroups(max_leaves=2)):
        model = FiniteRegressor(p, ridge=1e-6).fit(far, y)
        assert model.certificate_.status == ("solver's bound" if getattr(p, "method", "dp") == "mio" else "optimal")
        assert model.score(far, y) > 0.5
    never_missing = np.nan_to_num(X[:, :1]) + offset
    shifted = np.hstack([never_missing, X[:, 1:]])
    assert FiniteRegressor(OptimalTree(max_depth=2)).fit(shifted, y).certificate_.status.startswith("optimal")


def test_units_of_columns_do_not_matter_without_ridge(make_rows):
    X, y = make_rows(n=300, d=3)
    plain = fitted(OptimalTree(max_depth=2), X, y, ridge=0.0, leaf_model="static")
    other = fitted(OptimalTree(max_depth=2), X * [1e-8, 1.0, 1e8], y, ridge=0.0, leaf_model="static")
    assert other.certificate_.objective == pytest.approx(plain.certificate_.objective, rel=1e-6)


def test_nearly_collinear_columns_are_proven_from_rows(make_rows):
    X, y = make_rows(n=300, d=3)
    noise = np.random.default_rng(0).normal(size=300)
    close = np.column_stack([X, X[:, 0] + 1e-6 * noise])
    model = fitted(OptimalTree(max_depth=2), close, y, ridge=0.0, leaf_model="static")
    assert model.certificate_.bound <= model.certificate_.objective
    assert model.certificate_.status == "optimal"


def test_a_logistic_leaf_far_from_zero():
    data = make_synthetic(n=300, d=4, rank=3, n_active=3, random_state=0)
    X = data.X_train.copy()
    X[:, 0] = np.nan_to_num(X[:, 0])
    near = FiniteClassifier(Greedy(max_depth=1)).fit(X, data.y_train > 0)
    X[:, 0] += 1e6
    far = FiniteClassifier(Greedy(max_depth=1)).fit(X, data.y_train > 0)
    assert far.certificate_.objective == pytest.approx(near.certificate_.objective, rel=1e-6)


def test_a_gap_within_the_tolerances_of_another_solver_is_closed(make_rows):
    """Without a refinement, which is for leaf costs that are not accurate enough."""
    X, y = make_rows()
    certificates = {
        solver: FiniteRegressor(OptimalTree(max_depth=2, method="mio", solver=solver)).fit(X, y).certificate_
        for solver in ("highs", "glpk")
    }
    assert {solver: found.status for solver, found in certificates.items()} == dict.fromkeys(
        certificates, "solver's bound"
    )
    assert certificates["glpk"].objective == pytest.approx(certificates["highs"].objective, rel=1e-9)
    assert certificates["highs"].tolerance < certificates["glpk"].gap <= certificates["glpk"].tolerance


def test_a_disagreement_is_reported(monkeypatch, make_rows):
    X, y = make_rows(n=300, d=4)
    solve = admiss.partition.optimal_tree.solve_optimal_tree

    def wrong(*arguments, **keywords):
        tree, certificate = solve(*arguments, **keywords)
        return tree, replace(certificate, objective=certificate.objective / 2, bound=certificate.bound / 2)

    monkeypatch.setattr(admiss.partition.optimal_tree, "solve_optimal_tree", wrong)
    model = fitted(OptimalTree(max_depth=2, method="both", min_rows=10), X, y)
    assert "disagree" in model.certificate_.status
    assert model.certificate_.gap > 0
    assert model.certificate_.objective == fitted(OptimalTree(max_depth=2, min_rows=10), X, y).certificate_.objective


def test_tens_of_thousands_of_patterns():
    rng = np.random.default_rng(0)
    n, d = 30_000, 20
    X = rng.normal(size=(n, d))
    y = X[:, 0] + rng.normal(size=n)
    X[rng.uniform(size=X.shape) < 0.5] = np.nan
    for p in (Greedy(max_depth=2), OptimalTree(max_depth=2)):
        model = FiniteRegressor(p, leaf_model="static").fit(X, y)
        assert len(model.partition_.patterns) > 29_000
        assert model.n_leaves_ == 4


def test_boxes_and_groups_of_too_many_patterns_end_with_a_gap():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 16))
    y = X[:, 0] + rng.normal(size=len(X))
    X[rng.uniform(size=X.shape) < 0.5] = np.nan
    for p, words in (
        (BoxPartition(max_depth=3), "too many boxes to choose"),
        (PatternGroups(max_leaves=4), "too many patterns"),
    ):
        model = FiniteRegressor(p, leaf_model="static").fit(X, y)
        assert model.certificate_.status == words
        assert model.certificate_.gap > 0
        assert 1 < model.n_leaves_ <= 8


def test_a_fit_in_a_thread_ends(make_rows):
    X, y = make_rows(n=300, d=4)
    found = []
    for p in (OptimalTree(method="mio", max_leaves=3, min_rows=10), BoxPartition(max_depth=2, min_rows=10)):
        thread = threading.Thread(target=lambda p=p: found.append(fitted(p, X, y).certificate_.status))
        thread.start()
        thread.join(timeout=60)
    assert found == ["solver's bound", "optimal"]


def test_trees_route_new_patterns_and_groups_take_the_nearest():
    certificate = Certificate(0.0, 0.0, "optimal", "", "", 0.0)
    patterns = np.array([[0, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=bool)
    weights = np.array([1.0, 5.0, 1.0])
    groups = Partition(patterns, weights, np.array([0, 1, 2]), certificate)
    new = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    assert groups.assign(new).tolist() == [1, 2, 2]
    assert groups.seen(new).tolist() == [False, False, True]
    boxes = [[(0, False)], [(0, True), (2, False)], [(2, True)]]
    tree = Partition(patterns, weights, np.array([0, 1, 2]), certificate, [*boxes[:2], [(0, True), (2, True)]])
    assert tree.assign(new).tolist() == [1, 0, 2]
    overlapping = Partition(patterns, weights, np.array([0, 1, 2]), certificate, boxes)
    assert overlapping.assign(new).tolist() == [1, 2, 2]  # the second lies in two boxes, and is nearest to the third
    assert overlapping.seen(new).tolist() == [True, False, True]


@pytest.mark.parametrize("seed", range(4))
def test_the_same_problem_written_more_clumsily(partitioner, make_rows, seed):
    """Rows in another order, a row as two halves, or a feature that is never missing: the same cost."""
    X, y = make_rows(n=150, d=3, seed=seed)
    partitioner.set_params(min_rows=1)
    expected = fitted(partitioner, X, y, leaf_model="static").certificate_.objective
    order = np.random.default_rng(seed).permutation(len(y))
    assert fitted(partitioner, X[order], y[order], leaf_model="static").certificate_.objective == pytest.approx(
        expected
    )
    twice, halves = np.repeat(X, 2, axis=0), np.full(2 * len(y), 0.5)
    model = FiniteRegressor(partitioner, ridge=0.01, ridge_scale="sample", leaf_model="static")
    model.fit(twice, np.repeat(y, 2), sample_weight=halves)
    assert model.certificate_.objective == pytest.approx(expected)
    wider = np.hstack([X, np.full((len(y), 1), 7.0)])
    assert fitted(partitioner, wider, y, leaf_model="static").certificate_.objective == pytest.approx(expected)


def test_a_new_partitioner_is_one_method(make_rows):
    class BySize(Partitioner):
        """Few missing, many missing."""

        max_depth = max_leaves = min_rows = split_features = None

        def partition(self, statistics, leaf_cost, feature_names=None):
            leaf = (statistics.patterns.sum(axis=1) > 1).astype(int)
            cost = leaf_cost.total(np.flatnonzero(leaf == q) for q in (0, 1))
            certificate = Certificate(cost, -np.inf, "by hand", "none", "", 0.0)
            return Partition(statistics.patterns, statistics.weights, leaf, certificate)

    X, y = make_rows(n=200, d=4)
    model = fitted(BySize(), X, y)
    assert model.n_leaves_ == 2
    assert "leaf 1" in model.to_text()
    np.testing.assert_array_equal(model.apply(X), (np.isnan(X).sum(axis=1) > 1).astype(int))


@pytest.mark.parametrize("change", ["features", "target", "weights", "large target"])
def test_magnitudes_whose_squares_are_lost_are_refused(change, make_rows):
    X, y = make_rows(n=60, d=2)
    weights = np.full(60, 1e-300 if change == "weights" else 1.0)
    if change == "features":
        X[:, 1] *= 1e-160
    y = y * {"target": 1e-160, "large target": 1e154}.get(change, 1.0)
    # the columns of linear models are scaled
    for model in (FiniteRegressor(OptimalTree(max_depth=1)), AdaptiveRegressor())[: 1 + (change != "features")]:
        with pytest.raises(ValueError, match="use other units"):
            model.fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("scale", ["leaf", "sample"])
def test_an_overwhelming_ridge_leaves_intercepts(scale, make_rows):
    X, y = make_rows(n=60, d=2)
    for p in (OptimalTree(max_depth=1), BoxPartition(max_depth=1), PatternGroups(max_leaves=2)):
        settings = {"ridge_scale": scale, "leaf_model": "static"}
        found = FiniteRegressor(p, ridge=1e300, **settings).fit(1e-5 * X, y)
        expected = FiniteRegressor(p, ridge=1e30, **settings).fit(1e-5 * X, y)
        assert found.certificate_.status == "optimal"
        assert found.certificate_.objective == pytest.approx(expected.certificate_.objective, rel=1e-12)


@pytest.mark.parametrize("exponent", [-100, -130, -157, -161])
def test_a_column_that_is_tiny_in_one_box_is_settled_or_leaves_a_gap(exponent):
    rng, n = np.random.default_rng(0), 40
    a, z = rng.standard_normal((2, n))
    inside, known = np.arange(n) % 2 == 0, a.copy()
    known[1] = 0
    X = np.c_[np.where(inside, z * 10.0**exponent, known), np.where(inside, np.nan, 1.0)]
    y = np.where(inside, z + 0.3 * rng.standard_normal(n), a)
    limits = {"max_leaves": 2, "min_rows": 1}
    for p in (OptimalTree(1, **limits), BoxPartition(1, **limits), PatternGroups(**limits)):
        certificate = FiniteRegressor(p, ridge=0.0, leaf_model="static", center=False).fit(X, y).certificate_
        assert certificate.bound <= 1.3227  # the optimum
        assert np.isfinite(certificate.objective)
        assert (certificate.status == "optimal") == (certificate.relative_gap <= 1e-9)
