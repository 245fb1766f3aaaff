"""Adaptive linear models (Sections 2.1 to 2.4 of the paper).

Read ``estimators`` and ``base`` first (parameters, and the way of a fit), then ``design`` (from rows to columns),
``penalty``, and ``fit`` (units, and the choice of a solver). ``squared`` has the squared loss: moments, path and proof;
``training_sums`` and ``training_patterns`` give it the same from statistics, ``squared_by_rows`` is for fits that
moments do not prove. ``logistic`` has the logistic loss, ``stated_program`` leads to cvxpy. Cross-validation is ``cv``
(grid and choice), ``folds`` (the folds of a class) and ``grid_paths`` (paths of lambda in all folds). ``describe``
prints models.
"""
