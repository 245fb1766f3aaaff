"""The penalised empirical risk of a linear model, its certificates, and fast paths of its solutions.

Read in this order: :mod:`~formulations.erm.risk` (the empirical risk, its compression and centring),
:mod:`~formulations.erm.program` (the cvxpy program), :mod:`~formulations.erm.optimality` (optimality conditions and
dual bound, independent of the solver); then the fast algorithms for the same program,
:mod:`~formulations.erm.quadratic_path` on top of :mod:`~formulations.erm.active_set`, and
:mod:`~formulations.erm.logistic_path`.
"""
