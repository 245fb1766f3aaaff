"""Relations between fits: the same model in other words must predict the same.

Objectives are compared, and predictions if the optimum is unique and stable. Several partitions can cost the same, and
a tie within rounding can lead a greedy search or a cross-validation elsewhere: then nothing more is compared.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from admiss.partition import Greedy
from formulations.certificate import SolverError
from tests.odd_inputs import promises
from tests.odd_inputs.case import Case
from tests.odd_inputs.models import is_deterministic
from tests.odd_inputs.oracles import Broken, is_refused, outputs, require
from tests.odd_inputs.rows import Rows

# Largest deviation of predictions, as a share of their range, and of objectives and scores.
CLOSE, CLOSE_OBJECTIVE, CLOSE_SCORE = 1e-5, 1e-6, 1e-4
# Log-loss of folds whose training rows are all but separable: few digits of such a fit are determined.
SEPARATED = 5.0


def check_relations(case: Case, found: Any, model: Any) -> None:
    """Check that a refit is equal, and one more relation, by the seed."""
    if is_deterministic(case.model):
        off = _distance(outputs(case.fitted(), case.test), found)
        require(off == 0.0, f"refit: predictions differ by {off:.3g}")
    if case.rows is None or not len(case.rows.test):
        return
    possible = [relation for relation, promised in RELATIONS.items() if promised(case)]
    if possible:
        possible[case.seed % len(possible)](case, model, found)


def _distance(first: Any, second: Any) -> float:
    return float(np.abs(np.asarray(first) - second).max(initial=0.0)) if np.shape(first) == np.shape(second) else np.inf


def _unit(case: Case, found: Any) -> float:
    """Size of predictions, to which deviations are compared."""
    if not is_regressor(case.model):
        return max(1.0, float(np.abs(found).max(initial=0.0)))
    return (
        float(max(np.ptp(case.rows.y), 1e-9 * np.abs(case.rows.y).max(), np.ptp(found) if len(found) else 0.0)) or 1.0
    )


def _variant(case: Case, rows: Rows, **parameters: Any) -> Any:
    """A fit that must succeed if the rows are tame; None if it is refused.

    A cone solver may reach the tolerance of a class with a structure in one order of the rows and not in another.
    """
    try:
        return case.fitted(rows, **parameters)
    except BaseException as error:
        unsolved = isinstance(error, SolverError) and promises.has_structure(case.model)
        unsolved |= str(error).startswith("Fold ")  # a splitter puts rows of weight 0 alone
        if is_refused(error) and case.rows.tame and not unsolved:
            raise Broken(f"variant refused: {type(error).__name__}: {str(error)[:200]}") from error
        return None


def _agree(name: str, case: Case, model: Any, found: Any, other: Any, second: Any, factor: float = 1.0) -> None:
    """Equal scores and objectives; equal predictions, if the optimum is unique.

    ``factor`` is the ratio of the objectives of ``other`` and ``model``.
    """
    if hasattr(model, "best_score_"):
        scores = model.best_score_ * factor, other.best_score_
        rounding = 1e-9 * factor * _unit(case, found) ** 2
        if (is_classifier(model) and max(np.abs(scores)) > SEPARATED) or not promises.has_unique_paths(model):
            return
        require(np.isclose(*scores, rtol=CLOSE_SCORE, atol=rounding), f"{name}: scores {scores[0]} and {scores[1]}")
        if str(model.best_params_) != str(other.best_params_):
            return  # a tie
        model, other = model.best_estimator_, other.best_estimator_
    if isinstance(model, promises.EXPECTED) and model.ridge_.share != other.ridge_.share:
        errors = model.error_ * factor, other.error_
        require(np.isclose(*errors, rtol=CLOSE_SCORE), f"{name}: errors {errors[0]} and {errors[1]}")
        return  # a tie
    if isinstance(model, promises.FINITE) and not _same_leaves(model, other) and not promises.proves_partition(case):
        return  # a tie of splits
    if hasattr(model, "certificate_") and not isinstance(model, promises.STACK):
        first, last = model.certificate_, other.certificate_
        slack = factor * first.tolerance + last.tolerance + CLOSE_OBJECTIVE * factor * (first.objective + _cost(case))
        gap = sum(each for each in (factor * first.gap, last.gap) if np.isfinite(each))
        off = abs(first.objective * factor - last.objective)
        require(off <= slack + gap, f"{name}: objectives {first.objective * factor} and {last.objective}")
        if gap > slack:
            return  # a fit that is not proven, as its certificate says
    if isinstance(model, promises.FINITE):
        if not _same_leaves(model, other):
            return
        known = _seen(case)  # trees with the same leaves may send other patterns to different ones
        found, second = found[known], second[known]
    if promises.has_unique_optimum(case, model):
        off = _distance(second, found) / _unit(case, found)
        require(off <= CLOSE, f"{name}: predictions differ by {off:.3g} of their range")


def _cost(case: Case) -> float:
    """Cost of a constant prediction, which sets the size of rounding."""
    if is_classifier(case.model):
        return 1.0
    y, s = case.rows.y, 1.0 if case.rows.s is None else np.asarray(case.rows.s)
    size = np.abs(y).max() or 1.0
    return float(np.sum(s * (y - y.mean()) ** 2) + np.sum(s * (1e-10 * size**2 + 1e-8 * size)))


def _same_leaves(first: Any, second: Any) -> bool:
    costs = [np.sort(model.leaf_costs_) for model in (first, second)]
    return len(costs[0]) == len(costs[1]) and np.allclose(*costs, rtol=1e-4)


def _seen(case: Case) -> Any:
    """Which rows to predict have a pattern of the training rows."""
    known = set(map(bytes, np.isnan(case.rows.X)))
    return np.array([bytes(m) in known for m in np.isnan(case.rows.test)], dtype=bool)


def _random(case: Case) -> Any:
    return np.random.default_rng([case.seed, 9])


def _taken(rows: Rows, index: Any) -> Rows:
    return replace(rows, X=rows.X[index], y=rows.y[index], s=None if rows.s is None else np.asarray(rows.s)[index])


def _same_folds(case: Case, index: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Folds of the rows, and of the rows at an index; every class with two rows is in both folds."""
    if not promises.has_folds(case.model):
        return {}, {}
    y = case.rows.y
    codes = np.unique(y, return_inverse=True)[1] if is_classifier(case.model) else np.zeros(len(y), int)
    fold = np.empty(len(y), dtype=int)
    for code in np.unique(codes):
        inside = _random(case).permutation(np.flatnonzero(codes == code))
        fold[inside] = (np.arange(len(inside)) + code) % 2
    first, second = ([(np.flatnonzero(f != k), np.flatnonzero(f == k)) for k in range(2)] for f in (fold, fold[index]))
    return {"cv": first}, {"cv": second}


