"""The program of a finite model in Pyomo: to be read, changed, exported, solved, and read back as a fitted model.

``model`` is that of :mod:`formulations.trees.flow`, :mod:`formulations.boxes.partition` or
:mod:`formulations.set_partition`. Anything may be added to it or changed in it, as long as the variables ``leaf`` and
``split`` are still a partition in the end. What is added to ``cost`` is part of the objective of the certificate.

The cost of a leaf is the lower end of its interval (:mod:`formulations.leaves.cost`), so that the bound of a solver is
one on the exact program. The objective of the certificate is that of the model at the costs of the fitted leaves, times
``unit``: with a penalty in the objective it includes the penalty.
"""

import copy
import math
import os
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from admiss.partition.program import StatedPartition, Taken
from formulations.certificate import FEASIBLE, NOT_CLOSED, ROUNDING, SOLVERS_BOUND, certify, clock
from formulations.leaves.cost import LeafCost
from formulations.linear_solver import (
    LinearSolution,
    closed_gap,
    is_integral,
    solve_integral,
    solve_linear,
    time_left,
    trusted,
)
from formulations.trees.dynamic_program import ILL_CONDITIONED, tolerance_of

# Status of values that were not found by ``solve``, and of those from a part of all groups.
ELSEWHERE = "solved elsewhere: no bound"
HEURISTIC = "heuristic: the groups are those of column generation"
# Longest name in an exported file; the LP format allows 255 characters.
LONGEST = 240


