"""Columns that the paper's methods add to tables."""

import polars as pl

from experiments.studies.columns import with_selected_depth


def test_selected_depth_is_the_chosen_limit_of_models_that_have_a_depth():
    chosen = ['{"max_depth": 3}', '{"max_depth": 5}', '{"lam": 1.0}', None]
    table = pl.DataFrame({"chosen": chosen, "depth": [2, None, None, None]})
    assert with_selected_depth(table)["selected_depth"].to_list() == [3, None, None, None]
    assert "selected_depth" not in with_selected_depth(table.drop("depth")).columns
