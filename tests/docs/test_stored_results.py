"""Pages of results: their numbers are those of stored files, and every stored study has a page."""

import csv
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "results").glob("*.md"))
RESULTS = ROOT / "experiments" / "results"
# Margins and thresholds, which are no measurements.
THRESHOLDS = {".005", ".01", ".015", ".02"}


@pytest.fixture
def numbers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    monkeypatch.delitem(sys.modules, "stored_results", raising=False)
    import stored_results

    return stored_results


class Environment:
    """What the role asks of Sphinx."""

    def note_dependency(self, path):
        assert Path(path).exists()


def number(numbers, text):
    name, *conditions, wanted = (part.strip() for part in text.split(";"))
    return numbers.stored_number(numbers.kept(numbers.stored_rows(Environment(), name), conditions), wanted)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_numbers_of_a_page_are_stored(page, numbers):
    for text in re.findall(r"\{stored\}`([^`]*)`", page.read_text()):
        assert number(numbers, text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_measurement_is_typed(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    text = re.sub(r"(\{stored\})?`[^`]*`|\]\([^)]*\)|(arXiv|Section) [\d.]+", "", text)
    assert set(re.findall(r"(?<![\w.])[+-]?\d*\.\d+", text)) <= THRESHOLDS


def test_every_stored_study_has_a_page():
    contents = (ROOT / "docs" / "results" / "index.md").read_text().split("```")[1].split()
    studies = {path.name for path in RESULTS.iterdir() if path.is_dir()} - {"bench"}  # docs/benchmarks.md
    assert studies <= set(contents)
    assert {page.stem for page in PAGES} == {*contents, "index"} - {"{toctree}", ":maxdepth:", "1"}


def test_a_figure_has_the_points_of_its_columns(numbers):
    import stored_figures

    rows = [{"n": "1,000", "a": "~2.5", "b": "-"}, {"n": "100", "a": "0.5", "b": "7"}]
    assert [stored_figures.number(row["a"]) for row in rows] == [2.5, 0.5]
    drawing = stored_figures.drawn(rows, ["n"], ["a = ours", "b"], "CPU seconds")
    points = re.findall(r'<g id="line2d_\d+">\s*<defs>', drawing)
    assert drawing.startswith("<svg")
    assert points
    with pytest.raises(ValueError, match="no row has numbers in 'n' and 'c'"):
        stored_figures.drawn([row | {"c": "-"} for row in rows], ["n"], ["c"], "CPU seconds")


def test_counts_extremes_and_single_cells(numbers):
    with (RESULTS / "synthetic" / "claims.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    confirmed = [row for row in rows if (row["verdict"], row["rule"]) == ("confirmed", "greater")]
    at = "synthetic/claims.csv; verdict=confirmed; rule=greater"
    assert number(numbers, f"{at}; count") == str(len(confirmed))
    assert float(number(numbers, f"{at}; max value")) == max(float(row["value"]) for row in confirmed)
    assert float(number(numbers, f"{at}; min low")) == min(float(row["low"]) for row in confirmed)
    quantity = confirmed[0]["quantity"]
    assert number(numbers, f"{at}; quantity={quantity}; value") == confirmed[0]["value"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("synthetic/claims.csv; verdict=confirmed; value", "rows instead of one"),
        ("synthetic/claims.csv; verdict=certain; count", "No row has verdict = 'certain'"),
        ("synthetic/claims.csv; verdicts=confirmed; count", "no column 'verdicts'"),
        ("synthetic/claims.csv; max values", "no column 'values'"),
    ],
)
def test_what_is_not_stored_is_an_error(text, message, numbers):
    with pytest.raises(ValueError, match=message):
        number(numbers, text)
