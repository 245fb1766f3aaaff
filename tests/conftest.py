"""Data that several tests share, and the tests that need the raw files of the real data sets."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

NO_DATA = (
    "ADMISS_DATA does not name a folder with the raw UCI files (uci/mushroom/agaricus-lepiota.data and so on): "
    "set it to run them too."
)
deselected: list[pytest.Item] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("ADMISS_DATA"):
        return
    deselected[:] = [item for item in items if item.get_closest_marker("data")]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not item.get_closest_marker("data")]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if deselected:
        terminalreporter.write_line(f"{len(deselected)} tests deselected: {NO_DATA}")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tests keep nothing in the cache of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ADMISS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def make_rows() -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Rows with missing values whose target depends on the values and on what is missing."""

    def make(n: int = 120, d: int = 3, fraction: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        X = 1.0 + rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
        y = 2.0 + X @ np.linspace(1.0, -1.0, d) + 0.5 * rng.normal(size=n)
        M = rng.uniform(size=X.shape) < fraction
        M[M.all(axis=1), 0] = False
        return np.where(M, np.nan, X), y + M @ np.linspace(0.5, 1.5, d)

    return make
