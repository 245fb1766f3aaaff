"""Data with missing values: generated, real, and real features with generated targets.

============== =====================================================================================================
``generated``  generated features and targets: ``make_synthetic``, ``make_interacting``, signals
``mechanisms`` rules that remove values from a matrix
``paper``      the data of the paper, imported on first use: its generated instances, draw for draw; its 63 real data
               sets; real features with generated targets, missing values imputed by forests
============== =====================================================================================================
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from admiss.datasets.generated import SyntheticData, make_interacting, make_synthetic
from admiss.datasets.mechanisms.composed import Adversarial, Either, Only, Together
from admiss.datasets.mechanisms.single import AtRandom, Censoring, CompletelyAtRandom, Mechanism, SelfMasking
from admiss.datasets.mechanisms.structured import Blocks, Dropout, LatentFactor, PanelAttrition, QuantileAtRandom

if TYPE_CHECKING:
    from admiss.datasets.paper.dataset import Dataset, Origin
    from admiss.datasets.paper.encodings import load_dataset, real_target_rows, summary
    from admiss.datasets.paper.forest_imputation import full_matrix, impute_forest
    from admiss.datasets.paper.instances import paper_instance, paper_instances
    from admiss.datasets.paper.registry import list_datasets
    from admiss.datasets.paper.semi_synthetic import SemiSyntheticData, semi_synthetic
    from admiss.datasets.paper.storage import DataUnavailableError

_OF_PAPER = {
    "dataset": ("Dataset", "Origin"),
    "encodings": ("load_dataset", "real_target_rows", "summary"),
    "forest_imputation": ("full_matrix", "impute_forest"),
    "instances": ("paper_instance", "paper_instances"),
    "registry": ("list_datasets",),
    "semi_synthetic": ("SemiSyntheticData", "semi_synthetic"),
    "storage": ("DataUnavailableError",),
}
_HOMES = {name: f"admiss.datasets.paper.{module}" for module, names in _OF_PAPER.items() for name in names}

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


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # type checkers would take every unknown name for an attribute

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'admiss.datasets' has no attribute {name!r}")
        globals()[name] = getattr(import_module(_HOMES[name]), name)
        return globals()[name]
