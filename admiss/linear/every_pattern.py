"""The weights of a program as expressions by name, and their extremes over all patterns.

If weights are affine in the pattern, w_j(m) = a_j + sum_{k != j} B_jk m_k over the features k that can be missing, each
term of the sum is chosen on its own:

    min over m of w_j(m) = a_j - sum_{k != j} max{-B_jk, 0}
    max over m of w_j(m) = a_j + sum_{k != j} max{B_jk, 0},

concave and convex in W: a lower limit on the first, or an upper one on the second, is a constraint at 2^d patterns.
When feature k goes missing, with z = x - c, the prediction changes by

    B_0k - a_k z_k + sum_{j != k} [ (1 - m_j) B_jk z_j - m_j B_kj z_k ].

For given z_k and sign it separates in the pairs (z_j, m_j), and it is linear in z_k: its largest size over all m and
all x in a box is the maximum over 2 signs and 2 ends of z_k of a sum of maxima, convex in W. A feature that was never
missing in training is imputed as its mean if it is missing later: z_k then is x_k minus that mean. With monomials of
order 2 and more, the lowest weight is the minimum of a polynomial over {0, 1}^d, which is NP-hard in general.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from admiss.linear.design import Design
from formulations.arrays import FloatArray


class NotConvexError(ValueError):
    """The extremes over all patterns are no convex expressions."""


class Weights:
    """W of shape (d + 1, K): ``W["income", "age missing"]`` is an entry, ``W["income"]`` a row; affine expressions.

    Parameters
    ----------
    expression : cvxpy.Expression
    features : list of str
        Names of the rows; the first is "(intercept)", that of centred features.
    basis : list of str
        Names of the columns.

    Examples
    --------
    >>> W = Weights(cp.Variable((2, 2)), ["(intercept)", "income"], ["1", "income missing"])
    >>> W["(intercept)", "income missing"].shape, W["income"].shape
    ((), (2,))
    """

    def __init__(self, expression: cp.Expression, features: list[str], basis: list[str]) -> None:
        self.expression = expression
        self.features = features
        self.basis = basis

    def __getitem__(self, key: Any) -> cp.Expression:
        feature, *basis = key if isinstance(key, tuple) else (key,)
        if len(basis) > 1:
            raise KeyError(f"W takes a feature and a basis function, not {key!r}.")
        row = position(feature, self.features, "feature")
        if not basis:
            return self.expression[row, :]
        return self.expression[row, position(basis[0], self.basis, "basis function")]


def position(name: Any, names: Sequence[str], kind: str) -> int:
    """The position of a name, or of a number."""
    if not isinstance(name, str):
        return int(range(len(names))[name])
    if name not in names:
        raise KeyError(f"There is no {kind} {name!r} in the program: it has {', '.join(names)}.")
    return list(names).index(name)


def lowest(W: Weights, design: Design, feature: str) -> cp.Expression:
    """The least w_j(m) over all patterns, concave; of a class with a model per cell, over the cells that have one."""
    if design.adaptivity.cells:
        return cp.min(_weights_of_cells(W, design, feature))
    constant, changes = _affine_weight(W, design, feature)
    return constant - cp.sum(cp.neg(changes)) if changes is not None else constant


def highest(W: Weights, design: Design, feature: str) -> cp.Expression:
    """The largest w_j(m) over all patterns, convex."""
    if design.adaptivity.cells:
        return cp.max(_weights_of_cells(W, design, feature))
    constant, changes = _affine_weight(W, design, feature)
    return constant + cp.sum(cp.pos(changes)) if changes is not None else constant


def _weights_of_cells(W: Weights, design: Design, feature: str) -> cp.Expression:
    pairs, row = design.pairs, position(feature, W.features, "feature")
    columns = pairs[pairs[:, 0] == row, 1]
    return W.expression[row, columns] if len(columns) else cp.Constant(np.zeros(1))


def _affine_columns(design: Design) -> dict[int, int]:
    """The basis function m_k of each feature k that can be missing, in classes that are affine in the pattern."""
    adaptivity = design.adaptivity
    degrees = adaptivity.degrees()
    if degrees is None or adaptivity.cells:
        raise NotConvexError(
            f"The extremes over all patterns of {adaptivity!r} are not known as convex expressions: constrain "
            "weights_at(patterns) instead, or use static or affine weights."
        )
    sets = vars(adaptivity)["monomials_"]
    if degrees[1] > 1 and sets.sum(axis=1).max(initial=0) > 1:
        raise NotConvexError(
            f"The extremes over all patterns of {adaptivity!r} are those of polynomials on {{0, 1}}^d, which is "
            "NP-hard in general: constrain weights_at(patterns) instead, or use affine weights."
        )
    return {int(np.flatnonzero(J)[0]): k for k, J in enumerate(sets) if J.any()}


def _affine_weight(W: Weights, design: Design, feature: str) -> tuple[cp.Expression, cp.Expression | None]:
    """w_j(0), and its changes when other features go missing, if there are any."""
    row = position(feature, W.features, "feature")
    columns = [column for k, column in _affine_columns(design).items() if k != row - 1]
    if not columns:
        return W.expression[row, 0], None
    return W.expression[row, 0], W.expression[row, columns]


def largest_step(W: Weights, design: Design, X: FloatArray, feature: str) -> cp.Expression:
    """The largest change of a prediction when the feature goes missing, over all x in the range of X, convex."""
    column = _affine_columns(design)
    k = position(feature, W.features, "feature") - 1
    if k < 0:
        raise ValueError("The intercept cannot go missing: name a feature.")
    entries = W.expression
    observed = X[:, design.features] - design.centre
    low, high = np.nanmin(observed, axis=0), np.nanmax(observed, axis=0)
    imputed = 0.0 if design.missable[k] else float(design.mean[k] - design.centre[k])
    others = [j for j in range(len(low)) if j != k]
    steps = []
    for z in (low[k] - imputed, high[k] - imputed):
        for sign in (1.0, -1.0):
            total = -sign * z * entries[k + 1, 0]
            if k in column:
                total = total + sign * entries[0, column[k]]
            for j in others:
                choices = [sign * end * entries[j + 1, column[k]] for end in (low[j], high[j]) if k in column]
                choices += [-sign * z * entries[k + 1, column[j]]] if j in column else []
                choices += [] if k in column else [cp.Constant(0.0)]
                total = total + (cp.max(cp.hstack(choices)) if len(choices) > 1 else choices[0])
            steps.append(total)
    return cp.max(cp.hstack(steps))  # cvxpy 1.9.3 derives wrong limits for cp.maximum, which HiGHS uses


def monotone_features(monotonic_cst: Any, names: list[str]) -> dict[str, int]:
    """The features with a sign, from a dictionary by name or an array with -1, 0 or 1 for each feature."""
    if monotonic_cst is None:
        return {}
    if isinstance(monotonic_cst, Mapping):
        try:
            signs = {names[position(name, names, "feature")]: sign for name, sign in monotonic_cst.items()}
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(
                f"monotonic_cst must name features, {', '.join(names)}, not {list(monotonic_cst)}."
            ) from error
    elif np.shape(monotonic_cst) == (len(names),):
        signs = dict(zip(names, monotonic_cst, strict=True))
    else:
        raise ValueError(
            f"monotonic_cst must be a dictionary of features, or an array of {len(names)} numbers -1, 0 or 1."
        )
    if any(sign not in (-1, 0, 1) for sign in signs.values()):
        raise ValueError(f"monotonic_cst must have the values -1, 0 or 1, not {list(signs.values())}.")
    return {name: int(sign) for name, sign in signs.items() if sign}
