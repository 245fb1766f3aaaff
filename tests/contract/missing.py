"""Checks with missing values, which scikit-learn's own checks never feed."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import KFold

from tests.contract.contract import (
    NAMES,
    assert_close,
    assert_finite,
    check,
    is_transformer,
    make_rows,
    outputs,
    takes_weights,
)


@check()
def value_under_nan(case):
    """Bits of a NaN, values under a mask and buffers behind a null cannot matter."""
    X, y = make_rows(case.model)
    M = np.isnan(X)
    expected = outputs(case.fit(X, y), X)
    payload = np.where(M, -np.nan, X)
    payload.view(np.uint64)[M] += 1234
    np.testing.assert_array_equal(outputs(case.fit(payload, y), payload), expected)
    frame = pd.DataFrame(X, columns=NAMES)
    expected = outputs(case.fit(frame, y), frame)
    for hidden in (-999.0, np.inf):
        full = np.where(M, hidden, X)
        masked = np.ma.MaskedArray(full, mask=M)
        np.testing.assert_array_equal(outputs(case.fit(masked, y), masked), expected)
        columns = zip(NAMES, full.T, M.T, strict=True)
        nullable = pd.DataFrame({name: pd.arrays.FloatingArray(x.copy(), m.copy()) for name, x, m in columns})
        np.testing.assert_array_equal(outputs(case.fit(nullable, y), nullable), expected)
        arrow = pa.table({name: pa.array(x, mask=m) for name, x, m in zip(NAMES, full.T, M.T, strict=True)})
        np.testing.assert_array_equal(outputs(case.fit(pl.DataFrame(arrow), y), pl.DataFrame(arrow)), expected)


@check()
def rows_all_missing(case):
    """Rows without any observed value, in fit and predict, or in predict only."""
    X, y = make_rows(case.model)
    X[:4] = np.nan
    for first in (0, 4):
        found = outputs(case.fit(X[first:], y[first:]), X)
        assert_finite(found)
        assert np.ptp(found[:4], axis=0).max() < 1e-12


@check()
def columns_all_missing(case):
    """A column that was never observed has no influence, also if it is observed later."""
    X, y = make_rows(case.model)
    wide = np.insert(X, 2, np.nan, axis=1)
    fitted, expected = case.fit(wide, y), outputs(case.fit(X, y), X)
    for value in (np.nan, 3.0):
        wide[:, 2] = value
        found = outputs(fitted, wide)
        if is_transformer(fitted) and found.shape[1] > expected.shape[1]:
            assert not found[:, 2].any()
            found = np.delete(found, 2, axis=1)
        assert_close(found, expected)


@check()
def nothing_observed(case):
    """Without any observed value the output is one constant."""
    _, y = make_rows(case.model)
    X = np.full((len(y), 2), np.nan)
    found = outputs(case.fit(X, y), X)
    assert_finite(found)
    assert not found.size or np.ptp(found, axis=0).max() < 1e-9


@check()
def never_observed_is_reported(case):
    X, y = make_rows(case.model)
    X[:, [0, 2]] = np.nan
    with pytest.warns(UserWarning, match="Never observed in training, and .*: a, c"):
        case.fit(pd.DataFrame(X, columns=NAMES), y)


@check()
def missing_only_in_fit(case):
    X, y = make_rows(case.model)
    fitted = case.fit(X, y)
    found = outputs(fitted, np.nan_to_num(X))
    assert_finite(found)
    assert_close(found[0], outputs(fitted, np.nan_to_num(X[:1]))[0])


@check()
def missing_only_in_predict(case):
    """A feature that was never missing is set to its training mean, with a warning that names it."""
    X, y = make_rows(case.model)
    for rows in (X, np.nan_to_num(X, nan=0.5)):
        fitted = case.fit(pd.DataFrame(rows, columns=NAMES), y)
        hole, filled = rows.copy(), rows.copy()
        hole[::2, 1], filled[::2, 1] = np.nan, rows[:, 1].mean()
        with pytest.warns(UserWarning, match="set to the training mean here: b"):
            found = outputs(fitted, pd.DataFrame(hole, columns=NAMES))
        assert_close(found, outputs(fitted, pd.DataFrame(filled, columns=NAMES)))


@check()
def unseen_patterns(case):
    """Patterns that training has not seen give finite outputs, silently if each feature has been missing before."""
    X, y = make_rows(case.model)
    single = np.isnan(X).sum(axis=1) <= 1
    new = np.full((3, 4), np.nan)
    new[:, 1], new[1, 0] = 1.0, 2.0
    fitted = case.fit(X[single], y[single])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_finite(outputs(fitted, new))


@check()
def kinds_of_input(case):
    """Arrays, lists and frames of every kind give the model of the same float array."""
    X, y = make_rows(case.model)
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
        "fortran": (X, np.asfortranarray(X)),
        "read-only": (X, locked),
        "integers": (full, full.astype(int)),
        "booleans": ((full > 0).astype(float), full > 0),
    }
    plain = outputs(case.fit(X, y), X)
    for kind, (rows, given) in kinds.items():
        expected = plain if rows is X else outputs(case.fit(rows, y), rows)
        assert_close(outputs(case.fit(given, y), given), expected, kind)


@check()
def permuted_columns(case):
    """Columns in another order give the same predictions; of a transformer, the same columns by name."""
    X, y = make_rows(case.model)
    first, second = pd.DataFrame(X, columns=NAMES), pd.DataFrame(X, columns=NAMES)[list("cadb")]
    found, expected = outputs(model := case.fit(second, y), second), outputs(other := case.fit(first, y), first)
    if is_transformer(model):
        found, expected = (
            pd.DataFrame(values, columns=fitted.get_feature_names_out()).sort_index(axis=1)
            for values, fitted in ((found, model), (expected, other))
        )
        assert list(found) == list(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@check()
def infinities_refused(case):
    """In fit and in predict, in a sentence that names the column."""
    X, y = make_rows(case.model)
    bad = X.copy()
    bad[5, 2] = -np.inf
    fitted = case.fit(X, y)
    for call in (lambda: case.fit(bad, y), lambda: outputs(fitted, bad)):
        with pytest.raises(ValueError, match="infinity in column 2:.* NaN if"):
            call()
    with pytest.raises(ValueError, match="infinity in column c:"):
        case.fit(pd.DataFrame(bad, columns=NAMES), y)


def folds_of(model, copies):
    """Folds of the rows, and of their copies: nothing to set without folds."""
    if "cv" not in model.get_params() or model.cv is None:
        return {}, {}
    folds = list(KFold(2, shuffle=True, random_state=0).split(np.empty(copies.max() + 1)))
    return {"cv": folds}, {"cv": [tuple(np.flatnonzero(np.isin(copies, part)) for part in fold) for fold in folds]}


@check(takes_weights)
def weights_are_copies(case):
    """A weight equals that many copies of the row, in the same fold."""
    X, y = make_rows(case.model)
    s = np.random.default_rng(0).integers(1, 4, size=len(y))
    copies = np.repeat(np.arange(len(y)), s)
    first, second = folds_of(case.model, copies)
    weighted, copied = case.fit(X, y, s, **first), case.fit(X[copies], y[copies], **second)
    assert_close(outputs(weighted, X), outputs(copied, X))
    if hasattr(weighted, "certificate_"):
        assert weighted.certificate_.objective == pytest.approx(copied.certificate_.objective, rel=1e-7)
    if hasattr(weighted, "best_score_"):
        assert weighted.best_score_ == pytest.approx(copied.best_score_, rel=1e-5)


@check(takes_weights)
def rows_of_weight_zero(case):
    """Rows of weight zero are dropped; other weights count."""
    X, y = make_rows(case.model)
    s = np.where(np.arange(len(y)) % 4 == 0, 0.0, np.random.default_rng(0).uniform(1, 3, len(y)))
    X[s == 0, 1], y[s == 0] = 1e3, y[s > 0][0]
    found = outputs(case.fit(X, y, s), X)
    np.testing.assert_array_equal(found, outputs(case.fit(X[s > 0], y[s > 0], s[s > 0]), X))
    assert np.abs(found - outputs(case.fit(X, y), X)).max() > 1e-6


@check(lambda model: takes_weights(model) and "cv" in model.get_params())
def rows_of_weight_zero_in_given_folds(case):
    """Folds that are given count all rows, those of weight zero included."""
    X, y = make_rows(case.model)
    s = (np.arange(len(y)) % 4 > 0).astype(float)
    position = np.cumsum(s > 0) - 1
    folds = list(KFold(2, shuffle=True, random_state=0).split(X))
    left = [tuple(position[part[s[part] > 0]] for part in fold) for fold in folds]
    found = outputs(case.fit(X, y, s, cv=folds), X)
    np.testing.assert_array_equal(found, outputs(case.fit(X[s > 0], y[s > 0], s[s > 0], cv=left), X))
