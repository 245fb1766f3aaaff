"""The data of the paper (Section 4.1, Appendix B).

===================== ======================================================================
``instances``         its generated instances, draw for draw
``julia_random``      the random numbers of Julia, which they need
``registry``          facts about each of the 63 real data sets (``registry.toml``), and their list
``storage``           raw files (a folder of the user, the cache, the network), and stored results
``raw_tables``        the columns of a data set as its source has them
``encodings``         the columns as X and y, clean or as the authors encode them: ``load_dataset``
``dataset``           a data set in memory
``forest_imputation`` missing values filled in by random forests
``semi_synthetic``    real features with a generated target
===================== ======================================================================
"""