def plain_rows(case: Case, model: Any, found: Any) -> None:
    """The same numbers in a plain array give the same predictions."""
    other = case.fitted(case.rows)
    off = _distance(outputs(other, case.rows.test), found) / _unit(case, found)
    foreign = isinstance(case.model, (*promises.TUNED, *promises.JOINT))  # they may depend on the layout in memory
    require(off <= (CLOSE if foreign else 0.0), f"plain rows: predictions differ by {off:.3g}")


def permuted_rows(case: Case, model: Any, found: Any) -> None:
    rows, order = case.rows, _random(case).permutation(len(case.rows.y))
    first, second = _same_folds(case, order)
    one, other = _variant(case, rows, **first), _variant(case, _taken(rows, order), **second)
    if one is not None and other is not None:
        _agree("permuted rows", case, one, outputs(one, rows.test), other, outputs(other, rows.test))


def permuted_columns(case: Case, model: Any, found: Any) -> None:
    """Folds are the same: strata of patterns depend on the order, and so do ties of the nearest patterns."""
    rows, order = case.rows, _random(case).permutation(case.rows.X.shape[1])
    folds, _ = _same_folds(case, np.arange(len(rows.y)))
    one, other = _variant(case, rows, **folds), _variant(case, replace(rows, X=rows.X[:, order]), **folds)
    if one is not None and other is not None:
        found, second = outputs(one, rows.test), outputs(other, rows.test[:, order])
        known = _seen(case) if promises.takes_nearest_pattern(case.model) else slice(None)
        _agree("permuted columns", case, one, found[known], other, second[known])


