"""Input as arrays, or an error in one clear sentence.

Features may be numpy arrays, nested lists, or data frames that narwhals supports (pandas with nullable types, polars,
pyarrow). NaN, None, NA and null are missing. The user's data are never modified.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state, compute_sample_weight
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from admiss.estimator.exposure import per_exposure
from formulations.arrays import FloatArray, IntArray
from formulations.jit import compiled, is_interrupt
from formulations.log_link import LogLink
from formulations.losses import LOSSES, resolve_loss

# Sizes of weighted columns whose squares, and products of these, are accurate in floating point.
SMALLEST, LARGEST = 1e-120, 1e120
# Values below this share of the largest of their feature are traces, which count as 0 in folds; weights are refused.
TRACE = 1e-60
# The largest floating-point number, and the largest integer that arrays hold.
MOST = float(np.finfo(float).max)
MOST_INTEGER = int(np.iinfo(np.int64).max)
ENCODE = "encode them as numbers first, for instance with admiss.TableEncoder, or OneHotEncoder of scikit-learn"
MISSING_LABELS = "y contains NaN or missing labels: remove these rows."
DAYS = "turn them into days or hours first, for instance with admiss.TableEncoder in a pipeline"


class AllowsMissing:
    """Mixin of estimators whose features may be missing; a ``loss`` with a log link needs positive targets."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.target_tags.positive_only = _has_log_link(self)
        return tags


def _has_log_link(estimator: Any) -> bool:
    """Whether the loss of an estimator, if it has one, has a log link."""
    loss = getattr(estimator, "loss", None)
    kind = LOSSES.get(loss) if isinstance(loss, str) else type(loss)
    return kind is not None and issubclass(kind, LogLink)


def refuse_arguments(estimator: Any, unknown: Iterable[str]) -> None:
    """Refuse further arguments of fit in the name of the class; Python would name the base class that defines it."""
    for name in unknown:
        raise TypeError(f"{type(estimator).__name__}.fit() got an unexpected keyword argument '{name}'.")


@dataclass(frozen=True)
class Samples:
    """Rows that were read for a fit.

    Attributes
    ----------
    X : array of shape (n, d)
        Features, NaN if missing.
    targets : list of arrays of shape (n,)
        The target of a regression, or -1 and 1 for each binary problem of a classification.
    s : array of shape (n,)
        Sample weights, multiplied by those of the classes.
    classes, codes : arrays, optional
        The distinct class labels, and the index of that of each row.
    exposure : array of shape (n,), optional
        Exposure of each row; targets are per unit of it.
    """

    X: FloatArray
    targets: list[FloatArray]
    s: FloatArray
    classes: Any = None
    codes: Any = None
    exposure: FloatArray | None = None

    def of_positive_weight(self) -> "Samples":
        """The rows that count; no copies are made if these are all."""
        used = self.s > 0
        if used.all():
            return self
        codes = None if self.codes is None else self.codes[used]
        exposure = None if self.exposure is None else self.exposure[used]
        return Samples(self.X[used], [y[used] for y in self.targets], self.s[used], self.classes, codes, exposure)


def read_samples(
    estimator: Any, X: Any, y: Any, sample_weight: Any, exposure: Any = None, *, task: str, reset: bool = True
) -> Samples:
    """The rows of a regression or a classification, or an error before any work.

    Two classes give one target, 1 for the second; more are told apart one against the rest. Only losses with a log link
    take an exposure.
    """
    rows = read_features(estimator, X, reset=reset)
    if task == "regression":
        target = read_regression_target(estimator, y, len(rows))
        samples = Samples(rows, [target], read_weights(sample_weight, rows))
    else:
        classes, codes = read_classes(estimator, y, len(rows))
        s = _times_class_weights(estimator, classes, codes, read_weights(sample_weight, rows))
        require_two_classes(estimator, codes[s > 0])
        positive = range(len(classes)) if len(classes) > 2 else [1]
        samples = Samples(rows, [np.where(codes == c, 1.0, -1.0) for c in positive], s, classes, codes)
    refuse_extremes(samples.targets[0], samples.s, rows, feature_names(estimator))
    if exposure is not None or _has_log_link(estimator):
        y, exposure = per_exposure(samples.targets[0], samples.s, exposure, resolve_loss(estimator.loss))
        samples = replace(samples, targets=[y], exposure=exposure)
    return samples


def _times_class_weights(estimator: Any, classes: Any, codes: IntArray, s: FloatArray) -> FloatArray:
    """Sample weights times the ``class_weight`` of an estimator."""
    class_weight = estimator.class_weight
    if not (class_weight is None or isinstance(class_weight, str | Mapping)):
        raise ValueError(f"class_weight must be 'balanced', a dictionary or None, not {class_weight!r}.")
    by_class = compute_sample_weight(class_weight, classes[codes])
    if not np.all(np.isfinite(by_class) & (by_class >= 0)):
        raise ValueError(f"class_weight must hold non-negative numbers, not {class_weight!r}.")
    with np.errstate(over="ignore"):
        product = s * (balanced(codes, s, len(classes)) if isinstance(class_weight, str) else by_class)
    if not np.isfinite(product).all():
        raise ValueError("class_weight times sample_weight is beyond the range of floating point: use smaller weights.")
    return product


