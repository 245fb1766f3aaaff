"""Adaptive linear models (Sections 2.1 to 2.4 of the paper).

A fit: parameters are checked (``base``), rows are read (``estimators``), the class says what its columns are
(:class:`admiss.adaptivity.base.Basis`), the rows become the columns of a design (``design``), these get their penalties
and units (``penalty``), and a solver is chosen (``fit``).

``squared`` has the squared loss: training rows, their moments, the path and the proof. ``training_sums`` and
``training_patterns`` are training rows of which only statistics are known; ``squared_by_rows`` is for fits that moments
do not prove. ``logistic`` has the logistic loss and those with a log link, whose targets and exposures ``log_link``
reads; ``piecewise`` has the absolute, quantile and Huber losses. ``stated_program`` leads to cvxpy.

``program`` opens the program: ``every_pattern`` has its weights as expressions, ``changed_program`` checks what was
added, and ``program_solver`` solves it. ``program_folds`` are the folds of a search with constraints.

A cross-validation (``cv``): the grid is checked, rows are read and divided
(:mod:`admiss.estimator.cross_validation`); for every class, ``folds`` makes the lambdas from all rows and then, fold by
fold, a design, penalties and an object that follows a path; ``grid_paths`` runs all paths and chooses a cell, which is
fitted on all rows. ``describe`` prints models.
"""
