"""Finitely adaptive models (Section 2.2 of the paper): a linear model in each leaf of a partition.

Read ``estimators`` and ``base`` first (parameters, and the way of a fit), then ``leaf_features`` (from rows to the
features of leaves); partitions come from :mod:`admiss.partition`, costs from :mod:`formulations.leaves`. ``search`` and
``cv`` choose depth and ridge, ``from_statistics`` does both without the rows.
"""
