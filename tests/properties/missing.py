"""Properties with missing values, which scikit-learn's own checks never feed."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.properties.entry import (
    NAMES,
    assert_close,
    assert_finite,
    assert_points_to_the_call,
    is_transformer,
    make_rows,
    outputs,
    prop,
)


@prop()
def value_under_nan(entry):
    """Bits of a NaN, values under a mask and buffers behind a null cannot matter."""
    X, y = make_rows(entry.model)
    M = np.isnan(X)
    expected = outputs(entry.fit(X, y), X)
    payload = np.where(M, -np.nan, X)
    payload.view(np.uint64)[M] += 1234
    np.testing.assert_array_equal(outputs(entry.fit(payload, y), payload), expected)
    frame = pd.DataFrame(X, columns=NAMES)
    expected = outputs(entry.fit(frame, y), frame)
    for hidden in (-999.0, np.inf):
        full = np.where(M, hidden, X)
        masked = np.ma.MaskedArray(full, mask=M)
        np.testing.assert_array_equal(outputs(entry.fit(masked, y), masked), expected)
        columns = zip(NAMES, full.T, M.T, strict=True)
        nullable = pd.DataFrame({name: pd.arrays.FloatingArray(x.copy(), m.copy()) for name, x, m in columns})
        np.testing.assert_array_equal(outputs(entry.fit(nullable, y), nullable), expected)
        arrow = pa.table({name: pa.array(x, mask=m) for name, x, m in zip(NAMES, full.T, M.T, strict=True)})
        np.testing.assert_array_equal(outputs(entry.fit(pl.DataFrame(arrow), y), pl.DataFrame(arrow)), expected)


@prop()
def rows_all_missing(entry):
    """Rows without any observed value, in fit and predict, or in predict only."""
    X, y = make_rows(entry.model)
    X[:4] = np.nan
    for first in (0, 4):
        found = outputs(entry.fit(X[first:], y[first:]), X)
        assert_finite(found)
        assert np.ptp(found[:4], axis=0).max() < 1e-12


@prop()
def columns_all_missing(entry):
    """A column that was never observed has no influence, also if it is observed later."""
    X, y = make_rows(entry.model)
    wide = np.insert(X, 2, np.nan, axis=1)
    fitted, expected = entry.fit(wide, y), outputs(entry.fit(X, y), X)
    for value in (np.nan, 3.0):
        wide[:, 2] = value
        found = outputs(fitted, wide)
        if is_transformer(fitted) and found.shape[1] > expected.shape[1]:
            assert not found[:, 2].any()
            found = np.delete(found, 2, axis=1)
        assert_close(found, expected)


@prop()
def nothing_observed(entry):
    """Without any observed value the output is one constant."""
    _, y = make_rows(entry.model)
    X = np.full((len(y), 2), np.nan)
    found = outputs(entry.fit(X, y), X)
    assert_finite(found)
    assert not found.size or np.ptp(found, axis=0).max() < 1e-9


@prop()
def never_observed_is_reported(entry):
    X, y = make_rows(entry.model)
    X[:, [0, 2]] = np.nan
    with pytest.warns(UserWarning, match="Never observed.*: a, c") as caught:
        entry.fit(pd.DataFrame(X, columns=NAMES), y)
    assert_points_to_the_call(caught, "Never observed")


@prop()
def missing_only_in_fit(entry):
    X, y = make_rows(entry.model)
    fitted = entry.fit(X, y)
    found = outputs(fitted, np.nan_to_num(X))
    assert_finite(found)
    assert_close(found[0], outputs(fitted, np.nan_to_num(X[:1]))[0])


@prop()
def missing_only_in_predict(entry):
    """A feature that was never missing is set to its training mean, with a warning that names it."""
    X, y = make_rows(entry.model)
    for rows in (X, np.nan_to_num(X, nan=0.5)):
        fitted = entry.fit(pd.DataFrame(rows, columns=NAMES), y)
        hole, filled = rows.copy(), rows.copy()
        hole[::2, 1], filled[::2, 1] = np.nan, rows[:, 1].mean()
        with pytest.warns(UserWarning, match="training mean.*: b") as caught:
            found = outputs(fitted, pd.DataFrame(hole, columns=NAMES))
        assert_points_to_the_call(caught, "training mean")
        assert_close(found, outputs(fitted, pd.DataFrame(filled, columns=NAMES)))


@prop()
def unseen_patterns(entry):
    """Patterns that training has not seen give finite outputs, silently if each feature has been missing before."""
    X, y = make_rows(entry.model)
    single = np.isnan(X).sum(axis=1) <= 1
    new = np.full((3, 4), np.nan)
    new[:, 1], new[1, 0] = 1.0, 2.0
    fitted = entry.fit(X[single], y[single])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_finite(outputs(fitted, new))


@prop()
def kinds_of_input(entry):
    """Arrays, lists and frames of every kind give the model of the same float array."""
    X, y = make_rows(entry.model)
    X = X.round(2)
    X[:, 2] = np.where(np.isnan(X[:, 2]), np.nan, X[:, 2] > 1)
    X[:, 3] = X[:, 3].round()
    frame = pd.DataFrame(X, columns=NAMES)
    missing = frame.isna()
    polars = pl.DataFrame(frame.to_dict("list")).fill_nan(None)
    polars = polars.with_columns(pl.col("c").cast(pl.Boolean), pl.col("d").cast(pl.Int64))
    locked = X.copy()
    locked.setflags(write=False)
    full, single = np.nan_to_num(X).round(), X.astype(np.float32)
    kinds = {
        "pandas": (X, frame),
        "pandas nullable": (X, frame.astype({"a": "Float64", "c": "boolean", "d": "Int64"})),
        "pandas NA": (X, frame.astype(object).mask(missing, pd.NA)),
        "polars": (X, polars),
        "arrow": (X, polars.to_arrow()),
        "objects": (X, np.where(missing, None, X.astype(object))),
        "lists": (X, [[None if np.isnan(v) else float(v) for v in row] for row in X]),
        "single precision": (single.astype(float), single),
        "tuples": (X, tuple(map(tuple, X.tolist()))),
        "fortran": (X, np.asfortranarray(X)),
        "strided": (X, np.repeat(X, 2, axis=0)[::2]),
        "big endian": (X, X.astype(">f8")),
        "long double": (X, X.astype(np.longdouble)),
        "other index": (X, frame.set_axis([7] * len(X))),
        "read-only": (X, locked),
        "integers": (full, full.astype(int)),
        "booleans": ((full > 0).astype(float), full > 0),
    }
    plain = outputs(entry.fit(X, y), X)
    for kind, (rows, given) in kinds.items():
        expected = plain if rows is X else outputs(entry.fit(rows, y), rows)
        assert_close(outputs(entry.fit(given, y), given), expected, kind)


@prop()
def infinities_refused(entry):
    """In fit and in predict, in a sentence that names the column."""
    X, y = make_rows(entry.model)
    bad = X.copy()
    bad[5, 2] = -np.inf
    fitted = entry.fit(X, y)
    for call in (lambda: entry.fit(bad, y), lambda: outputs(fitted, bad)):
        with pytest.raises(ValueError, match="infinity in column 2"):
            call()
    with pytest.raises(ValueError, match="infinity in column c"):
        entry.fit(pd.DataFrame(bad, columns=NAMES), y)
