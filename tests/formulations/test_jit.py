import gc
import subprocess
import sys

import pytest
from numba.core.codegen import JITCodeLibrary

from formulations.jit import compiled


def test_without_a_folder_for_the_cache():
    code = (
        "import numba.core.caching as caching\n"
        "caching.CacheImpl._locator_classes = []\n"
        "import numpy as np\n"
        "from formulations.erm.active_set import largest_entry\n"
        "print(largest_entry(np.array([1.0, -3.0, 2.0])))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == "3.0", found.stderr


def test_calls_with_constants_share_one_version():
    code = (
        "from numba.core import event\n"
        "from formulations.jit import compiled\n"
        "def scaled(x, factor, shift=0.5):\n"
        "    return factor * x + shift\n"
        "scaled = compiled(scaled)\n"
        "def sums(x):\n"
        "    return scaled(x, 2, shift=1.0) + scaled(x, 3, shift=-1.0) + scaled(x, 4, 0.0)\n"
        "sums = compiled(sums)\n"
        "with event.install_recorder('numba:compile') as recorder:\n"
        "    found = sums(1.0)\n"
        "started = [e.data['dispatcher'].py_func.__name__ for _, e in recorder.buffer if e.is_start]\n"
        "print(found, started, scaled(1.0, 2))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == "9.0 ['sums', 'scaled'] 2.5", found.stdout + found.stderr


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


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_is_as_before_also_after_an_error(enabled):
    try:
        (gc.enable if enabled else gc.disable)()
        assert compiled(eval("lambda x: x + 1.0"))(1.0) == 2.0
        assert gc.isenabled() == enabled
        with pytest.raises(Exception, match="Failed in nopython mode"):
            compiled(eval("lambda x: x.nothing_of_this_name"))(1.0)
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
