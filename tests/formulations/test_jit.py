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