def read_features(estimator: Any, X: Any, *, reset: bool) -> FloatArray:
    """Features as a float64 array with NaN for missing; a float64 array is not copied.

    With ``reset`` the estimator stores number and names of the columns, otherwise they are compared with those of fit.
    """
    array = _frame_to_array(X)
    if array is None:
        array = _without_strings(X)
    array = check_array(
        array, dtype=np.float64, ensure_all_finite=False, ensure_min_features=1, input_name="X", estimator=estimator
    )
    validate_data(estimator, X if _is_frame(X) else array, reset=reset, skip_check_array=True)
    _refuse_infinities(array, getattr(estimator, "feature_names_in_", None))
    return array


def _numbers(values: Any, name: str) -> FloatArray:
    """Objects as float64, NaN if missing."""
    array = np.asarray(values, dtype=object)
    try:
        numbers = np.array([np.nan if _is_missing(value) else float(value) for value in array.flat])
        return numbers.reshape(array.shape)
    except OverflowError as error:
        raise ValueError(f"{name} holds a number beyond the range of floating point: use other units.") from error
    except TypeError as error:
        raise TypeError(f"{name} must hold numbers only, and rows of the same length: {error}.") from error
    except (ValueError, ArithmeticError) as error:
        raise ValueError(f"{name} must hold numbers only, and rows of the same length.") from error


def _one_column(y: Any, name: str) -> Any:
    """A target or weights as an array that numpy understands."""
    if hasattr(y, "__array__") or isinstance(y, list | tuple):
        try:
            return np.asarray(y)
        except (TypeError, ValueError, OverflowError):  # ragged, or no numbers
            return np.asarray([*y], dtype=object)
    raise ValueError(f"{name} must be a list, an array or a column of a data frame, not {type(y).__name__}.")


def _is_frame(X: Any) -> bool:
    return isinstance(nw.from_native(X, pass_through=True), nw.DataFrame | nw.LazyFrame)


def _frame_to_array(X: Any) -> FloatArray | None:
    """The values of a data frame, or None if X is not one."""
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError("The columns of X must have different names, and one occurs more than once.") from error
    if isinstance(frame, nw.LazyFrame):
        raise TypeError("X is a lazy frame: collect it first.")
    if not isinstance(frame, nw.DataFrame):
        return None
    columns = [numeric_column(series) for series in frame.iter_columns()]
    refused = [str(name) for name, column in zip(frame.columns, columns, strict=True) if column is None]
    if refused:
        dates = [name for name in refused if frame[name].dtype in (nw.Date, nw.Datetime, nw.Duration, nw.Time)]
        others = [name for name in refused if name not in dates]
        sentences = [f"The columns {', '.join(dates)} of X are dates or times: {DAYS}."] if dates else []
        sentences += [f"The columns {', '.join(others)} of X are not numbers: {ENCODE}."] if others else []
        raise ValueError(" ".join(sentences))
    if frame.shape[1] == 0:
        return np.empty((frame.shape[0], 0))
    return np.column_stack([column for column in columns if column is not None])


def numeric_column(series: Any) -> FloatArray | None:
    """A column as floats, or None if it has other values than numbers."""
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return np.asarray(series.cast(nw.Float64).fill_null(np.nan).to_numpy(), dtype=float)
    if series.null_count() == len(series):  # its type does not matter
        return np.full(len(series), np.nan)
    values = None if series.dtype in (nw.Categorical, nw.Enum) else series.to_list()
    if values is None or not all(_is_missing(value) or isinstance(value, Real) for value in values):
        return None
    return _numbers(values, "X")


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _without_strings(X: Any) -> Any:
    """X with None and NA replaced by NaN, or an error if it has strings or dates."""
    if sp.issparse(X):
        return X
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.filled(X.astype(float), np.nan)
    if not isinstance(X, list | tuple) and not hasattr(X, "__array__"):
        raise ValueError(f"X must be an array, a list of rows or a data frame, not {type(X).__name__}.")
    array = np.asarray(X, dtype=object if isinstance(X, list | tuple) else None)
    if array.dtype.kind in "US" or (array.dtype == object and any(isinstance(v, str | bytes) for v in array.flat)):
        raise ValueError(f"X holds strings: {ENCODE}.")
    if array.dtype.kind in "mM":
        raise ValueError(f"X holds dates or times: {DAYS}.")
    return _numbers(array, "X") if array.dtype.kind in "OV" else array


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Restore an estimator whose fit fails or is interrupted."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException as error:
        vars(estimator).clear()
        vars(estimator).update(before)
        if is_interrupt(error) and not isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise


