"""The page of a comparison in a real browser: numbers, formulas, a narrow screen, contrast on light and dark ground."""

import numpy as np
import pandas as pd
import pytest

from admiss.compare.page import write_page
from admiss.compare.partitions import compare_partitions
from admiss.compare.setting import Setting
from tests.admiss.page_checks import check_no_text_covers_another, check_page_fits, check_text_is_readable

pytestmark = pytest.mark.slow

NAMES = ['<img src=x onerror="document.title=1">', "very_long_name_" * 20, "größe 日本語", "a & b"] + [
    f"feature_{j}" for j in range(36)
]


@pytest.fixture(scope="module")
def comparison():
    """Many features with odd names, two classes, and 16 leaves."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, len(NAMES)))
    M = rng.random(X.shape) < np.r_[np.full(4, 0.4), np.full(len(NAMES) - 4, 0.002)]
    score = X[:, 0] + 2 * (M[:, 0] ^ M[:, 1]) + 2 * (M[:, 2] ^ M[:, 3]) * X[:, 4] + 0.3 * rng.normal(size=len(X))
    y = np.where(score > np.median(score), "yes", "<no>")
    X = pd.DataFrame(np.where(M, np.nan, X), columns=NAMES)
    setting = Setting(max_depth=4, min_rows=10, folds=0, time_limit=None)
    title, notes = "a_file_with_a_long_name_" * 8, tuple(f"{name}: kept as it is" for name in NAMES)
    return compare_partitions(X, y, X[:300], y[:300], setting=setting, title=title, notes=notes)


@pytest.fixture
def page(open_page, comparison, tmp_path):
    write_page([comparison], tmp_path / "page.html")
    open_page(tmp_path / "page.html")


def test_numbers_and_words_are_shown(browser, page, comparison):
    assert browser.title == comparison.title
    cells = browser.execute_script(
        "return [...document.querySelectorAll('[aria-label=Methods] tbody tr')].map(r => "
        "[...r.cells].map(c => c.firstChild.textContent.trim()))"
    )
    head = browser.execute_script(
        "return [...document.querySelectorAll('[aria-label=Methods] thead th')].map(c => c.textContent)"
    )
    assert len(head) == len(comparison.table)
    assert [row[0] for row in cells] == comparison.table["method"].tolist()
    shares = 100 * comparison.table["cost"] / comparison.score("none", "cost")
    for values, shown in (
        (shares, "cost, %"),
        (comparison.table["test_AUC"], "AUC test"),
        (comparison.table["test_log_loss"], "log-loss test"),
    ):
        column = [row[head.index(shown)] for row in cells]
        digits = 2 if "cost" in shown else 3
        assert column == [f"{value:.{digits}f}" if np.isfinite(value) else "-" for value in values]
    verdict = browser.find_element("class name", "verdict").text
    assert " ".join(verdict.split()) == comparison.verdict()


def test_no_text_of_a_figure_covers_another_or_is_cut(browser, page):
    check_no_text_covers_another(browser)


def test_formulas_open_and_close(browser, page, comparison):
    model = browser.find_elements("css selector", "details.model")[-1]
    if not model.get_attribute("open"):
        model.find_element("css selector", "summary").click()
    folded = model.find_element("css selector", ".formula details.rest")
    short = folded.text
    folded.find_element("css selector", "summary").click()
    formula = comparison.models["tree"].leaf_formulas(0, 4)[0]
    assert " ".join(formula.split()) in " ".join(folded.text.split())
    folded.find_element("css selector", "summary").click()
    assert folded.text == short
    assert len(short) < len(formula)


@pytest.mark.parametrize("width", [320, 390, 800])
def test_page_fits_a_narrow_screen(browser, page, width):
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    check_page_fits(browser, width)


def test_formulas_are_printed_whole(browser, page):
    """On paper all leaves are shown, and folded formulas are complete."""
    shown = "return [...document.querySelectorAll('.rest > .part')].map(e => e.checkVisibility())"
    assert not any(browser.execute_script(shown))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert all(browser.execute_script(shown))
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_both_schemes(browser, page, scheme):
    check_text_is_readable(browser, scheme)
