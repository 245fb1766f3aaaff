"""The best partition of missingness patterns into arbitrary groups, by column generation and enumeration.

Read ``problem`` first (statement and entry point) and ``program`` (the same in Pyomo, over a list of groups), then
``search``, which runs the steps: ``exchange`` (good partitions by local search), ``blocks`` (a bound for many
patterns), ``relaxation`` (column generation) and ``pricing`` (the pricing problem). For few patterns, ``subsets`` is an
independent dynamic program with a proof in exact arithmetic.
"""
