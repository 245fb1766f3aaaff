"""Linear and mixed-integer models: stated in Pyomo, solved with HiGHS or any other solver that Pyomo supports.

For HiGHS the model is compiled to matrices and passed as a whole, which is faster than Pyomo's own interfaces and does
not hang in threads. HiGHS runs in a separate thread: an interrupt stops it, and the solution found so far is returned.
Its presolve is off for models with integers: it can call a feasible model infeasible (1.15.1 a small split / assign
tree, 1.14.0 the one in issue 3090 of ERGO-Code/HiGHS), which would be a false proof.

The bound of a linear program comes from its row duals y. With 0 <= x_j <= u_j in every relevant solution,

    c'x  >=  b'y + sum_j min(0, c_j - a_j'y) u_j                                        (weak duality)

holds for any y: the bound does not depend on the tolerances of the solver. A solution with x_j = 1 costs at least
c_j - a_j'y more, if that is positive.

Of a model with integers the bound is that of the search. By default HiGHS cuts off solutions that are less than 1e-6
better than the best one, so that its bound can be above the optimum by as much; all its tolerances are 1e-10 here.

Other solvers run through Pyomo, most of them in a separate process, which works in threads as well. Their tolerances
are their own: GLPK's bounds are above the optimum by up to 1e-7 of it, of linear programs as of others.
:func:`trusted` is what is left of a bound.
"""

import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from formulations.arrays import FloatArray
from formulations.certificate import GAP_TOLERANCE, clock

# The tightest tolerance that HiGHS takes, and the share by which its bounds are lowered for rounding errors.
HIGHS_TOLERANCE = 1e-10
# Options of HiGHS with which the bound of a search is one.
EXACT_SEARCH = {
    "primal_feasibility_tolerance": HIGHS_TOLERANCE,
    "dual_feasibility_tolerance": HIGHS_TOLERANCE,
    "mip_feasibility_tolerance": HIGHS_TOLERANCE,
}
# Values this close to 0 and 1 count as integral: the default of HiGHS.
INTEGRAL = 1e-6
# Seconds between two checks whether the solver has finished.
POLL = 0.05
# Seconds that an interrupted solver may take to stop.
PATIENCE = 2.0


@dataclass(frozen=True)
class LinearSolution:
    """Result of a solver.

    Attributes
    ----------
    values : array or None
        Values of the variables in the requested order; None if no solution was found.
    bound : float
        Proven lower bound on the objective.
    status : str
        ``"optimal"``, ``"time limit"``, ``"interrupted"``, ``"infeasible"``, or the status of the solver.
    solver, version : str
    seconds : float
    reduced_costs : array or None
        c_j - a_j'y for the duals y of the bound; linear programs in HiGHS only.
    duals : dict
        y of each constraint, by the ``id`` of Pyomo's constraint; linear programs in HiGHS only.
    """

    values: FloatArray | None
    bound: float
    status: str
    solver: str
    version: str
    seconds: float
    reduced_costs: FloatArray | None = None
    duals: dict[int, float] = field(default_factory=dict)


def require_solver(solver: str) -> None:
    """Raise a ValueError if no solver of this name is available."""
    if not isinstance(solver, str):
        raise ValueError(f"solver must be the name of a solver of Pyomo, or 'highs', not {solver!r}.")
    if solver == "highs":
        return
    import pyomo.environ as pyo

    # Pyomo takes an unknown name to be an executable that reads its format, with a long complaint if there is none.
    known = solver in pyo.SolverFactory or shutil.which(solver) is not None
    if not known or not pyo.SolverFactory(solver).available(exception_flag=False):
        raise ValueError(f"Pyomo finds no solver called {solver!r} on this machine: install it, or use 'highs'.")


def solve_linear(
    model: Any,
    variables: list[Any],
    *,
    solver: str = "highs",
    time_limit: float | None = None,
    start: FloatArray | None = None,
    upper: float | FloatArray = np.inf,
    options: dict[str, Any] | None = None,
) -> LinearSolution:
    """Solve a Pyomo model.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        One linear objective, minimised; linear constraints with one side or equal sides.
    variables : list of Pyomo variables
        All variables, in the order of ``start`` and of the values returned.
    solver : str
        "highs", or a name that Pyomo's SolverFactory knows.
    time_limit : float, optional
        Seconds.
    start : array, optional
        A feasible solution to start from, if the solver supports it; NaN for values that it shall find itself.
    upper : float or array
        Upper bounds that the variables satisfy in every relevant solution; used for the dual bound.
    options : dict, optional
        Options of HiGHS.
    """
    started = clock()
    require_solver(solver)
    if solver == "highs":
        try:
            return _solve_highs(model, variables, time_limit, start, upper, options or {}, started)
        except KeyboardInterrupt:  # before the solver has started, or without its solution
            return LinearSolution(None, -np.inf, "interrupted", "HIGHS", highs_version(), clock() - started)
    return _solve_other(model, variables, solver, time_limit, started)


