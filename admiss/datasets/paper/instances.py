"""The generated data sets of the paper's authors, reproduced from their seeds.

For each n there are 80 cells, p = 0.1, .., 0.8 and for each p the replicates 1, .., 10. All of them use one matrix,

    X = Z L' + mu in R^{10,000 x 10},      L L' = B B' + epsilon I,  B in R^{10 x 5},  epsilon = 2^-52,

with Z, mu and B normal. A cell takes the rows left by the previous one, in their order (the first cell of an n takes
all 10,000), and then

    removes values   MCAR: each listed feature of each row with probability p.
                     Censoring: of each listed feature, by a coin, all values below its p quantile (a uniform below
                     0.5) or all above its 1 - p quantile.
                     In the first cell of an n all features are listed. In later ones an Id column is an eleventh
                     feature and ten of the eleven are listed, Id always and feature 4 never: the rate is 0.9 p
    draws a target   f of 5 of the features, standardised (divisor N - 1); noise with norm(noise) = norm(f) / 2
    splits           shuffles the rows and retains 5,000 + n of them: n training and 5,000 test rows

in this order. Means, quantiles and norms are therefore those of the rows it took: for the first cell of an n all
10,000, for the others training and test rows. Each step has its own seed, which does not depend on n or p,

    X and missingness   565
    target              565 + 3467 s,  s = (replicate - 1) mod 5       five signals of each kind
    split               565 + 7 t,     t = (replicate - 1) div 5       two shuffles

so the cells of an n share signals and missingness draws: they are not independent.

The draws, and with them M under MCAR, are exactly those of Julia 1.7 to 1.10. X agrees with that of the authors to
about 1e-7 but not to the last bit: B B' + epsilon I is singular up to rounding, and the last five columns of L, of size
1e-7 and less, are rounding errors of the library that computed them. Here L is computed with 50 digits, and products
are summed in a fixed order: X and y do not depend on the machine, up to the last bits of logarithms and sums.

Which side of the coin means high is inferred: with this choice a ridge regression on values and indicators has a mean
R2 of .649 (linear) and .535 (nn) under censoring, the authors' affine intercept .647 and .537; with the other choice
.648 and .524.
"""

from collections.abc import Iterator
from decimal import Decimal, localcontext
from functools import lru_cache
from numbers import Real

import numpy as np

from admiss.datasets.generated import SyntheticData, split_rows
from admiss.datasets.paper.julia_random import JuliaRandom
from formulations.arrays import BoolArray, FloatArray, IntArray

# The authors' numbers, as in the description above.
ROWS = 10_000
TEST_ROWS = 5_000
FEATURES = 10
ACTIVE_FEATURES = 5
MISSING_FRACTIONS = [k / 10 for k in range(1, 9)]
REPLICATES = 10
SEED = 565


def paper_instance(
    n: int, mechanism: str = "mcar", signal: str = "linear", missing_fraction: float = 0.1, replicate: int = 1
) -> SyntheticData:
    """A generated data set of the paper, as used by its authors.

    Parameters
    ----------
    n : int
        Training rows, from 1 to 5,000. The paper has n = 20, 40, .., 1000; for other n, what its code would generate.
    mechanism : {"mcar", "censoring"}
    signal : {"linear", "nn"}
    missing_fraction : {0.1, 0.2, .., 0.8}
    replicate : {1, .., 10}

    Returns
    -------
    SyntheticData
        With 5,000 test rows. The ceiling is 1 - Var(noise) / Var(y) over training and test rows.

    Examples
    --------
    >>> data = paper_instance(1000)
    >>> data.X_train.shape, data.X_test.shape
    ((1000, 10), (5000, 10))
    >>> np.nanmean(data.X_train, axis=0)[:2].round(6).tolist()
    [-0.428664, 1.025119]
    """
    fraction = _check(n, mechanism, signal, missing_fraction, replicate)
    cell = REPLICATES * fraction + replicate - 1
    p = MISSING_FRACTIONS[fraction]
    X = _population()[_rows_left(n, cell)]
    with_id = cell > 0
    M = _at_random(X, p, with_id) if mechanism == "mcar" else _censored(X, p, with_id)
    f, noise = draw_target(X, signal, replicate)

    y, rows = f + noise, _split(len(X), cell)[: n + TEST_ROWS]
    ceiling = float(1.0 - np.var(y[rows] - f[rows]) / np.var(y[rows]))
    parts = split_rows(rows[:n], rows[n:], X=np.where(M, np.nan, X), X_full=X, y=y, signal=f)
    return SyntheticData(**parts, ceiling=ceiling)


def paper_instances(
    n: int, mechanism: str = "mcar", signal: str = "linear"
) -> Iterator[tuple[float, int, SyntheticData]]:
    """The 80 data sets of one n, in the order of their generation: missing fraction, replicate, data.

    Parameters
    ----------
    n, mechanism, signal
        As in :func:`paper_instance`.

    Examples
    --------
    >>> [(p, replicate) for p, replicate, data in paper_instances(20)][9:11]
    [(0.1, 10), (0.2, 1)]
    """
    _check(n, mechanism, signal, MISSING_FRACTIONS[0], 1)
    return (
        (p, replicate, paper_instance(n, mechanism, signal, p, replicate))
        for p in MISSING_FRACTIONS
        for replicate in range(1, REPLICATES + 1)
    )


