"""The mathematical programs of admiss, one per module, each next to every algorithm that solves it.

Each module states its program in its docstring (sets, data, variables, objective, constraints) and the code below
follows it line by line: numpy arrays in, the solution and its :class:`~formulations.certificate.Certificate` out.

============= ============================================================================================
folder        program
============= ============================================================================================
erm/          penalised empirical risk of a linear model: cvxpy program, dual bound, fast paths
leaves/       cost of a leaf (a set of patterns with one model), for any loss and for all boxes at once
trees/        best tree of missingness patterns: flow model, dynamic program, textbook model, lower bound
boxes/        best cover of the observed patterns by disjoint boxes: set partitioning
groups/       best partition into arbitrary groups of patterns: branch and price
conformal/    thresholds of scores that adapt to the pattern: stated program, many patterns at once
============= ============================================================================================

``adversary`` (reallocation of patterns) and ``stacking`` (weights of several models) are programs in one module each.
They share ``loss`` (what a loss is), ``losses`` and ``log_link`` (those there are), ``certificate``, ``cone_solver``
(cvxpy), ``linear_solver`` (Pyomo and HiGHS), ``rounding``, ``names``, ``jit`` and ``compile_events`` (numba) and
``arrays`` (types). ``set_partition`` states the program of boxes and of groups.

Notation, the same in every module:

======== ==================================================================================
n, d, p  rows, features, columns of the design
m        missingness pattern of a row: m_j = 1 if feature j is missing
A        design matrix, one column per coefficient
y, q     target, and the weight of each row in the risk (shares that sum to 1, if nothing else is said)
w        coefficients
l1, l2   weights of |w_k| and of w_k^2 / 2 in the penalty
======== ==================================================================================
"""

# Another distribution of this name exists; `admiss` checks this marker to detect that it has overwritten ours.
DISTRIBUTION = "admiss"
