"""A stand-in for inputs that hang or end their process; a module of its own, since the process imports nothing else."""

import os
import time

from tests.odd_inputs.pool import Outcome


def pretend(seed: int) -> Outcome:
    """0 hangs, 1 ends the process, others pass."""
    if seed == 0:
        time.sleep(60)
    elif seed == 1:
        os._exit(3)
    return Outcome(seed, "fitted", 0.0)
