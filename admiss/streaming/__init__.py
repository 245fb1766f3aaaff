"""Data larger than memory: statistics of one pass over rows that add up, and from which models are fitted."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from admiss.statistics.hash_folds import HashFolds
from admiss.statistics.row_statistics import RowStatistics

if TYPE_CHECKING:
    from admiss.streaming.one_pass import SourceRows as SourceRows
    from admiss.streaming.one_pass import accumulate as accumulate
    from admiss.streaming.prediction import pattern_report as pattern_report
    from admiss.streaming.prediction import predict_to_parquet as predict_to_parquet
    from admiss.tables.opening import open_source as open_source

# Imported on first use: fits in memory need none of them.
_LATER = {
    "SourceRows": "admiss.streaming.one_pass",
    "accumulate": "admiss.streaming.one_pass",
    "open_source": "admiss.tables.opening",
    "pattern_report": "admiss.streaming.prediction",
    "predict_to_parquet": "admiss.streaming.prediction",
}
__all__ = ["HashFolds", "RowStatistics", *_LATER]

if not TYPE_CHECKING:  # type checkers would take every unknown name for an attribute

    def __getattr__(name: str) -> Any:
        if name in _LATER:
            return getattr(import_module(_LATER[name]), name)
        raise AttributeError(f"module 'admiss.streaming' has no attribute {name!r}")
