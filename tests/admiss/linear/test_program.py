"""The open program: it is the fit's, its expressions are those of the fitted model, and it can be changed."""

import itertools
import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from admiss import AdaptiveClassifier, AdaptiveClassifierCV, AdaptiveRegressor, AdaptiveRegressorCV, verify
from admiss.adaptivity import Affine, BinnedAffine, LowRankAffine, Polynomial
from admiss.linear import program_solver
from admiss.linear.program import AdaptiveProgram
from admiss.linear.program_checks import violation
from formulations.certificate import NOT_CLOSED, SOLVERS_BOUND, SolverError
from formulations.erm import program as erm_program
from formulations.log_link import Gamma, LogLink, Poisson
from formulations.losses import Huber, Quantile
from tests.admiss.linear.test_log_link import rows as counts

NAMES = ["age", "income", "year", "km"]
CLASSES = ["static", "affine_intercept", "affine", "polynomial", "fully_adaptive"]
NOTHING = cp.Problem(cp.Minimize(0))


def raw_rows(seed=0, n=151):
    """Rows in units that differ by orders of magnitude, far from 0; the last feature is never missing."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 4)) + 0.7 * rng.normal(size=(n, 1))
    M = rng.random((n, 4)) < [0.3, 0.3, 0.2, 0.0]
    y = 1e4 * (Z @ [1.0, 0.5, -0.3, 0.4] + (Z[:, 0] * M[:, 1]) + 0.5 * rng.normal(size=n)) + 3e5
    X = np.where(M, np.nan, Z * [10.0, 3e4, 5.0, 0.01] + [40.0, 5e4, 2000.0, 3.0])
    return pd.DataFrame(X, columns=NAMES), y


def patterns():
    """All patterns of the features that can be missing."""
    return [[*bits, 0] for bits in itertools.product((0, 1), repeat=3)]


@pytest.mark.parametrize("loss", ["squared", "absolute", Huber(5e3), Quantile(0.8)], ids=str)
@pytest.mark.parametrize("adaptivity", CLASSES)
def test_the_program_is_that_of_the_fit(adaptivity, loss):
    X, y = raw_rows(1)
    lam, tight = (3.0, 1e-10) if loss == "squared" or isinstance(loss, Huber) else (1e-3, 1e-7)
    model = AdaptiveRegressor(adaptivity, lam=lam, l1_ratio=0.5, loss=loss)
    fit, program = model.fit(X, y), model.program(X, y)
    assert program.problem.is_dcp(dpp=True)
    solved = program.solve()
    assert solved.certificate_.status == "optimal"
    assert solved.certificate_.solver == "CLARABEL"
    if adaptivity != "fully_adaptive" or tight == 1e-10:  # otherwise several quantiles of a cell are best
        np.testing.assert_allclose(solved.predict(X), fit.predict(X), rtol=tight)
    assert solved.feature_names_in_.tolist() == NAMES
    changed = program.solve(program.problem + NOTHING)
    assert changed.certificate_.status == SOLVERS_BOUND
    assert changed.certificate_.objective == pytest.approx(fit.certificate_.objective, rel=1e-10)
    assert changed.certificate_.bound <= fit.certificate_.objective
    np.testing.assert_allclose(program.predictions(X).value, changed._scores(X), rtol=1e-12)
    stated = program.risk.value + program.penalty.value
    assert stated == pytest.approx(changed.certificate_.objective, rel=1e-12)


@pytest.mark.parametrize("adaptivity", CLASSES)
def test_the_program_of_a_classification(adaptivity):
    X, y = raw_rows(2)
    labels = np.where(y > np.median(y), "high", "low")
    model = AdaptiveClassifier(adaptivity, lam=3.0, class_weight="balanced")
    fit, program = model.fit(X, labels), model.program(X, labels)
    solved, changed = program.solve(), program.solve(program.problem + NOTHING)
    np.testing.assert_allclose(solved.predict_proba(X), fit.predict_proba(X), atol=1e-10)
    np.testing.assert_allclose(changed.predict_proba(X), fit.predict_proba(X), atol=1e-5)
    assert solved.classes_.tolist() == ["high", "low"]
    with pytest.raises(ValueError, match="two classes"):
        model.program(X, np.arange(len(y)) % 3)


def canonical(problem, solver="CLARABEL"):
    data, _, _ = problem.get_problem_data(solver)
    return [np.asarray(data[name].todense() if name in "PA" else data[name]) for name in "PAbc"]


@pytest.mark.parametrize("loss", ["squared", "absolute", Huber(5e3)], ids=str)
def test_what_is_read_is_what_runs(loss, monkeypatch):
    """The data that the solver of fit(solver="cvxpy") gets are those of the program, divided by its unit."""
    X, y = raw_rows(3)
    model = AdaptiveRegressor("affine", lam=3.0, l1_ratio=0.5, loss=loss, solver="cvxpy")
    compiled, compile_erm = [], erm_program.compile_erm
    monkeypatch.setattr(
        erm_program, "compile_erm", lambda *a, **k: compiled.append(compile_erm(*a, **k)) or compiled[-1]
    )
    model.fit(X, y)
    program = model.program(X, y)
    stated = compiled[0]
    in_units = cp.Problem(
        cp.Minimize(program.problem.objective.expr / program._solver.unit), program.problem.constraints
    )
    if loss == "absolute":  # there predictions are variables, for the sake of their multipliers
        linked = [c for c in stated.solved.constraints if c is not stated.link]
        assert len(linked) == len(program.problem.constraints)
        for point in np.random.default_rng(0).normal(size=(5, len(model.coefficients_))):
            program.variable.value = stated.variable.value = point
            in_predictions = stated.link.args[1]
            in_predictions.value = stated.link.args[0].value
            assert in_units.objective.value == pytest.approx(stated.solved.objective.value, rel=1e-12)
    else:
        for own, other in zip(canonical(in_units), canonical(stated.solved), strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("solver", ["CLARABEL", "OSQP", "HIGHS", "SCS"])
def test_solvers_agree_and_their_bounds_hold(solver):
    X, y = raw_rows(4)
    program = AdaptiveRegressor("affine", lam=3.0).program(X, y)
    problem = program.problem + cp.Problem(cp.Minimize(0), [program.highest("income") <= 0.1])
    reference = program.solve(problem)
    model = program.solve(problem, solver=solver)
    certificate = model.certificate_
    assert certificate.status == SOLVERS_BOUND
    assert certificate.bound <= reference.certificate_.objective * (1 + 1e-9)
    np.testing.assert_allclose(model.predict(X), reference.predict(X), rtol=1e-6)


@pytest.mark.parametrize("adaptivity", ["static", "affine_intercept", "affine", Polynomial(1)], ids=str)
def test_extremes_are_those_of_all_patterns(adaptivity):
    X, y = raw_rows(5)
    program = AdaptiveRegressor(adaptivity, lam=0.1).program(X, y)
    rng = np.random.default_rng(0)
    for _ in range(5):
        program.variable.value = rng.normal(size=program.variable.shape)
        weights = program.weights_at(patterns()).value
        for j, name in enumerate(NAMES):
            observed = [w[j] for w, m in zip(weights, patterns(), strict=True) if not m[j]]
            assert program.lowest(name).value == pytest.approx(min(observed))
            assert program.highest(name).value == pytest.approx(max(observed))
            assert program.largest_step(name).value == pytest.approx(enumerated_step(program, X, j), rel=1e-9)


def enumerated_step(program, X, k):
    """The largest step over all patterns of the others and all corners of the range."""
    corners = np.array(list(itertools.product(*zip(X.min(), X.max(), strict=True))))
    steps = []
    for m in patterns():
        if m[k]:
            continue
        rows = np.where(np.array(m, dtype=bool), np.nan, corners)
        without = rows.copy()
        without[:, k] = np.nan
        both = program.predictions(pd.DataFrame(np.vstack([rows, without]), columns=NAMES)).value
        steps.append(np.abs(both[: len(rows)] - both[len(rows) :]).max())
    return max(steps)


@pytest.mark.parametrize("d", [2, 6, 12])
def test_a_sign_holds_at_every_pattern(d):
    rng = np.random.default_rng(d)
    Z = rng.normal(size=(60, d)) + rng.normal(size=(60, 1))
    y = Z @ rng.normal(size=d) + rng.normal(size=60)
    X = np.where(rng.random((60, d)) < 0.3, np.nan, Z)
    free = AdaptiveRegressor("affine", lam=0.01).fit(X, y)
    program = AdaptiveRegressor("affine", lam=0.01, monotonic_cst=np.ones(d)).program(X, y)
    model = program.solve()
    every = np.array(list(itertools.product((0, 1), repeat=d)))
    weights = program.weights_at(every).value
    for i in rng.permutation(len(every))[:50]:
        np.testing.assert_allclose(weights[i], model.coef_at(every[i]), atol=1e-12)
    assert weights.min() >= -1e-7
    assert min(free.coef_at(m).min() for m in every[:100]) < -0.1
    assert model.certificate_.status == SOLVERS_BOUND
    assert model.certificate_.objective > free.certificate_.objective


def test_cells_have_the_weights_that_exist():
    X, y = raw_rows(6)
    model = AdaptiveRegressor("fully_adaptive", lam=0.01, monotonic_cst={"income": -1, "km": 1}).fit(X, y)
    program = model.program(X, y)
    weights = np.array([model.coef_at(m) for m in model.design_.patterns.patterns.astype(int)])
    assert weights[:, 1].max() <= 1e-9
    assert weights[:, 3].min() >= -1e-4
    program.variable.value = np.ones(program.variable.shape)
    own = program.weights_at(model.design_.patterns.patterns.astype(int)).value[:, 3]
    assert program.lowest("km").value == pytest.approx(own.min())
    assert program.highest("km").value == pytest.approx(own.max())
    with pytest.raises(ValueError, match="not known"):
        program.largest_step("km")


def test_expressions_are_those_of_the_fitted_model():
    X, y = raw_rows(7)
    program = AdaptiveRegressor("polynomial", lam=0.1).program(X, y)
    model = program.solve(program.problem + NOTHING)
    for pattern in patterns():
        np.testing.assert_allclose(program.weights_at([pattern]).value[0], model.coef_at(pattern), rtol=1e-9, atol=1e-9)
        assert program.intercept_at(pattern).value == pytest.approx(model.intercept_at(pattern), rel=1e-9)
    assert program.weight("age", missing=["income"]).value == pytest.approx(model.coef_at(["income"])[0])
    table = model.coef_table()
    for feature, basis, coefficient in zip(table["feature"], table["basis"], table["coefficient"], strict=True):
        assert program.W[feature, basis].value == pytest.approx(coefficient)
    assert program.W["age"].shape == (len(program.W.basis),)


def test_names_and_classes_that_do_not_fit_are_refused():
    X, y = raw_rows(8)
    program = AdaptiveRegressor(Polynomial(2)).program(X, y)
    with pytest.raises(KeyError, match="wage.*age, income"):
        program.W["wage"]
    with pytest.raises(KeyError, match="wage.*age, income"):
        program.weight("age", missing=["wage"])
    with pytest.raises(KeyError, match="nothing.*1, age missing"):
        program.W["age", "nothing"]
    with pytest.raises(ValueError, match="no weight where it is missing"):
        program.weight("age", missing=["age"])
    with pytest.raises(ValueError, match="NP-hard"):
        program.lowest("age")
    with pytest.raises(ValueError, match="monotonic_cst must name features.*wage"):
        AdaptiveRegressor(monotonic_cst={"wage": 1}).fit(X, y)
    with pytest.raises(ValueError, match="-1, 0 or 1"):
        AdaptiveRegressor(monotonic_cst={"age": 2}).fit(X, y)
    with pytest.raises(ValueError, match="array of 4"):
        AdaptiveRegressor(monotonic_cst=[1, 0]).fit(X, y)
    with pytest.raises(ValueError, match="function of the program"):
        AdaptiveRegressor(constraints=[]).fit(X, y)
    with pytest.raises(ValueError, match="list of cvxpy constraints"):
        AdaptiveRegressor(constraints=lambda program: program.W["age", 0] >= 0).fit(X, y)


def test_a_class_that_is_not_linear_in_x_has_problem_and_predictions():
    X, y = raw_rows(9)
    program = AdaptiveRegressor(BinnedAffine(), lam=1.0).program(X, y)
    with pytest.raises(AttributeError, match="not linear in x"):
        print(program.W)
    with pytest.raises(AttributeError, match="not linear in x"):
        program.weights_at([[0, 0, 0, 0]])
    model = program.solve(program.problem + cp.Problem(cp.Minimize(0), [program.predictions(X[:1]) >= 4e5]))
    assert model._scores(X[:1])[0] >= 4e5 * (1 - 1e-6)


def test_a_class_with_a_structure_keeps_it():
    X, y = raw_rows(10)
    model = AdaptiveRegressor(LowRankAffine(strength=1e3), lam=1.0)
    fit, program = model.fit(X, y), model.program(X, y)
    changed = program.solve(program.problem + NOTHING)
    assert changed.certificate_.objective == pytest.approx(fit.certificate_.objective, rel=1e-5)
    assert program.risk.value + program.penalty.value < changed.certificate_.objective


def test_contradictions_and_problems_beyond_cvxpy_say_so():
    X, y = raw_rows(11)
    program = AdaptiveRegressor("affine").program(X, y)
    weight, zero = program.W["age", "1"], cp.Minimize(0)
    with pytest.raises(SolverError, match="contradict each other"):
        program.solve(program.problem + cp.Problem(zero, [weight >= 1, weight <= 0]))
    with pytest.raises(SolverError, match="unbounded"):
        program.solve(cp.Problem(cp.Minimize(weight), [program.W["income"] == 0]))
    with pytest.raises(ValueError, match="not convex"):
        program.solve(program.problem + cp.Problem(zero, [program.lowest("age") <= 0]))
    with pytest.raises(ValueError, match="no expression of this program"):
        program.solve(AdaptiveRegressor("affine").program(X, y).problem)
    with pytest.raises(SolverError, match="not installed"):
        program.solve(solver="nothing")
    taken = cp.Variable(boolean=True)
    integer = program.problem + cp.Problem(zero, [weight <= 1e6 * taken])
    with pytest.raises(ValueError, match="integer"):
        program.solve(integer)
    with pytest.raises(ValueError, match="linear programs only"):
        program.solve(integer, solver="HIGHS")


@pytest.mark.parametrize(("loss", "lam", "l1_ratio"), [("absolute", 1e-3, 1.0), (Quantile(0.3), 0.0, 0.0)])
def test_mixed_integer_constraints(loss, lam, l1_ratio):
    """The best two of the dependences on the pattern are those of enumeration."""
    X, y = raw_rows(12, n=61)
    program = AdaptiveRegressor("affine", lam=lam, l1_ratio=l1_ratio, loss=loss).program(X, y)
    dependences = [program.W[j, k] for j in NAMES for k in program.W.basis[1:] if k != f"{j} missing"]
    taken = cp.Variable(len(dependences), boolean=True)
    sizes = np.repeat(1e5 / X.std().to_numpy()[:3], 2)
    limits = [cp.abs(b) <= size * t for b, size, t in zip(dependences[:6], sizes, taken[:6], strict=True)]
    limits += [b == 0 for b in dependences[6:]]
    model = program.solve(program.problem + cp.Problem(cp.Minimize(0), [*limits, cp.sum(taken) <= 2]), solver="HIGHS")
    assert model.certificate_.status == SOLVERS_BOUND
    objectives = []
    for pair in itertools.combinations(range(6), 2):
        zero = [b == 0 for i, b in enumerate(dependences) if i not in pair]
        changed = program.problem + cp.Problem(cp.Minimize(0), zero)
        objectives.append(program.solve(changed, solver="HIGHS").certificate_.objective)
    assert model.certificate_.objective == pytest.approx(min(objectives), rel=1e-6)
    # with a factor that is too large, 0 up to rounding allows large coefficients: they are not taken for a solution
    limits = [cp.abs(b) <= 1e7 * t for b, t in zip(dependences[:6], taken[:6], strict=True)] + limits[6:]
    loose = program.solve(program.problem + cp.Problem(cp.Minimize(0), [*limits, cp.sum(taken) <= 2]), solver="HIGHS")
    better = loose.certificate_.objective < min(objectives) * (1 - 1e-6)
    assert better == ("violated" in loose.certificate_.status)
    program.lam.value, program.l1_ratio.value = 1.0, 0.5
    with pytest.raises(ValueError, match="state it again"):
        program.solve(program.problem + NOTHING)


def test_rounded_integers_do_not_raise_the_bound(monkeypatch):
    """The bound of a loose solve is that of the solver, whatever the objective is after rounding."""
    w, k = cp.Variable(1), cp.Variable(1, integer=True)
    problem = cp.Problem(cp.Minimize(cp.sum(k) + cp.sum(w)), [k >= 0, w >= 0, w + 10.0 * k >= 6.0])

    def loose(problem, solver, options):
        w.save_value(np.zeros(1))
        k.save_value(np.full(1, 0.6))
        return cp.OPTIMAL, 0.25

    monkeypatch.setattr(program_solver, "run", loose)
    with pytest.warns(ConvergenceWarning):
        certificate = program_solver.ProgramSolver(w, 1.0, 1.0).run(problem, "HIGHS", {})
    assert certificate.objective == 1.0
    assert certificate.bound == pytest.approx(0.35, abs=1e-6)


def test_penalties_are_parameters():
    X, y = raw_rows(13)
    program = AdaptiveRegressor("affine", lam=100.0).program(X, y)
    problem = program.problem + NOTHING
    for lam, l1_ratio in ((1.0, 0.0), (10.0, 0.5)):
        program.lam.value, program.l1_ratio.value = lam, l1_ratio
        expected = AdaptiveRegressor("affine", lam=lam, l1_ratio=l1_ratio).fit(X, y)
        for model in (program.solve(), program.solve(problem)):
            assert (model.lam, model.l1_ratio) == (lam, l1_ratio)
            np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-9)


def test_constraints_of_the_estimator_are_in_the_program_and_in_the_fit():
    X, y = raw_rows(14)
    limit = 2e4

    def small_steps(program):
        return [program.largest_step("income") <= limit]

    model = AdaptiveRegressor("affine", lam=0.1, constraints=small_steps, monotonic_cst={"age": 1})
    program = model.program(X, y)
    fit, solved = model.fit(X, y), program.solve()
    np.testing.assert_allclose(fit.predict(X), solved.predict(X), rtol=1e-9)
    assert program.largest_step("income").value <= limit * (1 + 1e-6)
    assert enumerated_step(program, X, 1) == pytest.approx(limit, rel=1e-5)
    assert AdaptiveRegressor("affine", lam=0.1).fit(X, y).program(X, y).solve() is not None
    verification = verify(fit, X, y)
    assert not verification.verified
    assert "changed program" in verification.reason


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_cross_validation_with_signs(task):
    """Losses of the cells are those of models fitted on each fold, and the choice has the signs at every pattern."""
    X, y = raw_rows(15, n=80)
    grid = {"l1_ratios": [0.0], "adaptive_penalties": [1.0], "n_lambdas": 3, "cv": 3, "random_state": 0}
    search, single = AdaptiveRegressorCV, AdaptiveRegressor
    if task == "classification":
        y, search, single = np.where(y > np.median(y), 1, 0), AdaptiveClassifierCV, AdaptiveClassifier
    cv = search(["affine"], monotonic_cst={"age": -1}, **grid).fit(X, y)
    weights = np.array([cv.coef_at(m)[0] for m in patterns()])
    assert weights.max() <= 1e-6
    assert cv.best_estimator_.monotonic_cst == {"age": -1}
    rows = cv._read_rows(X, y, None)
    lam, total = float(cv.cv_results_["lam"][1]), 0.0
    for train, test in rows.splits:
        model = single("affine", lam=lam, adaptive_penalty=1.0, monotonic_cst={"age": -1}).fit(X.iloc[train], y[train])
        target = y[test] if task == "regression" else np.where(y[test] > 0, 1.0, -1.0)
        loss = model._check_parameters()[1]
        total += loss.value(target, model._scores(X.iloc[test])).sum()
    assert cv.cv_results_["mean_loss"][1] == pytest.approx(total / len(y), rel=1e-6)


def no_constraints(program):
    return []


@pytest.mark.parametrize("loss", ["squared", "logistic", Poisson(), Gamma()], ids=str)
def test_a_search_whose_constraints_bind_nothing_is_the_plain_one(loss):
    X, y, exposure, s = counts(loss if isinstance(loss, LogLink) else Gamma(), 90, seed=3)
    X[:5, 0] = 30.0  # beyond the limits of extrapolation in the fold that holds them out
    grid = {"l1_ratios": [0.5], "adaptive_penalties": [1.0], "n_lambdas": 4, "eps": 1e-3, "cv": KFold(3)}
    others = {"exposure": exposure} if isinstance(loss, LogLink) else {}
    kind = AdaptiveClassifierCV if loss == "logistic" else AdaptiveRegressorCV
    grid |= {} if loss == "logistic" else {"loss": loss}
    y = y > np.median(y) if loss == "logistic" else y
    plain, same = (
        kind("affine_intercept", constraints=c, **grid).fit(X, y, s, **others) for c in (None, no_constraints)
    )
    np.testing.assert_allclose(same.cv_results_["mean_loss"], plain.cv_results_["mean_loss"], rtol=1e-4)
    assert same.best_params_["lam"] == pytest.approx(plain.best_params_["lam"])
    np.testing.assert_allclose(same.predict(X), plain.predict(X), rtol=1e-6)


def test_cells_that_are_not_proven_are_not_chosen(monkeypatch):
    X, y = raw_rows(16, n=60)
    solve, solves = AdaptiveProgram.run, []

    def last_one_unproven(program, *arguments):
        certificate = solve(program, *arguments)
        solves.append(program.lam.value)
        return replace(certificate, status=NOT_CLOSED) if len(solves) % 3 == 0 else certificate

    monkeypatch.setattr(AdaptiveProgram, "run", last_one_unproven)
    grid = {"l1_ratios": [0.0], "adaptive_penalties": [1.0], "n_lambdas": 3, "cv": 2, "random_state": 0}
    cv = AdaptiveRegressorCV(["static"], constraints=no_constraints, **grid).fit(X, y)
    assert np.isinf(cv.cv_results_["mean_loss"]).tolist() == [False, False, True]


def test_statistics_take_no_constraints():
    from admiss.statistics.row_statistics import RowStatistics

    X, y = raw_rows(16)
    statistics = RowStatistics("affine").update(X, y)
    with pytest.raises(ValueError, match="need the rows"):
        AdaptiveRegressor("affine", monotonic_cst={"age": 1}).fit_statistics(statistics)


def test_violations_are_relative():
    w, other = cp.Variable(2), cp.Variable()
    w.value, other.value = np.array([-1e-9, 1e-9]), 0.0
    assert violation(w >= 0, other) == pytest.approx(1.0)
    assert violation(w >= 0, w) == pytest.approx(1e-9)
    assert violation(1e-6 * w[0] >= 1e3 * other, w) == pytest.approx(1e-9)
    w.value = np.array([1.0, 1.0 + 1e-9])
    assert violation(w[1] <= w[0], other) < 1e-8


def test_the_program_leaves_the_estimator_as_it_is():
    X, y = raw_rows(17)
    model = AdaptiveRegressor(Affine())
    before = dict(vars(model))
    model.program(X, y)
    assert vars(model) == before


def test_multipliers_are_those_of_the_problem_as_stated():
    """A multiplier is the slope of the optimum in the limit."""
    X, y = raw_rows(10)
    program = AdaptiveRegressor("affine", lam=1.0).program(X, y)
    limit = cp.Parameter(value=0.5 * float(program.solve().coef_at([0] * X.shape[1])[1]))
    constraint = program.highest("income") <= limit
    problem = program.problem + cp.Problem(cp.Minimize(0), [constraint])
    program.solve(problem)
    multiplier, step = float(constraint.dual_value), 0.02 * limit.value
    low, high = limit.value - step, limit.value + step
    optima = []
    for value in (low, high):
        limit.value = value
        optima.append(program.solve(problem).certificate_.objective)
    assert multiplier > 0
    assert multiplier == pytest.approx((optima[0] - optima[1]) / (high - low), rel=1e-3)


ATOMS = {
    "abs": cp.abs,
    "norm_inf": cp.norm_inf,
    "max": cp.max,
    "min": lambda e: -cp.min(e),
    "maximum": lambda e: cp.maximum(e, 0.1 * e),
    "pos": cp.pos,
    "neg": cp.neg,
    "norm1": cp.norm1,
    "sum_largest": lambda e: cp.sum_largest(e, 2) if e.size > 2 else cp.max(e),
}


@pytest.mark.filterwarnings("ignore:CLARABEL has not solved")
@pytest.mark.parametrize("atom", ATOMS)
def test_highs_finds_the_same_optimum_under_constraints_with_any_atom(atom):
    X, y = raw_rows(18, n=60)
    program = AdaptiveRegressor("affine", lam=1e-3, l1_ratio=1.0, loss="absolute").program(X, y)
    sd, rng = X.std().to_numpy(), np.random.default_rng(len(atom))
    every = program.weights_at(patterns())
    expressions = {
        "weights": cp.multiply(every, np.tile(sd, (len(patterns()), 1))),
        "weight": program.weight("age") * 10,
        "predictions": 2.0 * program.predictions(X[:5]) - 6e5,
        "dense": 3.0 * (rng.normal(size=(3, program.variable.size)) @ program.variable) * 1e4,
        "row": program.W["income"] * sd[1],
    }
    program.solve(program.problem + NOTHING)
    for expression in expressions.values():
        bounded = ATOMS[atom](cp.reshape(expression, (expression.size,), order="C"))
        limit = np.mean(bounded.value) * rng.uniform(0.5, 0.9)
        problem = program.problem + cp.Problem(cp.Minimize(0), [bounded <= max(limit, 0.0) + 1.0])
        best = program.solve(problem).certificate_
        found = program.solve(problem, solver="HIGHS").certificate_
        assert found.status == SOLVERS_BOUND
        assert found.bound <= best.objective * (1 + 1e-9)
        assert best.bound <= found.objective * (1 + 1e-9)
        if best.status == SOLVERS_BOUND:  # Clarabel does not solve all of them
            assert found.objective == pytest.approx(best.objective, rel=1e-5)


@pytest.mark.parametrize("solver", ["HIGHS", "OSQP", "SCS"])
def test_solvers_find_the_same_optimum_with_a_multiple_of_a_weight(solver):
    X, y = raw_rows(18)
    program = AdaptiveRegressor("affine", lam=3.0).program(X, y)
    problem = program.problem + cp.Problem(cp.Minimize(0), [cp.abs(program.weight("income") * 10) <= 1.0])
    best, found = program.solve(problem).certificate_, program.solve(problem, solver=solver).certificate_
    assert found.objective == pytest.approx(best.objective, rel=1e-6)
    assert found.bound <= best.objective * (1 + 1e-9)


def test_expressions_have_the_values_of_the_model_that_is_returned():
    X, y = raw_rows(20)
    program = AdaptiveRegressor("affine", lam=1.0).program(X, y)
    for problem in (None, program.problem + cp.Problem(cp.Minimize(0), [program.W["income"] == 0]), None):
        model = program.solve(problem)
        np.testing.assert_allclose(program.coefficients.value, model.coefficients_, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(program.predictions(X).value, model._scores(X), rtol=1e-10)
    labels = np.where(y > np.median(y), "high", "low")
    program = AdaptiveClassifier("fully_adaptive", lam=1.0).program(X, labels)
    np.testing.assert_allclose(program.solve()._scores(X), program.predictions(X).value, rtol=1e-6, atol=1e-8)


def test_solvers_without_a_dual_have_no_bound():
    X, y = raw_rows(21)
    program = AdaptiveRegressor("affine", lam=1e-3, l1_ratio=1.0, loss=Quantile(0.7)).program(X, y)
    problem = program.problem + cp.Problem(cp.Minimize(0), [cp.abs(program.weight("income")) <= 0.05])
    with pytest.warns(UserWarning, match="SCIPY has not"):
        certificate = program.solve(problem, solver="SCIPY").certificate_
    assert certificate.bound == -np.inf
    assert certificate.objective == pytest.approx(program.solve(problem).certificate_.objective, rel=1e-6)


def test_atoms_without_a_gradient_are_checked():
    w = cp.Variable(2, value=np.array([1.0, 3.0]))
    assert violation(cp.norm_inf(w) <= 2.0, w) == pytest.approx(1 / 3)


@pytest.mark.parametrize("solver", ["CLARABEL", "OSQP", "SCS"])
def test_no_bound_of_a_loose_solve_is_above_the_optimum(solver):
    """A limit in large units that is slack: what its auxiliary variable adds is in no term at the solution."""
    loose = {
        "CLARABEL": [{"tol_gap_abs": 1e-2, "tol_gap_rel": 1e-2, "tol_feas": 1e-2}, {"max_iter": 6}],
        "OSQP": [{"eps_abs": 1e-1, "eps_rel": 1e-1}, {"eps_abs": 1e-3, "eps_rel": 1e-3}],
        "SCS": [{"eps_abs": 1e-1, "eps_rel": 1e-1}, {"max_iters": 30}],
    }
    without = 0
    for seed in range(2):
        X, y = raw_rows(seed, n=60)
        program = AdaptiveRegressor("affine", l1_ratio=0.5).program(X, y)
        problem = program.problem + cp.Problem(cp.Minimize(0), [program.largest_step("age") <= 2e4 * seed + 1.0])
        optimum = program.solve(problem).certificate_.objective
        for options in loose[solver]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                certificate = program.solve(problem, solver=solver, **options).certificate_
            assert certificate.bound <= optimum
            without += certificate.bound == -np.inf
    assert without > 0


def test_constraints_on_another_program_are_refused():
    X, y = raw_rows(22)
    other = AdaptiveRegressor("affine").program(X, y)
    for model in (
        AdaptiveRegressor("affine", constraints=lambda p: [p.weight("age") >= 0, other.weight("age") >= 5]),
        AdaptiveRegressorCV(["affine"], constraints=lambda p: [other.weight("age") >= 5], n_lambdas=2, cv=2),
    ):
        with pytest.raises(ValueError, match="another program"):
            model.fit(X, y)
    program = AdaptiveRegressor("affine").program(X, y)
    first, second = cp.Variable(), cp.Variable()
    chain = [program.weight("age") <= first, first <= second, second <= 0]
    assert program.solve(program.problem + cp.Problem(cp.Minimize(0), chain)).coef_at([0, 0, 0, 0])[0] <= 1e-6


def test_errors_name_the_solver_and_the_constraint():
    X, y = raw_rows(23)
    labels = np.where(y > np.median(y), 1, 0)
    program = AdaptiveClassifier("affine").program(X, labels)
    with pytest.raises(SolverError, match="HIGHS takes no programs of this kind.*CLARABEL"):
        program.solve(program.problem + NOTHING, solver="HIGHS")
    with pytest.raises(ValueError, match="constraint 2 of 2"):
        program.solve(
            program.problem + cp.Problem(cp.Minimize(0), [program.weight("age") <= 1, program.lowest("age") <= 0])
        )
    with pytest.raises(KeyError, match="a feature and a basis function"):
        program.W["age", "1", "income"]
    with pytest.raises(ValueError, match="may be called"):
        AdaptiveRegressor("affine").program(X.rename(columns={"age": "(intercept)"}), y)
    text = str(AdaptiveRegressor("affine", lam=2.0, monotonic_cst={"age": 1}).program(X, y))
    assert "minimise risk + penalty" in text
    assert "constraints: 1" in text
    assert "lam = 2" in text
    taken = cp.Variable(boolean=True)
    squared = AdaptiveRegressor("affine", constraints=lambda p: [p.weight("age") <= 1e6 * taken])
    with pytest.raises(ValueError, match="linear programs only"):
        squared.fit(X, y)


@pytest.mark.parametrize("adaptivity", ["static", "affine_intercept", "affine", "fully_adaptive"])
def test_expressions_can_be_solved_by_cvxpy_itself(adaptivity):
    """Limits that cvxpy derives from zeros in dense matrices made multiples of weights 0 in its programs for HiGHS."""
    X, y = raw_rows(3)
    program = AdaptiveRegressor(adaptivity, loss="absolute", lam=1e-3, l1_ratio=1.0).program(X, y)
    limit = 0.5 * abs(program.solve().coef_at([0, 0, 0, 0])[1])
    expressions = [program.weight("income"), program.W["income", 0], program.weights_at([[]])[0, 1]]
    for expression in expressions:
        low, high = (10 * expression).get_bounds()
        assert np.all(low == -np.inf)
        assert np.all(high == np.inf)
        problem = program.problem + cp.Problem(cp.Minimize(0), [cp.abs(10 * expression) <= 10 * limit])
        by_highs, by_clarabel = (problem.solve(solver=solver) for solver in ("HIGHS", "CLARABEL"))
        assert by_highs == pytest.approx(by_clarabel, rel=1e-6)
        assert abs(expression.value) <= limit * (1 + 1e-6)
    for expression in (program.predictions(X), program.intercept_at([]), program.risk, program.penalty):
        low, high = (10 * expression).get_bounds()
        assert np.all(low < high)


def test_constraints_on_coefficients_outside_of_the_objective_are_taken():
    X, y = raw_rows(5)
    program = AdaptiveRegressor("static", lam=0.1).program(X, y)
    least = program.solve().certificate_.objective
    feasible = program.solve(cp.Problem(cp.Minimize(0), [program.risk + program.penalty <= 2 * least]))
    assert np.isfinite(feasible.predict(X)).all()
