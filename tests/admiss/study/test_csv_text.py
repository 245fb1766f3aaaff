"""Text of CSV files: no formulas for spreadsheets, numbers as they are, and back again."""

import csv
import io
import re

import polars as pl
import pytest
from toy_study import TOY, Numbers

from admiss.study.export import escape_formula, escape_formulas, write_table
from admiss.study.plan import Cell, Method, Outcome, Product
from admiss.study.store import Store

RISKY = ["=1+2", "+1-1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\tx", "  =1", "\"=1", "'=1", "''=1", "' - x", "-",
         "=HYPERLINK(\"http://a\",\"b\")", "-1 to 2", "\uff1d1", "\uff0b1", "\uff0d1", "\uff20x",
         "+1+1e5", "--1", "-1-1"]  # fmt: skip
HARMLESS = ["", "ridge", "a=b", "ridge - mean", "'quoted'", "3", "-3", "+0.5", "-1e-05", "-.5", "-1,234.5", "-5 %",
            "-5%", "(-1, 2)", "1-1", "x@y"]  # fmt: skip


def read_back(text):
    """The text itself, as the module says."""
    return text[1:] if re.match("^'([\\s'\"]*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\\t\\r\\n])", text) else text


@pytest.mark.parametrize("text", RISKY)
def test_formulas_get_an_apostrophe_and_can_be_read_back(text):
    assert escape_formula(text) == f"'{text}"
    assert read_back(escape_formula(text)) == text


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_and_numbers_stay(text):
    assert escape_formula(text) == read_back(text) == text


def test_a_table_is_changed_like_its_texts():
    table = pl.DataFrame({"text": [*RISKY, *HARMLESS, None], "=n": -1.5, "i": -2, "flag": True})
    changed = escape_formulas(table)
    assert changed.columns == ["text", "'=n", "i", "flag"]
    assert changed["text"].to_list() == [*map(escape_formula, RISKY), *HARMLESS, None]
    assert changed.drop("text").rename({"'=n": "=n"}).equals(table.drop("text"))


def score(rows, seed):
    return {}


def test_exports_have_no_formulas_and_negative_numbers(tmp_path):
    cell = Cell(Numbers(3, 0), Method("=cmd|' /C calc'!A0", score))
    study = type(TOY)(TOY.name, TOY.title, TOY.description, lambda scale: [Product([cell.instance], [cell.method])],
                      scales=("smoke",))  # fmt: skip
    origin = {"version": "1", "digest": "abc", "machine": "@here"}
    with Store(tmp_path, "toy", write=True) as store:
        store.add_run("test", "smoke")
        store.add(cell, Outcome("done", scores={"score": -0.25, "=note": "+x"}, origin=origin, pid=1))
        write_table(store, study, tmp_path / "table.csv")
    header, row = csv.reader(io.StringIO((tmp_path / "table.csv").read_text()))
    found = dict(zip(header, row, strict=True))
    assert found["method"] == "'=cmd|' /C calc'!A0"
    assert found["machine"] == "'@here"
    assert found["'=note"] == "'+x"
    assert found["score"] == "-0.25"
