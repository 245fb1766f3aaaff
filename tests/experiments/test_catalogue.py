"""The catalogue: the grids of the studies, their bindings, and what marks their cells stale."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from admiss.study.plan import Cell, Method, instance_recipe, instance_seed
from experiments.__main__ import main
from experiments.catalogue import CATALOGUE
from experiments.scales import SCALES
from experiments.studies.synthetic.grid import SETTINGS, spread_instances
from experiments.studies.synthetic.instances import AuthorsInstance, TextInstance

ROOT = Path(__file__).parents[2]
STUDIES = {name: presentation.study for name, presentation in CATALOGUE.items()}


def test_seeds_of_the_papers_instances_do_not_change():
    """Literal values: stored results depend on them."""
    instance = AuthorsInstance(40, "mcar", "linear", 0.1, 1)
    cell = Cell(instance, Method("sum", json.dumps, {"factor": 2}))
    assert (cell.key, cell.seed) == ("602bf9f1e5769032b9a0b1bceee4875a", 2766686245)
    assert instance_seed(TextInstance(40, "mcar", "linear", 0.1, 1)) != cell.seed


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
    instances = STUDIES["synthetic"].products("paper")[0].instances
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
def test_cells_differ_and_have_the_fields_of_the_settings(name):
    study, sizes = STUDIES[name], []
    for scale in SCALES[:2]:
        parts = [(instance, product) for product in study.products(scale) for instance in product.instances]
        cells = [(instance, method.name) for instance, product in parts for method in product.methods]
        assert len(set(cells)) == len(cells)
        sizes.append(len(cells))
    assert 0 < sizes[0] < min(200, sizes[1])
    fields = {field for product in study.products("smoke") for field in instance_recipe(product.instances[0])}
    assert set(study.settings) - {"task"} <= fields  # a score


def test_cells_depend_on_methods_and_instances_but_on_no_tables():
    """What a process that unpickles the cells loads."""
    products = [product for study in STUDIES.values() for product in study.products("smoke")]
    modules = {method.run.__module__ for product in products for method in product.methods}
    modules |= {type(instance).__module__ for product in products for instance in product.instances}
    code = f"import sys, {', '.join(sorted(modules))}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith(("experiments.", "admiss.study."))}
    assert modules <= loaded
    parts = {part for name in loaded for part in name.split(".")}
    assert not parts & {"tables", "figures", "report", "paper"}


@pytest.mark.parametrize("command", ["run", "status", "report", "compare-paper"])
def test_an_unknown_study_ends_in_one_sentence(command, capsys):
    assert main([command, "nothing"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"error: Unknown study 'nothing': choose one of {', '.join(STUDIES)}.\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--scale", "huge"], "Unknown scale 'huge': choose one of smoke, laptop, paper."),
        (["--out", "somewhere"], "--out is the folder of one study: name the study too."),
        (["--scale", "paper"], "There are no runs at scale paper in runs: "),
    ],
)
def test_the_comparison_of_all_studies_checks_its_options(arguments, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["compare-paper", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"error: {sentence}")


def test_without_polars_a_sentence_says_what_to_install():
    code = "import sys; sys.modules['polars'] = None; from experiments.__main__ import main; sys.exit(main(['list']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: This command needs polars: run pip install 'admiss[study]'.\n"


@pytest.mark.slow
def test_the_list_of_studies(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[::2]] == list(STUDIES)
    assert lines[1].strip() == "cells: smoke 90, laptop 20,520, paper 564,480"
    assert all(re.search(r"smoke [\d,]+, laptop [\d,]+, paper [\d,]+$", line) for line in lines[1::2])
