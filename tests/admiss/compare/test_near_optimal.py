"""The optimum among other trees, in words and numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest

from admiss.compare.near_optimal import NearOptimal, Within, near_optimal
from admiss.compare.partitions import compare_partitions
from admiss.compare.setting import Setting
from admiss.datasets import make_interacting, make_synthetic
from formulations.leaves.box_costs import BoxCosts
from formulations.trees import near_optimal as counting
from formulations.trees.near_optimal import Bracket, PenaltyRange

ONE, UNKNOWN = Bracket(1.0, 1.0), Bracket(0.0, np.inf)
FEW = NearOptimal(
    within=[
        Within(1, ONE, ONE),
        Within(2, Bracket(14.0, 14.0), Bracket(6.0, 6.0)),
        Within(5, Bracket(3400.0, 1234567.0), UNKNOWN),
    ],
    reason="",
    curve=[(0.0, ONE), (5.0, UNKNOWN)],
    penalties=[PenaltyRange(1, 1234.0, np.inf), PenaltyRange(4, 2.0, 1234.0), PenaltyRange(8, 0.0, 2.0)],
    greedy_percent=0.5,
    better=ONE,
)


def test_numbers_in_words():
    trees, penalties = FEW.lines()
    assert trees == (
        "Within 1 % of the optimum: 1 tree (1 partition); 2 %: 14 (6); 5 %: 3,400 to 1.24e6. "
        "Greedy's tree is among these, 1 tree is better."
    )
    assert penalties == "Best number of leaves at a penalty per leaf: 1 above 1,234, 4 above 2, otherwise 8."
    single = replace(FEW, penalties=[PenaltyRange(1, 0.0, np.inf)])
    assert single.lines()[1] == "Best number of leaves at a penalty per leaf: 1 at any."


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"greedy_percent": 1.5}, "so many about as good, a slightly lower cost says little about new rows."),
        ({"greedy_percent": 7.0, "better": Bracket(5.0, 7.0)}, "not among these; 5 to 7 trees are better, so this"),
        ({"better": Bracket(0.0, 0.0)}, "5 %: 3,400 to 1.24e6."),
        ({"better": UNKNOWN}, "5 %: 3,400 to 1.24e6."),
        ({"within": [Within(p, UNKNOWN, UNKNOWN) for p in (1, 2, 5)], "reason": "there are too many boxes",
          "better": UNKNOWN}, "Within 1 %, 2 %, 5 % of the optimum: not counted, there are too many boxes."),
        ({"within": [FEW.within[1], Within(5, Bracket(14.0, np.inf), UNKNOWN)], "reason": "many", "better": UNKNOWN},
         "Within 2 % of the optimum: 14 (6); 5 %: at least 14, not counted, many."),
    ],
)  # fmt: skip
def test_the_sentence_fits_the_numbers(changes, words):
    line = replace(FEW, **changes).lines()[0]
    assert words in line
    assert line.endswith(".")


def test_numbers_as_json():
    plain = json.loads(json.dumps(FEW.to_dict(), allow_nan=False))
    assert plain["within"][2] == {"percent": 5, "trees": [3400.0, 1234567.0], "partitions": [0.0, None]}
    assert plain["leaf_penalty"][0] == {"leaves": 1, "low": 1234.0, "high": None}
    assert plain["curve"][1] == [5.0, 0.0, None]
    assert plain["lines"] == FEW.lines()


def test_greedy_is_among_the_best_on_the_data_of_the_paper_and_not_where_patterns_interact():
    printed = {"ridge": 1.0, "leaf_model": "static", "center": False, "scale": False}
    setting = Setting(min_rows=22, **printed, folds=0, references=False)
    data = make_interacting(n=1000, random_state=0)
    interacting = compare_partitions(data.X_train, data.y_train, setting=setting).near
    assert interacting.better.least > interacting.within[-1].trees.most
    assert "not among these" in interacting.lines()[0]
    assert interacting.penalties[0].leaves == 1
    assert interacting.penalties[1].leaves == 4
    percents, numbers = zip(*interacting.curve, strict=True)
    assert percents[-1] > interacting.greedy_percent
    assert list(numbers) == sorted(numbers, key=lambda bracket: bracket.least)
    data = make_synthetic(n=1000, random_state=0)
    paper = compare_partitions(data.X_train, data.y_train, setting=setting)
    assert paper.near.better.most < paper.near.within[0].trees.least
    assert paper.near.greedy_percent == pytest.approx(100 * (paper.table["cost"][1] / paper.table["cost"][2] - 1))
    assert all(part.partitions.most <= part.trees.most for part in paper.near.within)
    without = compare_partitions(data.X_train, data.y_train, methods=("greedy",), setting=setting)
    assert without.near is None
    assert without.to_dict()["near_optimal"] is None


def test_what_cannot_be_counted_is_left_open(monkeypatch):
    rng = np.random.default_rng(0)
    patterns = np.unique(rng.uniform(size=(20, 3)) < 0.5, axis=0)
    costs = [np.array([[10.0]]), rng.uniform(1, 5, (3, 2)), rng.uniform(0.5, 3, (3, 4)), rng.uniform(0.2, 2, (1, 8))]
    boxes = BoxCosts(np.arange(3), 3, costs)
    monkeypatch.setattr(counting, "MOST_VISITED", 0)
    near = near_optimal(boxes, boxes, 8, patterns, None)
    assert near.curve == []
    assert not any(np.isfinite(part.trees.most) for part in near.within)
    assert "not counted, too many boxes are so close to the optimum" in near.lines()[0]
    zero = BoxCosts(np.arange(3), 3, [np.zeros_like(level) for level in costs])
    assert "the optimum is 0 up to rounding" in near_optimal(zero, zero, 8, patterns, None).lines()[0]
