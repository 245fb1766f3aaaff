"""Nothing public is lost and no result moves unless it is recorded again."""

import warnings

import pytest

from tests.record.compare import all_cases, differences, read_record
from tests.record.interface import options, public_names

CASES = all_cases()
RECORD = read_record()


@pytest.mark.parametrize("title", CASES)
def test_fit(title):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = CASES[title]()
    assert differences(found, RECORD["fits"][title]) == []


def test_every_recorded_fit_is_a_case():
    assert CASES.keys() == RECORD["fits"].keys()


def test_public_names():
    assert public_names() == RECORD["names"]


def test_options_of_commands():
    assert options() == RECORD["options"]


def test_differences_are_seen():
    stored = RECORD["fits"]["regressor, plain, affine, l1_ratio 0.5"]
    moved = [stored["predictions"][0] + 1e-4, *stored["predictions"][1:]]
    changes = {
        "predictions": moved,
        "objective": stored["objective"] * 1.0001,
        "bound": stored["bound"] * 0.999,
        "status": "not proven",
    }
    for name, value in changes.items():
        (line,) = differences(stored | {name: value}, stored)
        assert line.startswith(f"{name} was ")
    assert differences(stored | {"bound": stored["objective"] * 1.001}, stored)
    assert differences({"status": "optimal"}, stored)
    assert differences(stored | {"further": 1}, stored) == ["further is not recorded"]
