"""The page of a study in a real browser: the numbers in its table equal those of Python before and after filters."""

import importlib.util
import json
import os
import shutil

import numpy as np
import polars as pl
import pytest

from admiss.study.report.page import write_report
from tests.admiss.study.report.report_tables import FACTS, presented, real_design, synthetic, value_of

pytestmark = pytest.mark.slow

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1200,900",
)  # fmt: skip
SIZES = tuple(range(40, 320, 20))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Debian's chromium, driven through its own driver: nothing is downloaded."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    absent = [] if chromium and driver else ["the Debian packages chromium and chromium-driver"]
    absent += [] if importlib.util.find_spec("selenium") else ["the Python package selenium"]
    if absent:
        reason = f"The page is not tested in a browser: install {' and '.join(absent)}."
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    session = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    yield session
    session.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Tables, and the paths of their pages."""
    folder = tmp_path_factory.mktemp("pages")
    cases = {"synthetic": synthetic(SIZES, replicates=1), "real": real_design(sets=14)}
    return {
        name: (table, write_report(table, presented(study), folder / f"{name}.html", facts=FACTS))
        for name, (study, table) in cases.items()
    }


@pytest.fixture
def page(browser, pages):
    """Opens a page, and checks in the end that it used no network and logged no error."""

    def open_page(name):
        table, path = pages[name]
        browser.get(path.as_uri())
        opened.append(path.as_uri())
        return table.filter(pl.col("status") == "done").with_columns(value_of(table).alias("value"))

    opened = []
    browser.get("about:blank")
    for log in ("browser", "performance"):
        browser.get_log(log)
    yield open_page
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}
    assert asked <= {*opened, "data:,"}, asked
    assert set(opened) <= asked
    assert browser.get_log("browser") == []


def shown(browser):
    """The table of means: text by method and column."""
    rows = browser.execute_script(
        "return [...document.querySelectorAll('#summary tbody tr')].map(row => "
        "[row.dataset.method, ...[...row.cells].map(cell => cell.textContent)])"
    )
    names = ("name", "cells", "mean", "error", "difference", "difference_error", "better", "seconds")
    return {row[0]: dict(zip(names, row[1:], strict=True)) for row in rows}


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
        ".map(row => [row.dataset.method, Number(row.querySelector('[data-column=mean]').dataset.value)]))"
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
    choose(browser, "[data-end=from]", "100")
    choose(browser, "[data-end=to]", "200")
    kept = kept.filter(pl.col("n").is_between(100, 200))
    check(browser, kept)
    counted = browser.find_element("id", "counted").text
    instances = kept.select("n", "signal", "missing_fraction").unique().height
    assert counted == f"{kept.height} cells of {instances} instances count."
    box(browser, "MCAR").click()
    assert shown(browser) == {}
    assert "No cell passes the filters" in browser.find_element("id", "counted").text
    browser.find_element("css selector", "[type=reset]").click()
    browser.execute_async_script("setTimeout(arguments[0], 50)")
    check(browser, authors)
    box(browser, "fresh draws of the text").click()
    check(browser, rows)


def test_table_before_any_script_is_the_same(browser, page, pages):
    page("synthetic")
    now = shown(browser)
    text = pages["synthetic"][1].read_text(encoding="utf-8")
    body = text.split('<table id="summary">')[1].split("<tbody>")[1].split("</tbody>")[0]
    before = browser.execute_script(
        "const t = document.createElement('table'); t.innerHTML = '<tbody>' + arguments[0] + '</tbody>';"
        "return [...t.rows].map(row => [...row.cells].map(cell => cell.textContent))",
        body,
    )
    assert before == [list(line.values()) for line in now.values()]


def test_reference_common_instances_and_order(browser, page):
    rows = page("real")
    recipe = ["kind", "dataset", "design", "signal", "k_missing"]
    rows = rows.with_columns(
        pl.concat_str([pl.col(name).cast(pl.String).fill_null("-") for name in recipe]).alias("id")
    )
    start = rows.filter((pl.col("signal") != "tree") | pl.col("signal").is_null())
    check(browser, start)
    box(browser, "AM").click()
    choose(browser, "select[data-setting]", "<i>set</i> & co.")
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
    assert line["better"] == f"{100 * np.mean(np.array(gains) > 0):.1f} %"
    assert shown(browser)["XGBoost"]["difference"] == "0.000"
    browser.find_element("id", "common").click()
    counts = dict(kept.group_by("id").agg(pl.col("method").n_unique()).iter_rows())
    complete = [name for name, count in counts.items() if count == kept["method"].n_unique()]
    assert 0 < len(complete) < len(counts)
    check(browser, kept.filter(pl.col("id").is_in(complete)))
    browser.find_element("css selector", "#summary [data-column=mean] button").send_keys("\n")
    means = [float(line["mean"]) for line in shown(browser).values()]
    assert means == sorted(means, reverse=True)
    header = browser.find_element("css selector", "#summary th[data-column=mean]")
    assert header.get_attribute("aria-sort") == "descending"


def test_page_fits_a_narrow_screen_and_has_a_dark_mode(browser, page):
    page("real")
    metrics = {"width": 380, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 380
        ground = "return getComputedStyle(arguments[0]).backgroundColor"
        body = browser.execute_script(ground, browser.find_element("tag name", "body"))
        card = browser.execute_script(ground, browser.find_element("class name", "picture"))
        assert (body, card) == ("rgb(22, 24, 27)", "rgb(255, 255, 255)")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
