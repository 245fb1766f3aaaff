"""Instances, methods and cells: recipes, keys and seeds."""

import json
from dataclasses import dataclass

import pytest

from admiss.study import Method, Product, Study, instance_seed
from admiss.study.plan import Cell, instance_recipe


@dataclass(frozen=True)
class Numbers:
    n: int

    def make(self):
        return list(range(self.n))


@dataclass(frozen=True)
class Others(Numbers):
    pass


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
    """Literal values: a change would make all stores stale."""
    cell = Cell(Numbers(3), Method("sum", json.dumps, {"factor": 2}))
    assert (cell.key, cell.seed) == ("3619d72943a11381c9ded48b7a43b39d", 2666664500)


def test_methods_of_an_instance_share_its_seed():
    cells = [Cell(Numbers(3), Method(name, total)) for name in "ab"]
    assert cells[0].seed == cells[1].seed == instance_seed(Numbers(3)) != instance_seed(Numbers(4))


def test_kind_of_instance_is_part_of_the_recipe():
    assert instance_recipe(Others(3)) == {"kind": "Others", "n": 3}
    assert instance_seed(Numbers(3)) != instance_seed(Others(3))


def test_an_instance_must_be_a_dataclass():
    with pytest.raises(ValueError, match="dataclass with plain values"):
        instance_recipe({"n": 3})


def test_union_has_each_cell_once_and_instances_together():
    method, other = Method("sum", total), Method("twice", total, {"factor": 2})
    numbers = [Numbers(1), Numbers(2)]
    study = Study("toy", "", "", lambda scale: [Product(numbers, [method, other]), Product(numbers[:1], [method])])
    cells = list(study.cells("all"))
    assert [(cell.instance.n, cell.method.name) for cell in cells] == [
        (1, "sum"), (1, "twice"), (2, "sum"), (2, "twice"),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="Unknown scale 'huge' of toy: choose one of all"):
        list(study.cells("huge"))