def copied_rows(case: Case, model: Any, found: Any) -> None:
    """A weight equals that many copies of the row."""
    rows, counts = case.rows, _random(case).integers(1, 4, size=len(case.rows.y))
    copies = np.repeat(np.arange(len(rows.y)), counts)
    first, second = _same_folds(case, copies)
    weighted = _variant(case, replace(rows, s=counts.astype(float)), **first)
    other = _variant(case, _taken(replace(rows, s=None), copies), **second)
    if weighted is not None and other is not None:
        _agree("copied rows", case, weighted, outputs(weighted, rows.test), other, outputs(other, rows.test))


def weightless_rows(case: Case, model: Any, found: Any) -> None:
    """Rows of weight zero change nothing."""
    rows = case.rows
    s = np.append(np.ones(len(rows.y)) if rows.s is None else np.asarray(rows.s), 0.0)
    X = np.vstack([rows.X, np.where(np.isnan(rows.X[:1]), 3.0, np.nan)])
    one = _variant(case, replace(rows, s=s[:-1]))
    other = _variant(case, replace(rows, X=X, y=np.append(rows.y, rows.y[:1]), s=s))
    if one is not None and other is not None:
        off = _distance(outputs(one, rows.test), outputs(other, rows.test))
        require(off == 0.0, f"weightless rows: predictions differ by {off:.3g}")


def scaled_target(case: Case, model: Any, found: Any) -> None:
    """Predictions of 2^k y are 2^k times those of y."""
    k = int(_random(case).choice([-30, -3, 5, 40]))
    other = _variant(case, replace(case.rows, y=case.rows.y * 2.0**k))
    if other is not None:
        second = outputs(other, case.rows.test) / 2.0**k
        _agree("scaled target", case, model, found, other, second, 4.0**k)


def other_units(case: Case, model: Any, found: Any) -> None:
    """Neither units nor the origin of X matter."""
    random, rows = _random(case), case.rows
    scale = 10.0 ** random.integers(-6, 7, size=rows.X.shape[1])
    shift = random.choice([0.0, 1.0, 1e3], size=rows.X.shape[1])
    shift = shift * np.abs(np.nan_to_num(rows.X)).max(axis=0, initial=0.0)
    other = _variant(case, replace(rows, X=(rows.X + shift) * scale))
    if other is not None:
        _agree("other units", case, model, found, other, outputs(other, (rows.test + shift) * scale))


def below_greedy(case: Case, model: Any, found: Any) -> None:
    """A proven partition costs no more than the greedy one, and its bound is below the greedy cost."""
    given, known = case.model.partitioner.get_params(), Greedy().get_params()
    limits = {"max_depth": None} | {name: value for name, value in given.items() if name in known}
    greedy = _variant(case, case.rows, partitioner=Greedy(**limits))
    if greedy is not None:
        cost = greedy.certificate_.objective
        slack = model.certificate_.tolerance + 1e-9 * abs(cost)
        require(model.certificate_.objective <= cost + slack, f"greedy: {model.certificate_.objective} above {cost}")
        require(model.certificate_.bound <= cost + slack, f"greedy: bound {model.certificate_.bound} above {cost}")


RELATIONS: dict[Callable[[Case, Any, Any], None], Callable[[Case], bool]] = {
    plain_rows: promises.ignores_containers,
    permuted_rows: promises.ignores_order_of_rows,
    permuted_columns: promises.ignores_order_of_columns,
    copied_rows: promises.takes_weights_as_copies,
    weightless_rows: promises.drops_rows_of_weight_zero,
    scaled_target: promises.scales_with_the_target,
    other_units: promises.ignores_units_of_features,
    below_greedy: promises.proves_partition,
}
