"""Names for the arrays that walk through the library."""

import numpy as np
from numpy.typing import NDArray

Uint64s = NDArray[np.uint64]
Counts = NDArray[np.int64]
Estimates = NDArray[np.float64]
Mask = NDArray[np.bool_]
