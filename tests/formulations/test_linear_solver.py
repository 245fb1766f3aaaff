"""Linear and mixed-integer models with known solutions, and solvers that are stopped, killed, or missing."""

import _thread
import os
import shutil
import subprocess
import threading
import time

import numpy as np
import pyomo.environ as pyo
import pytest

from formulations.linear_solver import solve_integral, solve_linear, trusted


@pytest.fixture
def glpk():
    """The name of a solver that Pyomo runs in a separate process."""
    if shutil.which("glpsol") is None:
        if os.environ.get("CI"):
            pytest.fail("glpsol is missing: install glpk-utils.")
        pytest.skip("needs glpsol, from glpk-utils")
    return "glpk"


def small(domain):
    """min -5 x_0 - 4 x_1 + 1 under 6 x_0 + 4 x_1 <= 24 and x_0 + 2 x_1 <= 6; the last variable is in no row."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), domain=domain)
    model.unused = pyo.Var(bounds=(2.0, 3.0))
    model.cost = pyo.Objective(expr=-5 * model.x[0] - 4 * model.x[1] + 1)
    model.first = pyo.Constraint(expr=6 * model.x[0] + 4 * model.x[1] <= 24)
    model.second = pyo.Constraint(expr=model.x[0] + 2 * model.x[1] <= 6)
    return model, [model.x[0], model.unused, model.x[1]]


def hard(n=60, m=10):
    """Splitting numbers into halves in several ways at once: the bound stays 0 for a very long time."""
    A = np.random.default_rng(0).integers(0, 100, size=(m, n)).tolist()
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(n), domain=pyo.Binary)
    model.above = pyo.Var(range(m), domain=pyo.NonNegativeReals)
    model.below = pyo.Var(range(m), domain=pyo.NonNegativeReals)
    model.cost = pyo.Objective(expr=pyo.quicksum(model.above.values()) + pyo.quicksum(model.below.values()))
    model.half = pyo.Constraint(
        range(m),
        rule=lambda model, i: (
            sum(a * x for a, x in zip(A[i], model.x.values(), strict=True)) + model.below[i] - model.above[i]
            == sum(A[i]) // 2
        ),
    )
    return model, [*model.x.values(), *model.above.values(), *model.below.values()]


def in_thread(task, seconds=30.0):
    """Result of a task run in a thread; fails if it hangs."""
    results = []
    worker = threading.Thread(target=lambda: results.append(task()), daemon=True)
    worker.start()
    worker.join(seconds)
    assert results, "the thread has not returned"
    return results[0]


def test_linear_program():
    model, variables = small(pyo.NonNegativeReals)
    solution = solve_linear(model, variables)
    assert solution.status == "optimal"
    assert solution.values == pytest.approx([3.0, 2.0, 1.5])
    assert solution.bound == pytest.approx(-20.0)
    assert solution.reduced_costs == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)


def test_reduced_costs_bound_what_a_variable_costs():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.NonNegativeReals)
    model.cost = pyo.Objective(expr=model.x[0] + 3 * model.x[1] + 7 * model.x[2])
    model.one = pyo.Constraint(expr=pyo.quicksum(model.x.values()) == 1)
    solution = solve_linear(model, list(model.x.values()), upper=1.0)
    assert solution.bound == pytest.approx(1.0)
    assert solution.reduced_costs == pytest.approx([0.0, 2.0, 6.0])


def test_mixed_integer_program():
    model, variables = small(pyo.NonNegativeIntegers)
    for start in (None, np.array([1.0, 2.0, 1.0])):
        solution = solve_linear(model, variables, start=start)
        assert solution.status == "optimal"
        assert solution.values == pytest.approx([4.0, 2.0, 0.0])
        assert solution.bound == pytest.approx(-19.0)
        assert solution.reduced_costs is None


def test_infeasible():
    model, variables = small(pyo.NonNegativeReals)
    model.third = pyo.Constraint(expr=model.x[0] >= 5)
    solution = solve_linear(model, variables)
    assert solution.status == "infeasible"
    assert solution.values is None


@pytest.mark.parametrize("domain", [pyo.NonNegativeReals, pyo.NonNegativeIntegers])
def test_no_time(domain):
    model, variables = small(domain)
    solution = solve_linear(model, variables, time_limit=0.0)
    assert solution.bound <= -19.0
    model, variables = hard()
    solution = solve_linear(model, variables, time_limit=0.0)
    assert solution.status == "time limit"
    assert solution.bound <= 0.0


def test_start_is_used_when_time_is_short():
    model, variables = hard()
    first = solve_linear(model, variables, time_limit=0.5)
    cost = first.values[60:].sum()
    again = solve_linear(model, variables, time_limit=0.2, start=first.values)
    assert again.values[60:].sum() <= cost + 1e-6


def test_threads_at_the_same_time():
    """Each thread solves its own model, and none waits for another."""
    model, variables = hard()
    results = []

    def solve():
        results.append(solve_linear(*small(pyo.NonNegativeIntegers)).bound)

    long = threading.Thread(target=lambda: solve_linear(model, variables, time_limit=1.0), daemon=True)
    workers = [threading.Thread(target=solve, daemon=True) for _ in range(4)]
    for worker in [long, *workers]:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert results == pytest.approx(4 * [-19.0])
    long.join(30)
    assert not long.is_alive()


def test_interrupt_returns_the_best_so_far():
    model, variables = hard()
    timer = threading.Timer(1.0, _thread.interrupt_main)
    timer.start()
    start = time.perf_counter()
    solution = solve_linear(model, variables, time_limit=30.0)
    assert time.perf_counter() - start < 10.0
    assert solution.status == "interrupted"
    assert solution.bound <= 0.0 <= solution.values[60:].sum()


def nearly_equal(seed, domain):
    """A set partition whose solutions differ by shares of 1e-9 to 1e-7, its variables and costs."""
    rng = np.random.default_rng(seed)
    held = rng.random((8, 40)) < 0.25
    held[:, :8] = np.eye(8, dtype=bool)
    cost = held.sum(axis=0) / 8 * (1 + 10.0 ** rng.uniform(-9, -6.5, 40))
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(40), domain=domain)
    cover = (pyo.quicksum(model.x[j] for j in np.flatnonzero(row).tolist()) == 1 for row in held)
    model.cover = pyo.Constraint(range(8), rule=lambda *_: next(cover))
    model.cost = pyo.Objective(expr=pyo.quicksum(c * x for c, x in zip(cost, model.x.values(), strict=True)))
    return model, list(model.x.values()), cost


@pytest.mark.parametrize("domain", [pyo.Binary, pyo.NonNegativeReals], ids=["binary", "continuous"])
def test_what_is_trusted_of_a_bound_is_not_above_the_optimum(glpk, domain):
    untrusted = 0.0
    for seed in range(6):
        model, variables, cost = nearly_equal(seed, domain)
        solutions = [solve_linear(model, variables, solver=solver, upper=1.0) for solver in ("highs", glpk)]
        optimum = min(cost @ solution.values for solution in solutions)
        for solution in solutions:
            assert trusted(solution.bound, solution.solver) <= optimum + 1e-15
            assert trusted(solution.bound, solution.solver) >= optimum * (1 - 1e-6)
            untrusted = max(untrusted, solution.bound - optimum)
    assert untrusted > 0.0


def test_another_solver(glpk):
    for domain, bound in ((pyo.NonNegativeReals, -20.0), (pyo.NonNegativeIntegers, -19.0)):
        model, variables = small(domain)
        expected = solve_linear(model, variables)
        solution = solve_linear(model, variables, solver=glpk)
        assert (solution.status, solution.solver) == ("optimal", "glpk")
        assert solution.bound == pytest.approx(bound)
        assert solution.values == pytest.approx(expected.values)


def test_another_solver_in_a_thread(glpk):
    solution = in_thread(lambda: solve_linear(*small(pyo.NonNegativeIntegers), solver=glpk))
    assert solution.bound == pytest.approx(-19.0)


def test_another_solver_out_of_time(glpk):
    model, variables = hard()
    assert solve_linear(model, variables, solver=glpk, time_limit=0).status == "time limit"
    solution = solve_linear(model, variables, solver=glpk, time_limit=1)
    assert (solution.status, solution.bound) == ("time limit", -np.inf)
    assert solution.values[60:].sum() >= 0.0


def test_another_solver_interrupted(glpk):
    model, variables = hard()
    timer = threading.Timer(1.0, _thread.interrupt_main)
    timer.start()
    solution = solve_linear(model, variables, solver=glpk, time_limit=20)
    assert (solution.status, solution.values, solution.bound) == ("interrupted", None, -np.inf)


def test_another_solver_killed(glpk, monkeypatch):
    model, variables = hard()
    started = []

    class Recorded(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    timer = threading.Timer(1.0, lambda: started[-1].kill())
    timer.start()
    solution = solve_linear(model, variables, solver=glpk, time_limit=20)
    assert solution.seconds < 10.0
    assert solution.status.startswith("solver failed")
    assert (solution.values, solution.bound) == (None, -np.inf)


def test_unknown_solver():
    model, variables = small(pyo.NonNegativeReals)
    with pytest.raises(ValueError, match="^Pyomo finds no solver called 'nonsense' on this machine: install it"):
        solve_linear(model, variables, solver="nonsense")


def test_fixed_variables_and_solutions_known_in_part():
    model = pyo.ConcreteModel()
    model.x = pyo.Var([0, 1, 2], domain=pyo.NonNegativeIntegers)
    model.total = pyo.Constraint(expr=(2, model.x[0] + model.x[1] + model.x[2], 4))
    model.cost = pyo.Objective(expr=3 * model.x[0] + 2 * model.x[1] + model.x[2])
    model.x[2].fix(1)
    solution = solve_linear(model, list(model.x.values()), start=np.array([np.nan, 1.0, np.nan]))
    assert solution.values.tolist() == [0.0, 1.0, 1.0]
    assert solution.bound == pytest.approx(3.0)


def test_integers_are_declared_only_if_needed():
    for most, is_fractional in ((2, False), (1.5, True)):
        model = pyo.ConcreteModel()
        model.x = pyo.Var([0, 1], domain=pyo.NonNegativeReals, bounds=(0, 1))
        model.total = pyo.Constraint(expr=model.x[0] + model.x[1] <= most)
        model.cost = pyo.Objective(expr=-2 * model.x[0] - model.x[1])
        solution = solve_integral(model, list(model.x.values()))
        assert solution.values.tolist() == [1.0, 0.0 if is_fractional else 1.0]
        assert model.x[0].is_binary() == is_fractional
        assert solution.bound == pytest.approx(-2.0 if is_fractional else -3.0)
