"""Mathematical programs of admiss, one a module.

Each module states its program in its docstring (sets, data, variables, objective, constraints) and the code below
follows it line by line: numpy arrays in, the solution and its :class:`~formulations.certificate.Certificate` out.

Notation, the same in every module:

======== ==================================================================================
n, d, p  rows, features, columns of the design
m        missingness pattern of a row: m_j = 1 where feature j is missing
A        design matrix, one column a coefficient
y, q     target, and the share of each row in the risk (weights that sum to 1)
w        coefficients
l1, l2   weights of |w_k| and of w_k^2 / 2 in the penalty
======== ==================================================================================
"""

# Another distribution of this name exists; `admiss` reads this marker to tell whether it has taken the place of ours.
DISTRIBUTION = "admiss"
