"""The real data sets of the paper (Section 4.1, Appendix B.2).

==================== ======================================================================
``registry``         facts about each data set (``registry.toml``)
``storage``          raw files: a folder of the user, the cache, the network
``r_packages``       tables of R packages, read without executing anything
``raw_tables``       the columns of a data set as its source has them
``encoding``         the clean encoding of columns as X and y
``authors_encoding`` the authors' encoding, which reproduces the tables of Appendix B.2
``load``             ``load_dataset`` and ``list_datasets``
==================== ======================================================================
"""
