"""Training and test rows of a comparison, and the folds that all methods share."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from admiss.compare.setting import Setting
from admiss.estimator.cv import Split, make_folds
from admiss.estimator.validation import read_classes, read_features, read_regression_target
from formulations.arrays import FloatArray


@dataclass(frozen=True)
class ComparedRows:
    """Rows as they were given, and as arrays.

    Attributes
    ----------
    given : (X, y)
        Training rows with their names.
    X, y : arrays
        The same as arrays with NaN, y numbers or labels.
    test : (X, y), optional
        Test rows as arrays.
    classes : array, optional
        All classes of training and test rows, sorted; None in regression.
    folds : list of (train, held-out)
        As many as rows if these are fewer than the folds of the settings.
    """

    given: tuple[Any, Any]
    X: FloatArray
    y: Any
    test: tuple[FloatArray, Any] | None
    classes: Any
    folds: list[Split]

    @classmethod
    def of(cls, X: Any, y: Any, X_test: Any, y_test: Any, setting: Setting) -> "ComparedRows":
        """Read the rows, with an error in one sentence for those that cannot be used."""
        reader = setting.estimator("none")
        rows = read_features(reader, X, reset=True)
        if setting.task == "classification":
            classes, labels = read_classes(reader, y, len(rows))
            target = classes[labels]
        else:
            classes, labels, target = None, None, read_regression_target(reader, y, len(rows))
        test = None
        if X_test is not None:
            test_rows = read_features(reader, X_test, reset=False)
            if classes is None:
                test = test_rows, read_regression_target(reader, y_test, len(test_rows))
            else:
                found, codes = read_classes(reader, y_test, len(test_rows))
                test, classes = (test_rows, found[codes]), np.union1d(classes, found)
        n_folds, folds = min(setting.folds, len(rows)), []
        if n_folds > 1:
            folds = make_folds(rows, target, labels, np.ones(len(rows)), n_folds, setting.seed)
        return cls((X, y), rows, target, test, classes, folds)

    def overlap(self) -> float:
        """Held-out rows per training row of a fold."""
        return float(np.mean([len(held) / len(train) for train, held in self.folds])) if self.folds else 0.0

    def description(self) -> str:
        """Their size in words."""
        rows, missing = f"{len(self.y):,} training rows", f"{np.isnan(self.X).mean():.0%} missing"
        words = f"{rows}, {self.X.shape[1]} feature{'s' * (self.X.shape[1] != 1)}, {missing}"
        if self.classes is None:
            return words
        labels, counts = np.unique(self.y, return_counts=True)
        listed = ", ".join(f"{label} {count:,}" for label, count in zip(labels, counts, strict=True))
        return f"{words}; classes: {listed}" if len(labels) <= 10 else f"{words}; {len(labels)} classes"

    def notes(self) -> list[str]:
        """A sentence about classes that are in few rows."""
        if self.classes is None:
            return []
        counts = [(str(label), int((self.y == label).sum())) for label in self.classes]
        rare = ", ".join(label for label, count in counts if count < max(1, len(self.folds)))
        if not rare:
            return []
        return [
            f"Fewer rows than folds are of class {rare}: a fold or a leaf without them gives them probability 0, which "
            "weighs heavily in the log-loss."
        ]