class PartitionProgram:
    """The program of a finite model, from :meth:`admiss.FiniteRegressor.program`; ``print(program)`` lists its parts.

    Parameters
    ----------
    estimator : FiniteRegressor or FiniteClassifier
        Its settings and the features of its leaves.
    leaf_cost : LeafCost
        The costs of leaves.
    stated : StatedPartition
        The model, and how its variables are read.
    integer : bool or None
        Whether variables are binary; None if only when needed.

    Attributes
    ----------
    model : pyomo.environ.ConcreteModel
        The program.

    Examples
    --------
    >>> from admiss import FiniteRegressor
    >>> from admiss.datasets import make_interacting
    >>> from admiss.partition import OptimalTree
    >>> rows = make_interacting(n=500, d=4, random_state=0)
    >>> program = FiniteRegressor(OptimalTree(max_depth=2)).program(rows.X_train, rows.y_train)
    >>> for box, feature in program.model.SPLITS:
    ...     if feature == "x0":
    ...         program.model.split[box, feature].fix(0)
    >>> model = program.solve()
    >>> model.certificate_.status
    "solver's bound"
    """

    def __init__(self, estimator: Any, leaf_cost: LeafCost, stated: StatedPartition, integer: bool | None) -> None:
        self.model = stated.model
        self._estimator, self._leaf_cost, self._stated, self._integer = estimator, leaf_cost, stated, integer
        self._costs = {B: float(cost.value) for B, cost in self.model.cost.items()}  # before they are changed

    def __str__(self) -> str:
        import pyomo.environ as pyo

        lines = [f"{self.model.name}, of {type(self._estimator).__name__}"]
        for part in self.model.component_objects((pyo.Set, pyo.Param, pyo.Var, pyo.Objective, pyo.Constraint)):
            kind = re.sub(r"^(Scalar|Indexed|Finite|Simple)+|Data$", "", part.ctype.__name__)
            size = f", {len(part):,}" if part.is_indexed() or part.ctype is pyo.Set else ""
            lines.append(f"  {kind} {part.name}{size}: {part.doc}")
        return "\n".join(line for line in lines if not line.endswith(": None"))

    def solve(self, solver: str = "highs", time_limit: float | None = None) -> Any:
        """Solve the program as it is now.

        Parameters
        ----------
        solver : str
            "highs", or a solver that Pyomo knows.
        time_limit : float, optional
            Seconds, at least 0.

        Returns
        -------
        estimator
            Fitted, with ``certificate_``.
        """
        started, bound = clock(), -np.inf
        if time_limit is not None and not time_limit >= 0:
            raise ValueError(f"time_limit must be a number of seconds, at least 0, not {time_limit!r}.")
        self._require_objective()
        solver = "highs" if solver.lower() == "highs" else solver
        name = "HIGHS" if solver == "highs" else solver
        while True:
            found = self._solved(solver, time_left(time_limit, started))
            reason = found.status
            if self._stated.complete:
                bound = max(bound, trusted(found.bound, found.solver) * self._unit())
            elif found.status == "optimal":
                reason = HEURISTIC
            model = self._fitted(bound, reason, name, found.version, started)
            if model.certificate_.status != ILL_CONDITIONED or not self._refined():
                return model

    def fitted(self) -> Any:
        """The fitted estimator of the values that the variables have, after any solver.

        The certificate has no bound: :meth:`solve` passes on that of the solver.
        """
        return self._fitted(-np.inf, ELSEWHERE, "of the user", "", clock())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the program as it is now to a file .lp or .mps, with readable names of variables and constraints.

        The variables ``leaf`` and ``split`` are binary in the file, unless the program was stated with
        ``integer=False``. An .mps file is in free format (``glpsol --freemps``).
        """
        import pyomo.environ as pyo

        # GLPK and CBC do not read the section on the sense of the objective; it is to be minimised by default.
        options = {".lp": {}, ".mps": {"skip_objective_sense": True}}.get(Path(path).suffix)
        if options is None:
            raise ValueError(f"The name of the file must end in .lp or .mps, not {Path(path).name!r}.")
        own = list(self._stated.variables.values())
        domains = [variable.domain for variable in own]
        try:
            for variable in own if self._integer is None else []:
                variable.domain = pyo.Binary
            self.model.write(str(path), io_options={"labeler": _Labels(), **options})
        finally:
            for variable, domain in zip(own, domains, strict=True):
                variable.domain = domain

    def _solved(self, solver: str, time_limit: float | None) -> LinearSolution:
        """Solve the model once, and give the variables their values."""
        import pyomo.environ as pyo

        own = self._stated.variables
        of_program = {id(variable) for variable in own.values()}
        variables = self.model.component_data_objects(pyo.Var, active=True)
        others = [variable for variable in variables if id(variable) not in of_program]
        start = [float(index in self._stated.start) for index in own]
        options: dict[str, Any] = {
            "solver": solver,
            "time_limit": time_limit,
            "start": np.array(start + [np.nan] * len(others)),
            "upper": np.array([1.0] * len(own) + [np.inf] * len(others)),
        }
        if self._integer is None:
            found = solve_integral(self.model, list(own.values()), others, **options)
        else:
            found = solve_linear(self.model, [*own.values(), *others], **options)
        if "nfeasible" in found.status:
            raise ValueError("The program has no solution: its constraints contradict each other.")
        if found.values is None:
            known = found.status == "time limit" or solver == "highs"
            advice = "" if known else "; if its constraints contradict each other, solve('highs') says so"
            raise RuntimeError(f"The solver found no solution: {found.status}{advice}.")
        for variable, value in zip([*own.values(), *others], found.values, strict=True):
            if not variable.fixed:
                variable.set_value(float(value), skip_validation=True)
        return found

    def _fitted(self, bound: float, reason: str, solver: str, version: str, started: float) -> Any:
        """The estimator with the leaves that the variables say."""
        taken, cost = self._taken(), self._leaf_cost
        leaves = {B: cost.fit(self._stated.members[B]).cost for B in taken if isinstance(B, str)}
        objective = self._objective(leaves)
        tolerance = closed_gap(tolerance_of(cost, objective), objective, solver)
        certificate = certify(objective, bound, tolerance, reason, solver, version, started, rigorous=False)
        if certificate.status == NOT_CLOSED:
            certificate = replace(certificate, status=ILL_CONDITIONED)
        estimator = copy.copy(self._estimator)
        estimator._adopt(cost, self._stated.partition(taken, certificate))
        # What rounding of the coefficients adds to the cost of the leaves counts, as in a fit.
        added = estimator.certificate_.objective - math.fsum(leaves.values())
        adopted = replace(estimator.certificate_, objective=objective + added)
        status = certificate.status
        if status == SOLVERS_BOUND and adopted.gap > tolerance:
            status = ROUNDING
        certificate = replace(adopted, status=status)
        estimator.certificate_ = certificate
        estimator.partition_ = replace(estimator.partition_, certificate=certificate)
        return estimator

    def _taken(self) -> Taken:
        """The indices of the variables that are 1, if all are 0 or 1 and satisfy the constraints."""
        values = {index: variable.value for index, variable in self._stated.variables.items()}
        if all(value is None for value in values.values()):
            raise ValueError("The variables have no values: solve the program first.")
        numbers = np.array([0.0 if value is None else value for value in values.values()])
        if not is_integral(numbers):
            raise ValueError("The solution is fractional: state the program with integer=True, and solve it again.")
        self._require_constraints()
        return {index for index, number in zip(values, numbers, strict=True) if number > 0.5}

    def _require_objective(self) -> None:
        """Raise an error unless the model has one objective, to be minimised."""
        import pyomo.environ as pyo

        active = list(self.model.component_data_objects(pyo.Objective, active=True))
        if len(active) != 1:
            raise ValueError(
                f"The model must have one active objective, and has {len(active)}: call model.objective.deactivate() "
                "if another one takes its place."
            )
        if active[0].sense != pyo.minimize:
            raise ValueError("The objective must be minimised: state it with the other sign.")

    def _require_constraints(self) -> None:
        """Raise an error if a constraint does not hold at the values of the variables."""
        import pyomo.environ as pyo

        for constraint in self.model.component_data_objects(pyo.Constraint, active=True):
            body = pyo.value(constraint.body, exception=False)
            low, high = constraint.lb, constraint.ub
            size = FEASIBLE * max(1.0, abs(low or 0.0), abs(high or 0.0))
            if body is None or (low is not None and body < low - size) or (high is not None and body > high + size):
                raise ValueError(
                    f"The values of the variables violate {constraint.name!r}: the program was not solved after it was "
                    "changed, or its constraints contradict each other."
                )

    def _unit(self) -> float:
        """What the objective is measured in: ``unit``, or 1 if another objective is in its place."""
        import pyomo.environ as pyo

        return float(pyo.value(self.model.unit)) if self.model.objective.active else 1.0

    def _objective(self, costs: dict[str, float]) -> float:
        """Value of the objective at these costs of leaves plus what was added, in units of the certificate."""
        import pyomo.environ as pyo

        cost = self.model.cost
        before = {B: cost[B].value for B in costs}
        try:
            for B, value in costs.items():
                cost[B] = value + (before[B] - self._costs[B])
            (objective,) = self.model.component_data_objects(pyo.Objective, active=True)
            return float(pyo.value(objective)) * self._unit()
        finally:
            for B, value in before.items():
                cost[B] = value

    def _refined(self) -> bool:
        """Raise the costs of the leaves taken to lower ends from their rows; whether that changed one."""
        if not self._stated.may_refine:
            return False
        changed = False
        for B in self._taken():
            if isinstance(B, str):
                lower, _ = self._leaf_cost.interval(self._stated.members[B])
                if lower > self._costs[B]:
                    self.model.cost[B] = lower + (self.model.cost[B].value - self._costs[B])
                    self._costs[B] = lower
                    changed = True
        return changed


class _Labels:
    """Names of components in files: letters, digits, brackets and underscores, each name once."""

    def __init__(self) -> None:
        self.used: dict[str, int] = {}

    def __call__(self, component: Any) -> str:
        plain = unicodedata.normalize("NFKD", component.name).encode("ascii", "ignore").decode()
        plain = plain.replace("'", "").replace("[", "(").replace("]", ")")
        label = re.sub(r"[^A-Za-z0-9_()]+", "_", plain)[:LONGEST]
        self.used[label] = self.used.get(label, 0) + 1
        return label if self.used[label] == 1 else f"{label}_{self.used[label]}"
