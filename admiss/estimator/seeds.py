"""Random states as they are given, and seeds for those of estimators given by users."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state


def read_random_state(random_state: Any) -> np.random.RandomState:
    """The generator of a seed, a generator, or None; anything else is refused."""
    try:
        return check_random_state(random_state)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(
            f"random_state must be a whole number from 0 to 2**32 - 1, a RandomState or None, not {random_state!r}."
        ) from error


def seeded(estimator: Any, seed: int) -> Any:
    """A copy with the seed in every random state that is None, including those of nested estimators.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> seeded(RandomForestRegressor(), 7).random_state, seeded(RandomForestRegressor(random_state=1), 7).random_state
    (7, 1)
    """
    copy = clone(estimator)
    parameters = copy.get_params(deep=True).items()
    unset = [name for name, value in parameters if name.rpartition("__")[2] == "random_state" and value is None]
    return copy.set_params(**dict.fromkeys(unset, seed))
