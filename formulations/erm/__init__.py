"""The penalised empirical risk of a linear model: the cvxpy program, its dual bound, and fast paths of its solutions."""
