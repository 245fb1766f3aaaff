"""Columns and sufficient statistics of a class of monomials, in expectation over further deletions.

A column of the class is z_j o_j prod_{k in J} m_k, with z = x - c, o = 1 - m, and z_0 o_0 = 1 for the intercept. With
m_k = 1 - o_k it is a sum of *atoms*, which are products of o:

    z_j o_j prod_{k in J} m_k  =  sum_{T subset of J} (-1)^|T| z_j prod_{k in T + j} o_k         (T + 0 = T)

The sets J of a class are closed under subsets, so that its columns and its atoms b_A, A = J + j, have the same indices,
and a = b L' with a matrix L of 0, 1 and -1. Deletions turn b_A into b_A prod_{k in A} u_k. Over the deletions, with
``kept`` as in :mod:`admiss.augmentation.deletions`,

    E[b_A b_B] = b_A b_B kept(|A u B|),     E[b_A] = b_A kept(|A|),

and so, with G, c, a the sums over the rows as they are, and * the product of entries,

    E[G] = L (kept(|A u B|) * G_atoms) L',   E[c] = L (kept(|A|) * c_atoms),   E[a] = L (kept(|A|) * a_atoms).

Likewise n_k becomes L (kept(|A|) * N), N_A the weight of the rows in which all of A are observed. The means c_j and the
scales of the features stay: the weights of all observed values of a feature change by the same factor.

Every feature that is observed somewhere can be missing after deletions, so the sets J range over all of them. A column
is 0 on all rows only if its feature is constant, and then left out.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity import Adaptivity
from admiss.augmentation.deletions import Deletions
from admiss.estimator.scaling import centre_of, observed_moments, observed_scale
from admiss.linear.design import Design
from admiss.linear.moments import MAX_COLUMNS, Moments, Shift
from admiss.patterns import PatternTable
from formulations.arrays import BoolArray, FloatArray

# Rows whose atoms are held at once.
BLOCK = 4096


def expected_design(
    X: FloatArray,
    s: FloatArray,
    adaptivity: Adaptivity,
    law: Deletions,
    *,
    center: bool,
    scale: bool,
    fit_intercept: bool,
) -> Design:
    """The design of a class of monomials on rows with further deletions; see ``admiss.linear.design.fit_design``."""
    features = np.flatnonzero(~np.isnan(X).all(axis=0))
    part, missable = X[:, features], np.ones(len(features), dtype=bool)
    mean, deviation, size, _ = observed_moments(part, s)
    spread, is_constant = observed_scale(deviation, size)
    centre = centre_of(mean, deviation) if center and fit_intercept else np.zeros(len(features))
    fitted = adaptivity.fit(part, missable[None, :])
    pairs = np.argwhere(fitted.mask(len(features)))
    if len(pairs) > MAX_COLUMNS:
        raise ValueError(
            f"{adaptivity!r} has {len(pairs):,} columns if every feature can be missing, and expectations go up to "
            f"{MAX_COLUMNS:,}: use another class, or a number of copies."
        )
    adaptive = np.asarray(_sets(fitted)[pairs[:, 1]].any(axis=1))
    design = Design(
        adaptivity=fitted,
        features=features,
        missable=missable,
        mean=mean,
        spread=spread,
        centre=centre,
        scale=spread if scale else np.ones(len(features)),
        patterns=PatternTable.of_missing(part, s),
        pairs=pairs,
        position=np.arange(len(pairs)),
        counts=np.empty(len(pairs)),
        factors=np.ones(len(pairs)),
        free=(pairs[:, 0] == 0) & ~adaptive,
        adaptive=adaptive,
        n_basis=len(_sets(fitted)),
    )
    counts = _expectation(design) @ (law.kept(_atoms(design).sum(axis=1)) * _observed_weights(design, part, s))
    zero = np.append(False, is_constant & (mean == centre))[pairs[:, 0]]
    keep = ~zero & (counts > 0) & (fit_intercept | ~design.free)
    kept = {name: getattr(design, name)[keep] for name in ("pairs", "position", "factors", "free", "adaptive")}
    return Design(**{**vars(design), **kept, "counts": counts[keep]})


def expected_moments(
    design: Design, X: FloatArray, y: FloatArray, s: FloatArray, law: Deletions, shift: Shift
) -> Moments:
    """The expected moments of the columns of an expected design on rows of weights ``s``; only y is shifted."""
    whole = _whole(design)
    p = len(whole.pairs)
    G, c, a = np.zeros((p, p)), np.zeros(p), np.zeros(p)
    for start in range(0, len(X), BLOCK):
        rows = slice(start, start + BLOCK)
        Z, M = whole.split(X[rows])
        B = _products(whole, np.where(M, 0.0, Z) / whole.scale, M)
        weighted = s[rows, None] * B
        G += B.T @ weighted
        c += weighted.T @ (y[rows] - shift.y)
        a += weighted.sum(axis=0)
    sets = _atoms(whole).astype(float)
    sizes = sets.sum(axis=1)
    union = sizes[:, None] + sizes - sets @ sets.T
    L, single = _expectation(whole)[design.position], law.kept(sizes)
    expected = L @ (L @ (law.kept(union) * G)).T
    t = y - shift.y
    return Moments(float(s.sum()), expected, L @ (single * c), float(s @ t**2), L @ (single * a))


def target_shift(design: Design, y: FloatArray, s: FloatArray) -> Shift:
    """The mean of y is subtracted if there is an intercept; columns are centred already."""
    shape = (int(design.free.sum()), len(design.pairs))
    return Shift(sp.csr_array(shape), float(np.average(y, weights=s)) if shape[0] else 0.0)


def _whole(design: Design) -> Design:
    """The design with all pairs of the class."""
    pairs = np.argwhere(design.adaptivity.mask(len(design.features)))
    return Design(**{**vars(design), "pairs": pairs})


def _sets(fitted: Any) -> BoolArray:
    """The sets J of the basis functions, of shape (K, d)."""
    return np.asarray(fitted.monomials_)


def _atoms(design: Design) -> BoolArray:
    """The sets A = J + j, of shape (p, d)."""
    d = len(design.features)
    return np.asarray(
        _sets(design.adaptivity)[design.pairs[:, 1]] | np.eye(d + 1, d, -1, dtype=bool)[design.pairs[:, 0]]
    )


def _expectation(design: Design) -> sp.csr_array:
    """The matrix L from atoms to columns."""
    feature, J = design.pairs[:, 0], _sets(design.adaptivity)[design.pairs[:, 1]].astype(float)
    is_subset = (J @ (1.0 - J.T) == 0).T  # of columns (rows of the matrix): atoms whose set is contained in theirs
    entries = np.where(is_subset & (feature[:, None] == feature), (-1.0) ** J.sum(axis=1), 0.0)
    return sp.csr_array(entries)


def _products(design: Design, Z: FloatArray, M: BoolArray) -> FloatArray:
    """The atoms z_j prod_{k in J} o_k of rows with z_j = 0 if missing: the basis evaluated at o in place of m."""
    phi = np.asarray(design.adaptivity.basis((~M).astype(float)))
    ones = np.ones((len(Z), 1))
    return np.hstack([ones, Z])[:, design.pairs[:, 0]] * phi[:, design.pairs[:, 1]]


def _observed_weights(design: Design, X: FloatArray, s: FloatArray) -> FloatArray:
    """N_A, the weight of the rows in which all of A are observed."""
    table = PatternTable.of(np.isnan(X), s)
    return np.asarray(table.weights @ _products(design, (~table.patterns).astype(float), table.patterns))
