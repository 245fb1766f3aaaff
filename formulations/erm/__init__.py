"""The penalised empirical risk of a linear model: the cvxpy program, its certificates, and fast paths of its solutions.

Read ``risk`` first (the empirical risk, its compression and centring), then ``program`` (the cvxpy program) and
``dual_bound`` (on top of ``dual_rows`` and ``rounding``: a bound that holds in exact arithmetic, independent of the
solver; ``moment_bound`` is the same from second moments) and ``optimality`` (conditions and Newton steps). The fast
algorithms for the same program are ``quadratic_path``, on top of ``active_set``, ``logistic_path``, which also serves
losses with a log link, and ``interior_point`` for the absolute, quantile and Huber losses; without l1 penalties
``ridge_path`` and ``logistic_ridge``.
"""
