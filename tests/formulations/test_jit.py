import json
import os
import subprocess
import sys
import time
from importlib import metadata

import numba
import numpy as np
import pytest
from numba.core import codegen
from numba.core.codegen import JITCodeLibrary
from numba.core.dispatcher import Dispatcher

import formulations
from formulations import jit
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
numba.__version__ = {version!r}
if numba.__version__ == "99.0.1":
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
print(json.dumps([jit.INTERNALS is None, with_constants] + [model.predict(X[:5]).tolist() for model in models]))
"""


@pytest.mark.slow  # Everything is compiled once more: versions of numba have caches of their own.
def test_a_later_numba_gives_the_same_fits(tmp_path):
    """Also, no loop is called with a constant: numba would compile it for each of them."""
    printed = []
    for version in (numba.__version__, "99.0.1"):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / version)}
        code = FITS.format(version=version)
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert process.returncode == 0, process.stderr
        printed.append(json.loads(process.stdout))
    (plain, constants, *predictions), (later_plain, later_constants, *later_predictions) = printed
    assert (plain, later_plain) == (False, True)
    assert constants == later_constants == []
    for expected, found in zip(predictions, later_predictions, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("owner", "name"), [(codegen, "JITCodeLibrary"), (Dispatcher, "get_call_template"), (Dispatcher, "get_overload")]
)
def test_internals_that_are_not_as_expected_are_not_used(monkeypatch, owner, name):
    holder = owner if owner is codegen else next(base for base in owner.__mro__ if name in vars(base))
    monkeypatch.delattr(holder, name)
    monkeypatch.delitem(sys.modules, "formulations.numba_internals")
    monkeypatch.delattr(formulations, "numba_internals")
    assert jit._tested_internals() is None


def test_the_limit_of_numba_is_that_of_the_package():
    (requirement,) = (line for line in metadata.requires("admiss") if line.startswith("numba"))
    major, minor = jit.LAST_TESTED
    assert f"<{major}.{minor + 1}" in requirement


def test_only_what_python_calls_is_turned_into_machine_code(monkeypatch):
    emitted, emit = [], JITCodeLibrary._finalize_specific
    monkeypatch.setattr(JITCodeLibrary, "_finalize_specific", lambda part: (emitted.append(part.name), emit(part))[1])
    double = compiled(eval("lambda x: 2.0 * x"))  # code without a file is not cached
    quadruple = compiled(eval("lambda x: double(double(x))", {"double": double}))
    compiled(eval("lambda x: x"))(1.5)  # the first one brings the runtime of numba
    emitted.clear()
    assert quadruple(1.5) == 6.0
    assert len(emitted) == 1
    assert double(1.5) == 3.0  # compiled once more, for Python
    assert len(emitted) == 2


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
