"""Rows for an estimator inside another one, in the kind of table that the user gave."""

from typing import Any

import narwhals.stable.v2 as nw

from formulations.arrays import FloatArray


class GivesFrames:
    """Mixin of estimators that read a table and give its rows to another estimator."""

    library_: Any

    def _remember_frame(self, X: Any) -> None:
        """Remember the library of a data frame, in which the estimator is given its rows."""
        frame = nw.from_native(X, pass_through=True)
        self.library_ = str(frame.implementation) if isinstance(frame, nw.DataFrame) else ""

    def _given(self, X: FloatArray) -> Any:
        """Rows as the estimator sees them: with the names of the columns, if they had names."""
        if self.library_ in ("pandas", "polars") and hasattr(self, "feature_names_in_"):
            return nw.from_numpy(X, schema=list(self.feature_names_in_), backend=self.library_).to_native()
        return X
