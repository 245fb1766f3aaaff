"""Averages over the paper's grid."""

import itertools

import numpy as np
import polars as pl
import pytest
from scipy.interpolate import RegularGridInterpolator

from experiments.paper.interpolation import (
    FRACTIONS,
    SIZES,
    NotCoveredError,
    grid_averages,
    grid_weights,
    hat_weights,
    mean_and_error,
)

RUN_SIZES, RUN_FRACTIONS = [40, 80, 160, 400, 1000], [0.1, 0.3, 0.5, 0.8]


def authors_rows(score, methods=("A",), sizes=RUN_SIZES, fractions=RUN_FRACTIONS, replicates=None):
    """Rows of authors' instances with R2 = score(method, n, p, replicate); first or second shuffles in turn."""
    rows = []
    for (i, n), (j, p), method in itertools.product(enumerate(sizes), enumerate(fractions), methods):
        for replicate in replicates or range(1 + 5 * ((i + j) % 2), 6 + 5 * ((i + j) % 2)):
            rows.append(("AuthorsInstance", method, "done", n, p, replicate, score(method, n, p, replicate)))
    columns = ["kind", "method", "status", "n", "missing_fraction", "replicate", "r2_authors"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def test_grid_is_that_of_the_paper():
    assert len(SIZES) == 49
    assert len(FRACTIONS) == 8
    assert (SIZES[0], SIZES[-1], FRACTIONS[0], FRACTIONS[-1]) == (40, 1000, 0.1, 0.8)


def test_weights_sum_to_one_and_are_those_of_a_brute_force_interpolation():
    cells = list(itertools.product(RUN_SIZES, RUN_FRACTIONS))
    weights = grid_weights(cells)
    assert sum(weights.values()) == pytest.approx(1)
    assert set(weights) == set(cells)
    values = np.random.default_rng(0).normal(size=(len(RUN_SIZES), len(RUN_FRACTIONS)))
    interpolant = RegularGridInterpolator((np.log(RUN_SIZES), RUN_FRACTIONS), values)
    brute = interpolant([(np.log(n), p) for n in SIZES for p in FRACTIONS]).mean()
    ours = sum(weights[n, p] * values[i, j] for i, n in enumerate(RUN_SIZES) for j, p in enumerate(RUN_FRACTIONS))
    assert ours == pytest.approx(brute)


def test_exact_on_functions_linear_in_p_and_log_n_even_off_a_tensor():
    def function(n, p):
        return 0.3 - 0.2 * p + 0.1 * np.log(n) + 0.05 * p * np.log(n)

    truth = np.mean([function(n, p) for n in SIZES for p in FRACTIONS])
    scattered = {40: [0.1, 0.8], 100: [0.1, 0.4, 0.8], 300: [0.1, 0.2, 0.8], 1000: [0.1, 0.8]}
    cells = [(n, p) for n, fractions in scattered.items() for p in fractions]
    assert sum(w * function(n, p) for (n, p), w in grid_weights(cells).items()) == pytest.approx(truth)
    inner = [*cells, (200, 0.4)]  # a size that does not reach both ends has no weight
    assert grid_weights(inner) == grid_weights(cells)


def test_all_cells_of_the_grid_have_equal_weights():
    weights = grid_weights(itertools.product(SIZES, FRACTIONS))
    assert len(weights) == 49 * 8
    assert list(weights.values()) == pytest.approx([1 / (49 * 8)] * (49 * 8))


@pytest.mark.parametrize(
    "cells",
    [
        [],
        list(itertools.product([60, 1000], RUN_FRACTIONS)),
        list(itertools.product([40, 900], RUN_FRACTIONS)),
        list(itertools.product(RUN_SIZES, [0.2, 0.8])),
        list(itertools.product(RUN_SIZES, [0.1, 0.7])),
        [(n, p) for n, p in itertools.product(RUN_SIZES, RUN_FRACTIONS) if (n, p) != (1000, 0.8)],
    ],
)
def test_no_extrapolation(cells):
    with pytest.raises(NotCoveredError, match="run more cells"):
        grid_weights(cells)


def test_hat_weights_at_the_positions_themselves():
    assert hat_weights([1, 2, 4], [2]) == pytest.approx([0, 1, 0])
    assert hat_weights([1, 2, 4], [1, 3]) == pytest.approx([0.5, 0.25, 0.25])


def test_standard_errors_are_over_signals_and_paired():
    effect = np.array([0.0, 0.1, -0.2, 0.3, 0.05])
    gain = np.array([0.01, 0.03, 0.02, 0.0, 0.04])

    def score(method, n, p, replicate):
        signal = (replicate - 1) % 5
        return 0.5 + 0.1 * np.log(n) - 0.3 * p + effect[signal] + (gain[signal] if method == "B" else 0)

    averages = grid_averages(authors_rows(score, ("A", "B")), ["A", "B"], "r2_authors")
    level = 0.5 + np.mean([0.1 * np.log(n) - 0.3 * p for n in SIZES for p in FRACTIONS])
    assert averages.by_unit["A"] == pytest.approx(level + effect)
    value, error = mean_and_error(averages.by_unit["B"] - averages.by_unit["A"])
    assert (value, error) == pytest.approx((0.02, np.std(gain, ddof=1) / np.sqrt(5)))
    assert averages.cells == 20


def test_shuffles_of_a_signal_are_averaged():
    rows = authors_rows(lambda method, n, p, replicate: float(replicate), replicates=range(1, 11))
    assert grid_averages(rows, ["A"], "r2_authors").by_unit["A"] == pytest.approx([3.5, 4.5, 5.5, 6.5, 7.5])


def test_a_cell_without_all_signals_is_left_out_for_all_methods():
    rows = authors_rows(lambda method, n, p, replicate: 1.0 if p == 0.3 else 0.0, ("A", "B"))
    failed = (pl.col("method") == "B") & (pl.col("n") == 160) & (pl.col("missing_fraction") == 0.3)
    failed &= pl.col("replicate") == rows.filter(failed)["replicate"].min()
    rows = rows.with_columns(pl.when(failed).then(pl.lit("failed")).otherwise(pl.col("status")).alias("status"))
    both, alone = grid_averages(rows, ["A", "B"], "r2_authors"), grid_averages(rows, ["A"], "r2_authors")
    assert (both.cells, alone.cells) == (19, 20)
    assert both.by_unit["A"].mean() < alone.by_unit["A"].mean()
    assert both.by_unit["A"] == pytest.approx(both.by_unit["B"])


def test_numbers_that_are_none_are_not_averaged():
    rows = authors_rows(lambda method, n, p, replicate: float("nan") if n == 1000 else 0.5)
    with pytest.raises(NotCoveredError):
        grid_averages(rows, ["A"], "r2_authors")
    with pytest.raises(NotCoveredError, match="no column 'depth'"):
        grid_averages(rows, ["A"], "depth")
