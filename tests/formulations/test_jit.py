import subprocess
import sys


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
