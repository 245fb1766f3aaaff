"""Sums over rows that add up, and from which models of the squared loss are fitted.

=================== ===============================================================================
``blocks``          blocks of rows, the parts that statistics are made of, and sums over many blocks
``hash_folds``      folds by a hash of the row
``feature_sums``    counts, means, squares and ranges of features and target
``product_columns`` the columns whose moments suffice for an adaptivity class
``product_moments`` their second moments
``missing_sets``    sums over sets of missing features, for trees
``pattern_factors`` a few weighted rows with the moments of each pattern, for any partition
``saved``           one file, with checksums
``row_statistics``  all of these for one pass over rows
=================== ===============================================================================
"""