def solve_integral(model: Any, binary: list[Any], others: Sequence[Any] = (), **options: Any) -> LinearSolution:
    """Solve a model whose variables ``binary`` are to be 0 or 1: they are declared so if a solution is fractional.

    The other parameters and the result are those of :func:`solve_linear`; the time limit is shared by both solves.
    """
    import pyomo.environ as pyo

    started, variables = clock(), [*binary, *others]
    relaxed = solve_linear(model, variables, **options)
    if relaxed.status != "optimal" or relaxed.values is None or is_integral(relaxed.values[: len(binary)]):
        return relaxed
    for variable in binary:
        variable.domain = pyo.Binary
    limit = time_left(options.pop("time_limit", None), started)
    solution = solve_linear(model, variables, **options, time_limit=limit)
    return replace(solution, bound=max(solution.bound, relaxed.bound), seconds=clock() - started)


def trusted(bound: float, solver: str) -> float:
    """What is left of a solver's bound after its tolerances.

    Examples
    --------
    >>> trusted(2.0, "HIGHS"), trusted(2.0, "glpk")
    (1.9999999998, 1.999999)
    """
    share = HIGHS_TOLERANCE if solver == "HIGHS" else GAP_TOLERANCE / 2
    return bound - share * abs(bound)


def closed_gap(tolerance: float, objective: float, solver: str) -> float:
    """The largest gap that counts as closed: of other solvers than HiGHS, what their tolerances leave."""
    return tolerance if solver == "HIGHS" else max(tolerance, GAP_TOLERANCE * abs(objective))


def is_integral(values: FloatArray) -> bool:
    """Whether all values are 0 or 1, up to the tolerance of solvers."""
    return bool(np.abs(values - (values > 0.5)).max(initial=0.0) <= INTEGRAL)


def highs_version() -> str:
    """Version of HiGHS."""
    import highspy

    return str(highspy.Highs().version())


def time_left(time_limit: float | None, started: float) -> float | None:
    """Seconds left of a time limit that started at ``started``, at least 0."""
    return None if time_limit is None else max(0.0, time_limit - (clock() - started))


def _solve_highs(
    model: Any,
    variables: list[Any],
    time_limit: float | None,
    start: FloatArray | None,
    upper: float | FloatArray,
    options: dict[str, Any],
    started: float,
) -> LinearSolution:
    import highspy
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    # With an order of columns, Pyomo 6.10 makes columns of fixed variables too, under wrong names.
    order = None if any(variable.fixed for variable in variables) else variables
    form = LinearStandardFormCompiler().write(model, mixed_form=True, column_order=order)
    lp = highs_lp(form)
    # The compiled form leaves out variables that are fixed, or in no row and not in the objective.
    place = {id(variable): i for i, variable in enumerate(variables)}
    columns = np.array([place[id(variable)] for variable in form.columns], dtype=int)
    has_integers = any(kind != highspy.HighsVarType.kContinuous for kind in lp.integrality_)
    h = highspy.Highs()
    settings: dict[str, Any] = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, "mip_abs_gap": 0.0}
    if has_integers:
        settings |= {"presolve": "off"} | EXACT_SEARCH
    settings |= options
    if time_limit is not None:
        settings["time_limit"] = time_left(time_limit, started)
    for name, value in settings.items():
        h.setOptionValue(name, value)
    h.passModel(lp)
    if start is not None and has_integers:  # linear programs are faster without it
        first = start[columns]
        known = np.flatnonzero(~np.isnan(first))
        h.setSolution(len(known), known.astype(np.int32), first[known])
    interrupted, ended = _run(h)
    if not ended:
        raise KeyboardInterrupt
    info, found = h.getInfo(), h.getSolution()
    status = h.getModelStatus()
    feasible = info.primal_solution_status == 2  # kSolutionStatusFeasible
    values = None
    if feasible:
        values = np.array([_unused_value(variable) for variable in variables], dtype=float)
        values[columns] = found.col_value
    bound, reduced, duals = -np.inf, None, {}
    if has_integers:
        bound = float(info.mip_dual_bound)
    elif found.dual_valid:
        most = np.broadcast_to(upper, len(variables))[columns]
        bound, reduced_columns = _dual_bound(lp, np.array(found.row_dual), most)
        reduced = np.zeros(len(variables))
        reduced[columns] = reduced_columns
        duals = {id(row.constraint): y for row, y in zip(form.rows, found.row_dual, strict=True)}
    words = {
        highspy.HighsModelStatus.kOptimal: "optimal",
        highspy.HighsModelStatus.kTimeLimit: "time limit",
        highspy.HighsModelStatus.kInterrupt: "interrupted",
        highspy.HighsModelStatus.kInfeasible: "infeasible",
    }
    failure = f"solver failed: {h.modelStatusToString(status).lower()}"
    word = "interrupted" if interrupted else words.get(status, failure)
    offset = float(form.c_offset[0])
    seconds = clock() - started
    return LinearSolution(values, bound + offset, word, "HIGHS", h.version(), seconds, reduced, duals)


