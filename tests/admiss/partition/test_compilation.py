"""Loops are compiled before the clock of a time limit starts."""

import subprocess
import sys

import pytest

CODE = """
import sys
import numpy as np
from admiss import FiniteRegressor
from admiss.partition import BoxPartition, OptimalTree, PatternGroups
from admiss.partition import {module} as partitioner

def versions():
    parts = ("formulations.leaves", "formulations.trees", "formulations.groups")
    modules = [module for name, module in sys.modules.items() if name.startswith(parts)]
    return {{(name, str(version)) for module in modules for name, loops in vars(module).items()
            for version in getattr(loops, "signatures", ())}}

ready = []
compile_loops = partitioner.{loops}
partitioner.{loops} = lambda: (compile_loops(), ready.append(versions()))
rng = np.random.default_rng(1)
X, y = rng.normal(size=(200, 4)), rng.normal(size=200)
{change}
X[rng.uniform(size=X.shape) < 0.3] = np.nan
FiniteRegressor({model}).fit(X, y)
print("write_leaf_costs" in dict(ready[0]), sorted(versions() - ready[0]))
"""


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("module", "model", "change", "loops"),
    [
        ("optimal_tree", "OptimalTree(3, min_rows=5, time_limit=60)", "", "compile_loops"),
        slow("box_partition", "BoxPartition(2, min_rows=5)", "", "compile_loops"),
        slow("pattern_groups", "PatternGroups(3, 5)", "", "compile_group_loops"),
        # nearly singular leaves are computed again in pairs of doubles
        slow("pattern_groups", "PatternGroups(3, 5), ridge=0", "X[:, 1] = X[:, 0] + 1e-7 * y", "compile_group_loops"),
    ],
)
def test_nothing_is_compiled_after_the_start(module, model, change, loops):
    code = CODE.format(module=module, model=model, change=change, loops=loops)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == "True []", found.stdout + found.stderr
