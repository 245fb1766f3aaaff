"""Data with missing values: generated, real, and real features with generated targets.

========================== ================================================================================
``generated``              generated features and targets: ``make_synthetic``, ``make_interacting``, signals
``mechanisms``             rules that remove values from a matrix
``paper``                  the generated instances of the paper, draw for draw
``real``                   the 63 real data sets of the paper: registry, files, encodings, ``load_dataset``
``dataset``                a data set in memory
``forest_imputation``      missing values filled in by random forests
``semi_synthetic_designs`` real features with a generated target
``cached``                 the cache folder, and results stored in it
========================== ================================================================================
"""

from admiss.datasets.dataset import Dataset, Origin
from admiss.datasets.forest_imputation import full_matrix, impute_forest
from admiss.datasets.generated.interacting import make_interacting
from admiss.datasets.generated.synthetic import SyntheticData, make_synthetic
from admiss.datasets.mechanisms.composed import Adversarial, Either, Only, Together
from admiss.datasets.mechanisms.single import AtRandom, Censoring, CompletelyAtRandom, Mechanism, SelfMasking
from admiss.datasets.mechanisms.structured import Blocks, Dropout, LatentFactor, PanelAttrition, QuantileAtRandom
from admiss.datasets.paper.instances import paper_instance, paper_instances
from admiss.datasets.real.authors_encoding import real_target_rows, summary
from admiss.datasets.real.load import list_datasets, load_dataset
from admiss.datasets.real.storage import DataUnavailableError
from admiss.datasets.semi_synthetic_designs import SemiSyntheticData, semi_synthetic

__all__ = [
    "Adversarial",
    "AtRandom",
    "Blocks",
    "Censoring",
    "CompletelyAtRandom",
    "DataUnavailableError",
    "Dataset",
    "Dropout",
    "Either",
    "LatentFactor",
    "Mechanism",
    "Only",
    "Origin",
    "PanelAttrition",
    "QuantileAtRandom",
    "SelfMasking",
    "SemiSyntheticData",
    "SyntheticData",
    "Together",
    "full_matrix",
    "impute_forest",
    "list_datasets",
    "load_dataset",
    "make_interacting",
    "make_synthetic",
    "paper_instance",
    "paper_instances",
    "real_target_rows",
    "semi_synthetic",
    "summary",
]