def _refuse_infinities(X: FloatArray, names: Any) -> None:
    infinite = np.isinf(X)
    if infinite.any():
        columns = ", ".join(str(j if names is None else names[j]) for j in np.flatnonzero(infinite.any(axis=0))[:5])
        raise ValueError(
            f"X contains infinity in column {columns}: replace it by a number, or by NaN if it is missing."
        )


def read_regression_target(estimator: Any, y: Any, n: int) -> FloatArray:
    """The target as a float64 array."""
    _require_target(estimator, y)
    y = column_or_1d(_one_column(y, "y"), warn=True)
    y = _numbers(y, "y") if y.dtype.kind in "OUSV" else y
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=estimator)
    check_consistent_length(y, np.empty(n))
    return np.asarray(y)


def read_classes(estimator: Any, y: Any, n: int) -> tuple[Any, Any]:
    """The distinct classes, sorted, and the index of the class of each row."""
    from sklearn.utils.multiclass import check_classification_targets

    _require_target(estimator, y)
    y = column_or_1d(_one_column(y, "y"), warn=True)
    if y.dtype.kind == "f" and np.isnan(y).any():
        raise ValueError(MISSING_LABELS)
    if y.dtype.kind not in "biufU":
        _require_one_type(y)
    check_classification_targets(y)
    check_consistent_length(y, np.empty(n))
    return np.unique(y, return_inverse=True)


def _require_one_type(y: Any) -> None:
    """Refuse missing labels, labels that are neither strings nor numbers, and a mix of both."""
    if any(_is_missing(label) or label != label for label in np.asarray(y, dtype=object)):
        raise ValueError(MISSING_LABELS)
    numbers = Real | np.bool_
    kinds = {str if isinstance(label, str) else Real if isinstance(label, numbers) else type(label) for label in y}
    if not kinds <= {str, Real}:
        other = next(type(label).__name__ for label in y if not isinstance(label, str | numbers))
        raise ValueError(f"y must hold labels that are strings, numbers or truth values, not {other}.")
    if len(kinds) > 1:
        names = ", ".join(sorted({type(label).__name__ for label in y}))
        raise ValueError(f"y holds labels of different types ({names}): make all of them strings, or all numbers.")


def require_two_classes(estimator: Any, codes: Any) -> None:
    """Refuse rows of a single class."""
    if len(np.unique(codes)) < 2:
        raise ValueError(f"{type(estimator).__name__} needs rows of at least two classes, and y has one class only.")


def balanced(codes: IntArray, s: FloatArray, n_classes: int, train: IntArray | None = None) -> FloatArray:
    """Class weight of each row that makes all classes weigh the same, among the rows ``train`` (all by default).

    A class that is not among these rows has the weight that it has among all rows.

    Examples
    --------
    >>> balanced(np.array([0, 0, 1, 2]), np.ones(4), 3, np.array([0, 1, 2])).round(2).tolist()
    [0.75, 0.75, 1.5, 1.33]
    """
    weights = np.zeros(n_classes)
    for rows in (np.arange(len(codes)), *([] if train is None else [train])):
        sums = np.bincount(codes[rows], s[rows], n_classes)
        seen = sums > 0
        weights = np.divide(sums.sum(), seen.sum() * sums, out=weights, where=seen)
    return np.asarray(weights[codes])


def _require_target(estimator: Any, y: Any) -> None:
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")


