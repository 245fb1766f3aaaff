"""All combinations of values of the fields of an instance."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any


def combinations(instance: Callable[..., Any], **values: Iterable[Any]) -> list[Any]:
    """Instances with all combinations of values of their fields, the last field varying fastest.

    Parameters
    ----------
    instance : callable
        A class of instances.
    **values : iterables
        The values of each field, by its name.

    Examples
    --------
    >>> combinations(complex, real=[1, 2], imag=[0, 5])
    [(1+0j), (1+5j), (2+0j), (2+5j)]
    """
    return [instance(**dict(zip(values, chosen, strict=True))) for chosen in product(*values.values())]
