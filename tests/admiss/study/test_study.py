"""Instances, methods and cells: keys, seeds, and the grids of the two large studies."""

import json
from dataclasses import dataclass, replace

import polars as pl
import pytest

from admiss.study.study import SCALES, Cell, Method, Product, Study, instance_recipe, instance_seed
from admiss.study.table import with_selected_depth
from experiments.catalogue import STUDIES, find_study
from experiments.studies.synthetic.grid import SETTINGS, spread_instances
from experiments.studies.synthetic.instances import AuthorsInstance, TextInstance


@dataclass(frozen=True)
class Numbers:
    n: int

    def make(self):
        return list(range(self.n))


def total(rows, seed, *, factor=1):
    return {"score": factor * sum(rows), "seconds": 0.0}


def test_key_depends_on_instance_method_and_parameters_only():
    cell = Cell(Numbers(3), Method("sum", total, {"factor": 2}))
    same = Cell(Numbers(3), Method("sum", total, {"factor": 2}))
    others = [
        Cell(Numbers(4), cell.method),
        Cell(Numbers(3), Method("sum", total, {"factor": 3})),
        Cell(Numbers(3), Method("other", total, {"factor": 2})),
        Cell(Numbers(3), Method("sum", test_key_depends_on_instance_method_and_parameters_only, {"factor": 2})),
    ]
    assert cell.key == same.key
    assert len({cell.key, *(other.key for other in others)}) == 5


def test_key_and_seed_are_the_same_in_every_process():
    """Written down: a change makes all stores stale."""
    cell = Cell(AuthorsInstance(40, "mcar", "linear", 0.1, 1), Method("sum", json.dumps, {"factor": 2}))
    assert (cell.key, cell.seed) == ("602bf9f1e5769032b9a0b1bceee4875a", 2766686245)


def test_methods_of_an_instance_share_its_seed():
    cells = [Cell(Numbers(3), Method(name, total)) for name in "ab"]
    assert cells[0].seed == cells[1].seed == instance_seed(Numbers(3)) != instance_seed(Numbers(4))


def test_kind_of_instance_is_part_of_the_recipe():
    fields = (40, "mcar", "linear", 0.1, 1)
    authors, text = AuthorsInstance(*fields), TextInstance(*fields)
    assert instance_recipe(authors)["kind"] == "AuthorsInstance"
    assert instance_seed(authors) != instance_seed(text)


def test_instance_that_is_no_dataclass_is_refused():
    with pytest.raises(TypeError, match="dataclass with plain values"):
        instance_recipe({"n": 3})


def test_union_has_each_cell_once_and_instances_together():
    method, other = Method("sum", total), Method("twice", total, {"factor": 2})
    numbers = [Numbers(1), Numbers(2)]
    study = Study("toy", "", "", lambda scale: [Product(numbers, [method, other]), Product(numbers[:1], [method])])
    cells = list(study.cells("smoke"))
    assert [(cell.instance.n, cell.method.name) for cell in cells] == [
        (1, "sum"), (1, "twice"), (2, "sum"), (2, "twice"),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="Unknown scale 'huge': choose one of smoke, laptop, paper"):
        list(study.cells("huge"))


def test_unknown_study():
    with pytest.raises(ValueError, match="Unknown study 'x': choose one of synthetic, grids, real-design"):
        find_study("x")


def test_laptop_scale_has_900_instances_of_the_authors_with_all_signals_in_each_cell_of_the_grid():
    instances = spread_instances()
    assert len(set(instances)) == len(instances) == 900
    by_cell: dict = {}
    for one in instances:
        by_cell.setdefault((one.n, one.missing_fraction, one.mechanism, one.signal), []).append(one.replicate)
    assert {(m, s) for _, _, m, s in by_cell} == set(SETTINGS)
    assert all(sorted(replicates) in ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) for replicates in by_cell.values())
    firsts = {min(replicates) for replicates in by_cell.values()}
    assert firsts == {1, 6}
    assert {min(one.n for one in instances), max(one.n for one in instances)} == {40, 1000}


def test_paper_scale_has_every_instance_of_the_paper():
    instances = find_study("synthetic").products("paper")[0].instances
    assert len(set(instances)) == 49 * 8 * 10 * 4
    assert all(isinstance(instance, AuthorsInstance) for instance in instances)


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("scale", SCALES)
def test_names_of_choices_are_methods_of_the_study(name, scale):
    study = STUDIES[name]
    methods = {method.name for product in study.products(scale) for method in product.methods}
    for best in study.best:
        assert set(best.members) <= methods
        assert best.name not in methods


@pytest.mark.parametrize("name", STUDIES)
def test_settings_are_fields_of_the_instances(name):
    study = STUDIES[name]
    fields = {field for product in study.products("smoke") for field in instance_recipe(product.instances[0])}
    known_scores = {"task"}
    assert set(study.settings) - known_scores <= fields


def test_recipe_survives_json():
    cell = Cell(replace(AuthorsInstance(40, "mcar", "linear", 0.1, 1), n=60), Method("sum", total, {"factor": 0.1}))
    assert json.loads(json.dumps(cell.recipe)) == cell.recipe


def test_selected_depth_is_the_chosen_limit_of_models_that_have_a_depth():
    chosen = ['{"max_depth": 3}', '{"max_depth": 5}', '{"lam": 1.0}', None]
    table = pl.DataFrame({"chosen": chosen, "depth": [2, None, None, None]})
    assert with_selected_depth(table)["selected_depth"].to_list() == [3, None, None, None]
    assert "selected_depth" not in with_selected_depth(table.drop("depth")).columns
