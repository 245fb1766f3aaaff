"""The best partition of missingness patterns into arbitrary groups, by branch and price.

Read ``problem`` first (statement and entry point), then ``search``, which runs the steps: ``exchange`` (good partitions
by local search), ``blocks`` (a bound for many patterns), ``relaxation`` (column generation), ``pricing``
(the pricing problem) and ``joining`` (closing the gap). ``compilation`` comes before the clock. For few patterns,
``subsets`` is an independent dynamic program, and ``proven_groups`` has the proof in exact arithmetic.
"""
