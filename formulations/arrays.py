"""Types of the arrays that programs are stated in."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
# A float array or a sparse array of scipy.
Matrix = Any
