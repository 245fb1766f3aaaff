"""The page of a study in a real browser: the numbers in its table equal those of Python before and after filters."""

import base64
import re

import numpy as np
import polars as pl
import pytest

from admiss.study.report.page import write_report
from admiss.study.report.presentation import Presentation
from tests.admiss.page_checks import check_no_text_covers_another, check_page_fits, check_text_is_readable
from tests.admiss.study.report.report_tables import FACTS, plain, presented, real_design, synthetic, value_of

pytestmark = pytest.mark.slow

SIZES = tuple(range(40, 320, 20))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Tables, and the paths of their pages."""
    folder = tmp_path_factory.mktemp("pages")
    cases = {"synthetic": synthetic(SIZES, replicates=1), "real": real_design(sets=14)}
    pages = {
        name: (table, write_report(table, presented(study), folder / f"{name}.html", facts=FACTS))
        for name, (study, table) in cases.items()
    }
    study, table = plain()
    facts = {**FACTS, "failed": 0, "pending": 0, "stale": 0}
    splits = {"dataset": pl.lit("flats"), "n_train": pl.lit(150), "n_test": pl.lit(50)}
    for name, mine in (("plain", table), ("splits", table.with_columns(**splits))):
        pages[name] = (mine, write_report(mine, Presentation(study), folder / f"{name}.html", facts=facts))
    return pages


@pytest.fixture
def page(open_page, pages):
    """Opens a page, and returns its cells that are done."""

    def open_named(name):
        table, path = pages[name]
        open_page(path)
        return table.filter(pl.col("status") == "done").with_columns(value_of(table).alias("value"))

    return open_named


def shown(browser):
    """The table of means: text by method and column."""
    rows = browser.execute_script(
        "return [...document.querySelectorAll('#summary tbody tr')].map(row => "
        "[...row.cells].map(cell => cell.textContent))"
    )
    names = ("name", "cells", "mean", "error", "difference", "difference_error", "better", "seconds")
    return {row[0]: dict(zip(names, row, strict=True)) for row in rows}


def check(browser, rows):
    """Check that the table in the browser is that of these rows."""
    found = shown(browser)
    expected = rows.group_by("method").agg(
        pl.len(), pl.col("value").mean(), pl.col("value").std().alias("deviation"), pl.col("seconds").mean()
    )
    assert set(found) == set(expected["method"].to_list())
    for row in expected.rows(named=True):
        mine = found[row["method"]]
        assert mine["name"] == row["method"]
        assert mine["cells"] == f"{row['len']:,}"
        assert float(mine["mean"]) == pytest.approx(row["value"], abs=5.001e-4)
        assert float(mine["error"]) == pytest.approx(row["deviation"] / row["len"] ** 0.5, abs=5.001e-4)
        assert float(mine["seconds"]) == pytest.approx(row["seconds"], abs=6e-4)
    whole = browser.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('#summary tbody tr')]"
        ".map(row => [row.cells[0].textContent, Number(row.cells[2].title)]))"
    )
    for method, mean in expected.select("method", "value").iter_rows():
        assert whole[method] == pytest.approx(mean, rel=1e-7, abs=1e-9)


def box(browser, words):
    return browser.find_element("xpath", f"//fieldset/label[normalize-space()='{words}']/input")


def choose(browser, selector, words):
    from selenium.webdriver.support.ui import Select

    Select(browser.find_element("css selector", selector)).select_by_visible_text(words)


def test_filters_of_the_synthetic_study(browser, page):
    rows = page("synthetic")
    authors = rows.filter(pl.col("kind") == "AuthorsInstance")
    check(browser, authors)
    box(browser, "censoring").click()
    check(browser, authors.filter(pl.col("mechanism") == "mcar"))
    box(browser, "0.4").send_keys(" ")
    kept = authors.filter((pl.col("mechanism") == "mcar") & pl.col("missing_fraction").is_in([0.1, 0.8]))
    check(browser, kept)
    browser.find_element("css selector", "[data-all]").click()
    assert shown(browser) == {}
    for n in (100, 200):
        box(browser, str(n)).click()
    kept = kept.filter(pl.col("n").is_in([100, 200]))
    check(browser, kept)
    counted = browser.find_element("id", "counted").text
    instances = kept.select("n", "signal", "missing_fraction").unique().height
    assert counted == f"{kept.height} cells: {kept['method'].n_unique()} methods on {instances} instances."
    box(browser, "MCAR").click()
    assert shown(browser) == {}
    assert "No cell passes the filters" in browser.find_element("id", "counted").text
    browser.find_element("css selector", "[type=reset]").click()
    browser.execute_async_script("setTimeout(arguments[0], 50)")
    check(browser, authors)
    box(browser, "fresh draws of the text").click()
    check(browser, rows)


def test_the_leaderboard_is_the_table_without_filters(browser, page):
    page("plain")
    rows = browser.execute_script(
        "return [...document.querySelectorAll('#leaderboard tbody tr')].map(row => "
        "[...row.cells].map(cell => cell.textContent))"
    )
    now = shown(browser)
    assert [row[0] for row in rows] == list(now)
    assert [row[1] for row in rows] == [line["mean"] for line in now.values()]
    bold = "return [...document.querySelectorAll('#leaderboard tbody th')].map(e => getComputedStyle(e).fontWeight)"
    weights = list(map(int, browser.execute_script(bold)))
    assert weights[0] > max(weights[1:])


def test_reference_common_instances_and_order(browser, page):
    rows = page("real")
    recipe = ["kind", "dataset", "design", "signal", "k_missing"]
    rows = rows.with_columns(
        pl.concat_str([pl.col(name).cast(pl.String).fill_null("-") for name in recipe]).alias("id")
    )
    start = rows.filter((pl.col("signal") != "tree") | pl.col("signal").is_null())
    check(browser, start)
    box(browser, "AM").click()
    browser.find_element("css selector", "[data-all]").click()
    box(browser, "<i>set</i> & co.").click()
    kept = start.filter((pl.col("dataset") == "<i>set</i> & co.") & (pl.col("design") != "am").fill_null(True))
    check(browser, kept)
    choose(browser, "#reference", "XGBoost")
    base = dict(kept.filter(pl.col("method") == "XGBoost").select("id", "value").iter_rows())
    gains = [
        v - base[i] for i, v in kept.filter(pl.col("method") == "RF MIA").select("id", "value").iter_rows() if i in base
    ]
    line = shown(browser)["RF MIA"]
    assert float(line["difference"]) == pytest.approx(np.mean(gains), abs=5.001e-4)
    assert float(line["difference_error"]) == pytest.approx(np.std(gains, ddof=1) / len(gains) ** 0.5, abs=5.001e-4)
    assert line["better"] == f"{100 * np.mean(np.array(gains) > 0):.1f}%"
    assert shown(browser)["XGBoost"]["difference"] == "0.000"
    browser.find_element("id", "common").click()
    counts = dict(kept.group_by("id").agg(pl.col("method").n_unique()).iter_rows())
    complete = [name for name, count in counts.items() if count == kept["method"].n_unique()]
    assert 0 < len(complete) < len(counts)
    check(browser, kept.filter(pl.col("id").is_in(complete)))
    means = [float(line["mean"]) for line in shown(browser).values()]
    assert means == sorted(means, reverse=True)
    browser.find_element("css selector", "#summary [data-column=mean] button").send_keys("\n")
    assert means == [float(line["mean"]) for line in shown(browser).values()]
    header = browser.find_element("css selector", "#summary th[data-column=mean]")
    assert header.get_attribute("aria-sort") == "descending"


def test_metric_of_the_table(browser, page):
    rows = page("plain")
    check(browser, rows)
    choose(browser, "#metric", "mae")
    known = rows.drop_nulls("neg_mae").with_columns(-pl.col("neg_mae"))
    assert known.height < rows.height
    base = dict(
        known.filter(pl.col("method") == "mean + ridge")
        .select(pl.concat_str("n", "mechanism", "replicate"), "neg_mae")
        .iter_rows()
    )
    found = shown(browser)
    for method, mine in known.group_by("method"):
        line = found[method[0]]
        assert line["cells"] == str(mine.height)
        assert line["mean"] == f"{mine['neg_mae'].mean():,.0f}"
        pairs = mine.select(pl.concat_str("n", "mechanism", "replicate"), "neg_mae").iter_rows()
        gain = np.mean([value - base[key] for key, value in pairs])
        assert float(line["difference"].replace(",", "")) == pytest.approx(gain, abs=0.501)
    box(browser, "300").click()
    box(browser, "3000").click()
    assert set(shown(browser)) == {"mean + ridge", "indicators + ridge"}
    browser.find_element("css selector", "[type=reset]").click()
    browser.execute_async_script("setTimeout(arguments[0], 50)")
    check(browser, rows)


def test_splits_of_one_data_set_are_not_independent(browser, page):
    rows = page("splits")
    box(browser, "mcar").click()
    kept = rows.filter(pl.col("mechanism") == "censoring")
    for (method,), mine in kept.group_by("method"):
        error = mine["value"].std() * (1 / mine.height + 50 / 150) ** 0.5
        assert float(shown(browser)[method]["error"]) == pytest.approx(error, abs=5.001e-4)


def test_every_column_sorts(browser, page):
    page("synthetic")
    for column in ("cells", "mean", "error", "difference", "difference_error", "better", "seconds"):
        for direction in (-1, 1):
            browser.find_element("css selector", f"#summary [data-column={column}] button").click()
            values = [float(line[column].strip("% ").replace(",", "")) for line in shown(browser).values()]
            assert values == sorted(values, key=lambda value: direction * value), column
    for reverse in (False, True):
        browser.find_element("css selector", "#summary [data-column=method] button").click()
        names = browser.execute_script(
            "return [...arguments[0]].sort((a, b) => a.localeCompare(b))", list(shown(browser))
        )
        assert list(shown(browser)) == (names[::-1] if reverse else names)


def test_order_of_the_page(browser, page):
    page("plain")
    sections = browser.find_elements("css selector", "main > section")
    names = [section.get_attribute("id") for section in sections]
    assert names == ["figures", "comparison", "means", "provenance"]
    parts = [browser.find_element("css selector", each) for each in ("[aria-label=Answer]", "#leaderboard", "#figures")]
    tops = [part.location["y"] for part in [*parts, *sections[1:]]]
    assert tops == sorted(tops)
    assert tops[1] < 300  # seen without scrolling
    links = browser.find_elements("css selector", "nav a")
    assert [link.get_attribute("href").partition("#")[2] for link in links] == names
    assert not browser.find_element("css selector", "#provenance dl").is_displayed()
    browser.find_element("css selector", "#provenance summary").click()
    assert "python -m experiments" in browser.find_element("css selector", "#provenance dl").text
    metric = browser.find_element("id", "differences-neg-mae")
    assert not metric.is_displayed()
    browser.find_element("xpath", "//summary[contains(., 'Difference in mae')]").click()
    assert metric.is_displayed()


@pytest.mark.parametrize("name", ["plain", "synthetic", "real"])
def test_prose_has_two_lines_and_no_part_is_empty(browser, page, name):
    page(name)
    lines = browser.execute_script(
        "return [...document.querySelectorAll('p:not(.warning, .verdict), figcaption')]"
        ".filter(p => p.checkVisibility())"
        ".map(p => [[...p.childNodes].filter(n => n.nodeName !== 'DETAILS').map(n => n.textContent).join(''),"
        " [...p.querySelectorAll('details')].reduce((h, d) => h - d.offsetHeight - 16, p.offsetHeight)"
        " / parseFloat(getComputedStyle(p).lineHeight), p.tagName])"
    )
    assert lines
    # a caption has its title too
    assert [(text, count) for text, count, tag in lines if count > (3.1 if tag == "FIGCAPTION" else 2.1)] == []
    empty = (
        "return [...document.querySelectorAll('main section')].filter(s => !s.querySelector('table, svg, dl')).length"
    )
    assert browser.execute_script(empty) == 0
    headings = (
        "return [...document.querySelectorAll('h3')].filter(h => !/P|DIV|DETAILS/.test(h.nextElementSibling.tagName))"
    )
    assert browser.execute_script(headings) == []


@pytest.mark.parametrize("width", [360, 390, 1200])
@pytest.mark.parametrize("name", ["plain", "synthetic", "real"])
def test_nothing_is_cut_and_no_text_is_small(browser, page, name, width):
    page(name)
    check_page_fits(browser, width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_both_schemes(browser, page, scheme):
    page("real")
    check_text_is_readable(browser, scheme)


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("name", ["plain", "synthetic", "real"])
def test_no_text_of_a_figure_covers_another(browser, page, name, width):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page(name)
        check_no_text_covers_another(browser)
        whole = "return [...document.querySelectorAll('svg')].filter(e => e.checkVisibility())"
        wide = f"{whole}.filter(e => e.getBoundingClientRect().right > innerWidth).length"
        assert browser.execute_script(wide) == 0
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_print(browser, page):
    page("plain")
    try:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        assert not browser.find_element("id", "filters").is_displayed()
        assert browser.find_element("css selector", "figure svg").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    facts = browser.find_element("css selector", "#provenance dl")
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert facts.is_displayed()
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert not facts.is_displayed()
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 12