def _check(n: int, mechanism: str, signal: str, missing_fraction: float, replicate: int) -> int:
    """The index of the missing fraction; an unknown instance is an error."""
    if not isinstance(n, int | np.integer) or not 1 <= n <= ROWS - TEST_ROWS:
        raise ValueError(f"n must be a whole number from 1 to {ROWS - TEST_ROWS}, not {n!r}.")
    if mechanism not in ("mcar", "censoring"):
        raise ValueError(f"Unknown mechanism {mechanism!r}: choose 'mcar' or 'censoring'.")
    if signal not in ("linear", "nn"):
        raise ValueError(f"Unknown signal {signal!r}: choose 'linear' or 'nn'.")
    if not isinstance(replicate, int | np.integer) or not 1 <= replicate <= REPLICATES:
        raise ValueError(f"replicate must be a whole number from 1 to {REPLICATES}, not {replicate!r}.")
    # Computed fractions, such as 3 * 0.1, may have rounding errors.
    for k, p in enumerate(MISSING_FRACTIONS):
        if isinstance(missing_fraction, Real) and abs(missing_fraction - p) < 1e-9:
            return k
    raise ValueError(f"missing_fraction must be one of 0.1, 0.2, .., 0.8, not {missing_fraction!r}.")


@lru_cache(maxsize=1)
def _population() -> FloatArray:
    """All 10,000 rows of X."""
    rng = JuliaRandom(SEED)
    B = rng.normals(FEATURES * 5).reshape(5, FEATURES).T
    mu = rng.normals(FEATURES)
    Z = rng.normals(ROWS * FEATURES).reshape(ROWS, FEATURES)
    X = _product(Z, _factor(B)) + mu
    X.flags.writeable = False
    return X


def _factor(B: FloatArray) -> FloatArray:
    """The Cholesky factor L of B B' + epsilon I."""
    with localcontext() as context:
        context.prec = 50
        exact = np.vectorize(Decimal, otypes=[object])(B)
        S = exact @ exact.T + np.diag([Decimal(2) ** -52] * FEATURES)
        L = np.full((FEATURES, FEATURES), Decimal(0))
        for j in range(FEATURES):
            rest = S[j:, j] - L[j:, :j] @ L[j, :j]
            L[j:, j] = rest / rest[0].sqrt()
    return L.astype(float)


def _product(A: FloatArray, B: FloatArray) -> FloatArray:
    """A B', summed from the first column to the last: the product of a library depends on the machine."""
    total = np.zeros((len(A), len(B)))
    for a, b in zip(A.T, B.T, strict=True):
        total += a[:, None] * b
    return total


def _rows_left(n: int, cell: int) -> IntArray:
    """The rows of X that a cell takes, in their order."""
    rows = np.arange(ROWS)
    for before in range(cell):
        rows = rows[_split(len(rows), before)[: n + TEST_ROWS]]
    return rows


def _split(n_rows: int, cell: int) -> IntArray:
    return _shuffle(n_rows, SEED + 7 * (cell % REPLICATES // 5))


@lru_cache(maxsize=8)
def _shuffle(n_rows: int, seed: int) -> IntArray:
    order = JuliaRandom(seed).shuffled(n_rows)
    order.flags.writeable = False
    return order


def _at_random(X: FloatArray, p: float, with_id: bool) -> BoolArray:
    """Values missing completely at random."""
    rng = JuliaRandom(SEED)
    columns = _listed(rng, with_id)
    M = np.zeros((len(X), FEATURES + 1), dtype=bool)
    M[:, columns] = rng.single_uniforms(len(X) * len(columns)).reshape(len(X), -1) < p
    return M[:, :FEATURES]


def _censored(X: FloatArray, p: float, with_id: bool) -> BoolArray:
    """Values missing because they are high, or because they are low."""
    rng = JuliaRandom(SEED)
    columns = _listed(rng, with_id)
    M = np.zeros(X.shape, dtype=bool)
    for j, coin in zip(columns, rng.single_uniforms(len(columns)), strict=True):
        if j < FEATURES:
            M[:, j] = X[:, j] < np.quantile(X[:, j], p) if coin < 0.5 else X[:, j] > np.quantile(X[:, j], 1.0 - p)
    return M


def _listed(rng: JuliaRandom, with_id: bool) -> IntArray:
    """The ten features from which values are removed, in the order of the draws; index 10 is the Id column."""
    return rng.shuffled(FEATURES + with_id)[:FEATURES]


def draw_target(X: FloatArray, signal: str, replicate: int) -> tuple[FloatArray, FloatArray]:
    """The signal of a replicate on the given rows, and its noise."""
    rng = JuliaRandom(SEED + 3467 * ((replicate - 1) % 5))
    active = X[:, rng.shuffled(FEATURES)[:ACTIVE_FEATURES]]
    x = (active - active.mean(axis=0)) / active.std(axis=0, ddof=1)
    f = _linear(x, rng) if signal == "linear" else _neural_network(x, rng)
    noise = rng.normals(len(f))
    return f, noise * (np.sqrt(np.sum(f**2) / np.sum(noise**2)) / 2.0)


def _linear(x: FloatArray, rng: JuliaRandom) -> FloatArray:
    weights = 2.0 * rng.uniforms(ACTIVE_FEATURES) - 1.0
    return _product(x, weights[None, :])[:, 0] + rng.normals(1)


def _neural_network(x: FloatArray, rng: JuliaRandom, n_nodes: int = 10) -> FloatArray:
    inner = 2.0 * rng.uniforms(n_nodes * ACTIVE_FEATURES).reshape(ACTIVE_FEATURES, n_nodes).T - 1.0
    hidden = np.maximum(0.0, _product(x, inner) + rng.normals(n_nodes))
    outer = 2.0 * rng.uniforms(n_nodes) - 1.0
    return _product(hidden, outer[None, :])[:, 0] + rng.normals(1)
