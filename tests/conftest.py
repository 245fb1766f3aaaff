"""Shared data, a browser, the tests that need raw files of real data sets, and a record of what was executed."""

import importlib.util
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# The processes of pytest-xdist share the cores: threads of BLAS that wait for each other would take most of the time.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import pytest

NO_DATA = (
    "ADMISS_DATA does not name a folder with the raw UCI files (uci/mushroom/agaricus-lepiota.data and so on): "
    "set it to run them too."
)
# A file to which the names of executed tests are appended; a skipped test has not been executed.
EXECUTED = os.environ.get("ADMISS_EXECUTED_TESTS")

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1200,900",
)  # fmt: skip


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not os.environ.get("ADMISS_DATA"):
        left_out = [item for item in items if item.get_closest_marker("data")]
        items[:] = [item for item in items if not item.get_closest_marker("data")]
        config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not os.environ.get("ADMISS_DATA"):
        terminalreporter.write_line(f"Tests of the real data sets were left out: {NO_DATA}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    in_controller = "PYTEST_XDIST_WORKER" not in os.environ
    if EXECUTED and in_controller and report.when == "call" and not report.skipped:
        with Path(EXECUTED).open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\n")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tests keep nothing in the cache of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ADMISS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """Interrupts reach the tests also in a background job, whose shell has them ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def make_rows() -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Rows with missing values whose target depends on the values and on the pattern."""

    def make(n: int = 120, d: int = 3, fraction: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        X = 1.0 + rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
        y = 2.0 + X @ np.linspace(1.0, -1.0, d) + 0.5 * rng.normal(size=n)
        M = rng.uniform(size=X.shape) < fraction
        M[M.all(axis=1), 0] = False
        return np.where(M, np.nan, X), y + M @ np.linspace(0.5, 1.5, d)

    return make


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
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


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[[Path], None]]:
    """Opens a page from disk, and checks in the end that it used no network and logged no error."""

    def open_path(path: Path) -> None:
        browser.get(path.as_uri())
        opened.append(path.as_uri())

    opened: list[str] = []
    browser.get("about:blank")
    for log in ("browser", "performance"):
        browser.get_log(log)
    yield open_path
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}
    assert asked <= {*opened, "data:,"}, asked
    assert set(opened) <= asked
    assert browser.get_log("browser") == []
