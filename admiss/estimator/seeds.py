"""Seeds for the random states of estimators given by users."""

from typing import Any

from sklearn.base import clone


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