def read_weights(sample_weight: Any, X: FloatArray, *, allow_zero: bool = False) -> FloatArray:
    """Sample weights, ones by default; non-negative and not all 0, unless ``allow_zero``."""
    if sample_weight is None:
        return np.ones(len(X))
    if isinstance(sample_weight, Real):
        sample_weight = np.full(len(X), sample_weight)
    weights = _one_column(sample_weight, "sample_weight")
    if weights.dtype.kind in "OUSV":
        weights = _numbers(weights, "sample_weight")
    weights = check_array(weights, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.shape != (len(X),):
        raise ValueError(f"sample_weight must have one entry for each of the {len(X)} rows, not shape {weights.shape}.")
    if weights.min() < 0:
        raise ValueError("Negative values in data passed to sample_weight: weights must be 0 or larger.")
    if not weights.any() and not allow_zero:
        raise ValueError("sample_weight is 0 for every row: at least one weight must be larger than zero.")
    if np.any((weights > 0) & (weights < TRACE * weights.max(initial=0.0))):
        raise ValueError(f"sample_weight has positive entries below {TRACE:g} of the largest: set them to 0.")
    return np.asarray(weights)


def _largest_sizes(X: FloatArray) -> FloatArray:
    """Largest absolute value of each column, NaN left out."""
    return np.maximum(np.fmax.reduce(X, axis=0, initial=0.0), -np.fmin.reduce(X, axis=0, initial=0.0))


def refuse_extremes(y: FloatArray, s: FloatArray, X: FloatArray | None = None, names: Sequence[str] = ()) -> None:
    """Raise an error if squares of y, weights or features would leave the range of floating-point numbers."""
    used = s > 0
    if X is not None and not used.all():
        X = X[used]
    largest = [] if X is None else _largest_sizes(X).tolist()
    refuse_extreme_sizes(float(np.abs(y[used]).max()), float(s.max()), largest, names)


def refuse_extreme_sizes(y: float, s: float, X: Sequence[float], names: Sequence[str]) -> None:
    """The same, given the largest absolute values."""
    root = float(np.sqrt(s))
    sizes = [("sample_weight", root), ("y", y)]
    sizes += [(f"Feature {name!r}", size) for name, size in zip(names, X, strict=True)]
    for name, size in sizes:
        if size > 0 and not SMALLEST <= root * size <= LARGEST:
            extreme = "large" if root * size > 1 else "small"
            raise ValueError(
                f"{name} is too {extreme}, with weights up to {root**2:.3g}: squares leave the range of floating-point "
                "numbers, use other units."
            )


@compiled
def _has_traces(X, limit):  # type: ignore[no-untyped-def]
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if 0.0 < abs(X[i, j]) < limit[j]:
                return True
    return False


def without_traces(X: FloatArray) -> FloatArray:
    """The features with 0 for traces, which only matter in folds without the larger values: in their units.

    Examples
    --------
    >>> without_traces(np.array([[1e-70, 1e-70], [1.0, np.nan]])).tolist()
    [[0.0, 1e-70], [1.0, nan]]
    """
    limit = TRACE * _largest_sizes(X)
    return np.where(np.abs(X) < limit, 0.0, X) if _has_traces(X, limit) else X


def is_number(value: Any, largest: float = np.inf) -> bool:
    """Whether a parameter is a non-negative number up to ``largest``, and finite.

    Examples
    --------
    >>> is_number(1), is_number(10**400), is_number(2, 1.0), is_number("1")
    (True, False, False, False)
    """
    try:
        return isinstance(value, Real) and 0 <= float(value) <= min(largest, MOST)
    except OverflowError:
        return False


def require_choice(estimator: Any, name: str, known: Iterable[str]) -> None:
    """Refuse a parameter that is not one of the known strings."""
    value = getattr(estimator, name)
    known = tuple(known)
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {value!r}.")


def require_flags(estimator: Any, *names: str) -> None:
    """Refuse parameters that are neither True nor False."""
    for name in names:
        value = getattr(estimator, name)
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, not {value!r}.")


def require_number(owner: Any, name: str, kind: str = "a non-negative number") -> None:
    """Refuse a parameter of an adaptivity class or the like that is not a finite non-negative number."""
    value = getattr(owner, name)
    if not is_number(value):
        raise ValueError(f"{name} of {type(owner).__name__} must be {kind}, not {value!r}.")


def require_integer(owner: Any, name: str, least: int, largest: int = MOST_INTEGER) -> None:
    """Refuse a parameter that is not an integer from ``least`` to ``largest``."""
    value = getattr(owner, name)
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not least <= value <= largest:
        limits = f"from {least} to below 2**63" if largest == MOST_INTEGER else f"from {least} to {largest:,}"
        raise ValueError(f"{name} of {type(owner).__name__} must be an integer {limits}, not {value!r}.")


def positive_integer(name: str, value: object) -> int:
    """The value of a parameter; anything but a positive integer is an error."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a positive integer, not {value!r}.")
    return int(value)


def feature_names(estimator: Any) -> list[str]:
    """Names of the columns of X as seen in fit; x0, x1, .. if it had none."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return [f"x{j}" for j in range(estimator.n_features_in_)]
    return [str(name) for name in names]


def read_random_state(random_state: Any) -> np.random.RandomState:
    """The generator of a seed, a generator, or None; anything else is refused."""
    try:
        return check_random_state(random_state)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(
            f"random_state must be a whole number from 0 to 2**32 - 1, a RandomState or None, not {random_state!r}."
        ) from error


def seeded(estimator: Any, seed: int) -> Any:
    """A copy with the seed in every random state that is None, including those of nested estimators.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> seeded(RandomForestRegressor(), 7).random_state, seeded(RandomForestRegressor(random_state=1), 7).random_state
    (7, 1)
    """
    copy = clone(estimator)
    parameters = copy.get_params(deep=True).items()
    unset = [name for name, value in parameters if name.rpartition("__")[2] == "random_state" and value is None]
    return copy.set_params(**dict.fromkeys(unset, seed))
