"""Array types."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
# A float array or a scipy csr_array; scipy has no types.
Matrix = Any