def _unused_value(variable: Any) -> float:
    """Value of a variable that is not in the program: the fixed one, or as close to 0 as its bounds allow."""
    if variable.fixed:
        return float(variable.value)
    low, high = variable.bounds
    return max(-np.inf if low is None else low, min(0.0, np.inf if high is None else high))


def highs_lp(form: Any) -> Any:
    """The HiGHS model of Pyomo's compiled form."""
    import highspy

    lp = highspy.HighsLp()
    n_rows, n_columns = form.A.shape
    lp.num_col_, lp.num_row_ = n_columns, n_rows
    lp.col_cost_ = np.asarray(form.c.todense(), dtype=float).ravel()
    bounds = [variable.bounds for variable in form.columns]
    lp.col_lower_ = np.array([-np.inf if low is None else low for low, _ in bounds], dtype=float)
    lp.col_upper_ = np.array([np.inf if high is None else high for _, high in bounds], dtype=float)
    sides, rhs = np.array([side for _, side in form.rows]), np.asarray(form.rhs, dtype=float)
    lp.row_lower_ = np.where(sides <= 0, rhs, -np.inf)
    lp.row_upper_ = np.where(sides >= 0, rhs, np.inf)
    A = form.A.tocsc()
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
    whole = [variable.is_integer() or variable.is_binary() for variable in form.columns]
    if any(whole):
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[kind] for kind in whole]
    return lp


def _run(h: Any) -> tuple[bool, bool]:
    """Run HiGHS in a thread; returns whether it was interrupted, and whether it has ended.

    If it does not stop soon after an interrupt, it is left to end in its thread and must not be touched again.
    ``startSolve`` would not do: its locks are shared by all models, and only one thread could solve at a time.
    """
    done = threading.Event()  # an interrupted ``join`` can report that a running thread has ended

    def solve() -> None:
        try:
            h.solve()
            h.resetGlobalScheduler(False)  # the scheduler belongs to this thread, and ends with it
        finally:
            done.set()

    h.HandleUserInterrupt = True
    threading.Thread(target=solve, daemon=True).start()
    patience = np.inf
    while True:
        try:
            ended = done.wait(POLL)
            patience -= POLL
            if ended or patience < 0:
                return patience < np.inf, ended
        except KeyboardInterrupt:
            patience = min(patience, PATIENCE)
            h.cancelSolve()


def _dual_bound(lp: Any, y: FloatArray, upper: FloatArray) -> tuple[float, FloatArray]:
    """Bound by weak duality from any row duals, and the corresponding reduced costs."""
    import scipy.sparse as sp

    low, high = np.array(lp.row_lower_), np.array(lp.row_upper_)
    y = np.where(np.isinf(low), np.minimum(y, 0.0), np.where(np.isinf(high), np.maximum(y, 0.0), y))
    side = np.where(y > 0, low, high)
    matrix = lp.a_matrix_
    A = sp.csc_matrix((matrix.value_, matrix.index_, matrix.start_), shape=(lp.num_row_, lp.num_col_))
    reduced = np.array(lp.col_cost_) - A.T @ y
    most = np.minimum(np.array(lp.col_upper_), upper)
    least = np.array(lp.col_lower_)
    with np.errstate(invalid="ignore"):
        parts = np.where(reduced < 0, reduced * most, np.where(reduced > 0, reduced * least, 0.0))
        constant = np.where(y != 0, y * side, 0.0)
    return float(constant.sum() + parts.sum()), reduced


def _solve_other(
    model: Any, variables: list[Any], solver: str, time_limit: float | None, started: float
) -> LinearSolution:
    """Solve through Pyomo; a failure of the solver is reported in the status."""
    import pyomo.environ as pyo
    from pyomo.opt import SolutionStatus
    from pyomo.version import version

    values, bound, status = None, -np.inf, "time limit"
    left = time_left(time_limit, started)
    try:
        if left is None or left > 0:
            limit = {} if left is None else {"timelimit": int(np.ceil(left))}
            results = pyo.SolverFactory(solver).solve(model, load_solutions=False, **limit)
            status = str(results.solver.termination_condition)
            if len(results.solution) and results.solution[0].status != SolutionStatus.infeasible:
                model.solutions.load_from(results)
                found = [_unused_value(v) if v.value is None else v.value for v in variables]
                values = np.array(found, dtype=float)
            # Some solvers report the last vertex as optimal when stopped by the time limit.
            if status in ("optimal", "feasible") and time_left(time_limit, started) == 0:
                status = "time limit"
            if status == "optimal":
                bound = float(results.problem.lower_bound)
    except KeyboardInterrupt:
        status = "interrupted"
    except Exception as error:  # whatever went wrong, there is no proof and no solution
        values, status = None, f"solver failed: {' '.join(str(error).split())[:200]}"
    seconds = clock() - started
    word = "time limit" if status == "maxTimeLimit" else status
    return LinearSolution(values, bound, word, solver, f"through Pyomo {version}", seconds)
