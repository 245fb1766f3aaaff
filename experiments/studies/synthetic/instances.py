"""Generated rows of the paper: those of its authors, and fresh draws as described in its text."""

from dataclasses import dataclass

from admiss.datasets import SyntheticData, make_synthetic, paper_instance
from admiss.study import instance_seed
from experiments.studies.methods.rows import StudyRows, size_facts


@dataclass(frozen=True)
class AuthorsInstance:
    """A data set of the authors: five signals with two shuffles of the rows each (replicates 1 to 5, and 6 to 10)."""

    n: int
    mechanism: str
    signal: str
    missing_fraction: float
    replicate: int

    def make(self) -> StudyRows:
        data = paper_instance(self.n, self.mechanism, self.signal, self.missing_fraction, self.replicate)
        return _rows(data)


@dataclass(frozen=True)
class TextInstance:
    """A fresh draw of covariance, signal, missing values and noise as described in the paper."""

    n: int
    mechanism: str
    signal: str
    missing_fraction: float
    replicate: int

    def make(self) -> StudyRows:
        data = make_synthetic(
            self.n,
            mechanism=self.mechanism,
            signal=self.signal,
            missing_fraction=self.missing_fraction,
            random_state=instance_seed(self),
        )
        return _rows(data)


def _rows(data: SyntheticData) -> StudyRows:
    facts = {**size_facts(data.X_train), "ceiling": float(data.ceiling)}
    return StudyRows(
        data.X_train, data.y_train, data.X_test, data.y_test, data.X_full_train, data.X_full_test, "regression", facts
    )
