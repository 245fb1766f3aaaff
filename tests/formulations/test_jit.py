import json
import os
import subprocess
import sys
import time

import numba
import pytest

from formulations.certificate import clock
from formulations.jit import compiled


def test_without_a_folder_for_the_cache():
    code = (
        "import numba.core.caching as caching\n"
        "caching.CacheImpl._locator_classes = []\n"
        "import numpy as np\n"
        "from formulations.erm.cholesky import cholesky_solve\n"
        "x = np.array([6.0])\n"
        "cholesky_solve(np.array([[2.0]]), 1, x)\n"
        "print(x[0])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == "1.5", found.stderr


FITS = """
import json, numba, numpy as np, sys
from numba.core import event
with_constants = []
class Compilations(event.Listener):
    def on_start(self, started):
        function = started.data["dispatcher"].py_func
        if function.__module__.startswith(("admiss", "formulations")) and "Literal" in str(started.data["args"]):
            with_constants.append(function.__name__)
    def on_end(self, ended):
        pass
event.register("numba:compile", Compilations())
if not {has_events}:
    sys.modules["numba.core.event"] = None  # importing it again is an ImportError
from admiss import AdaptiveClassifier, AdaptiveRegressorCV, FiniteRegressor
from admiss.partition import OptimalTree
from formulations import jit
rng = np.random.default_rng(0)
X = np.where(rng.random((120, 3)) < 0.3, np.nan, rng.normal(size=(120, 3)))
y = np.nansum(X, axis=1) + np.isnan(X[:, 0])
models = [
    AdaptiveRegressorCV(["affine"], l1_ratios=[0.5], random_state=0).fit(X, y),
    AdaptiveClassifier("affine", l1_ratio=0.5).fit(X, y > 0.5),
    FiniteRegressor(OptimalTree(max_depth=2)).fit(X, y),
]
has_events = hasattr(jit, "compile_events")
print(json.dumps([has_events, with_constants] + [model.predict(X[:5]).tolist() for model in models]))
"""


@pytest.mark.slow  # Everything is compiled once more.
def test_without_events_the_fits_are_the_same_and_no_loop_is_called_with_a_constant(tmp_path):
    """numba would compile a loop for each constant."""
    printed = []
    for has_events in (True, False):
        code = FITS.format(has_events=has_events)
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert process.returncode == 0, process.stderr
        printed.append(json.loads(process.stdout))
    (listening, constants, *predictions), (later_listening, _, *later_predictions) = printed
    assert (listening, later_listening) == (True, False)
    assert constants == []
    assert predictions == later_predictions


@pytest.mark.parametrize("name", ["real", "nothing_of_this_name"])
def test_the_clock_stands_still_while_loops_are_compiled_also_after_an_error(name):
    part = compiled(eval(f"lambda x: x.{name}"))
    whole = compiled(eval("lambda x: part(x)", {"part": part}))
    wall, start = time.perf_counter(), clock()
    try:
        assert whole(1.5) == 1.5
    except numba.core.errors.TypingError:
        assert name == "nothing_of_this_name"
    compilation, measured = time.perf_counter() - wall, clock() - start
    assert 0.0 <= measured < 0.5 * compilation
    time.sleep(0.01)
    assert clock() - start >= measured + 0.01


ONE_FIT = """
import json, time
import numpy as np
from admiss import AdaptiveClassifier
rng = np.random.default_rng(0)
X = np.where(rng.random((120, 3)) < 0.3, np.nan, rng.normal(size=(120, 3)))
y = np.nansum(X, axis=1) > 0
start = time.perf_counter()
model = AdaptiveClassifier("affine").fit(X, y)
print(json.dumps([model.certificate_.seconds, time.perf_counter() - start]))
"""


@pytest.mark.slow  # Loops are compiled once more, in an empty cache.
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("on_a_terminal", [True, False])
def test_the_first_fit_on_a_machine(tmp_path, on_a_terminal):
    said = []
    for _ in range(2):
        reader, writer = os.openpty() if on_a_terminal else os.pipe()
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        process = subprocess.run(
            [sys.executable, "-c", ONE_FIT], stdout=subprocess.PIPE, stderr=writer, text=True, env=environment
        )
        os.write(writer, b"end")
        text = ""
        while not text.endswith("end"):
            text += os.read(reader, 10_000).decode()
        said.append(text)
        os.close(reader)
        os.close(writer)
        assert process.returncode == 0, said
        seconds, wall = json.loads(process.stdout)
        if len(said) == 1:
            assert wall > 1.0
            assert seconds < 0.2 * wall
    line = "compiling numerical code (once per machine) ..."
    assert [text.count(line) for text in said] == [int(on_a_terminal), 0]
    assert [text.replace(line, "").split() for text in said] == [["end"], ["end"]]
