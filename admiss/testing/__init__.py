"""The contract of adaptivity classes and losses: checks for your own.

``check_adaptivity(MyClass())`` runs all checks and stops at the first failure, with one sentence that names the check.
In a test file `parametrize_with_checks` turns each check into a test:

    @parametrize_with_checks([MyClass()])
    def test_contract(check):
        check()

Estimators centre features: ``fit`` and ``columns`` of a class see x_j - c_j, with c_j the mean of the observed training
values, in the user's units and with NaN for missing values.

============= =======================================================================================
``parts``     the object: parameters, fit, basis, mask, cells, names; counts, columns, structure
``fits``      fitted models: unseen patterns, limits, symmetries; different ways to one model
``rows``      the fixed rows of the checks; a class without a structure takes about a second
``losses``    the contract of losses, :func:`check_loss`
============= =======================================================================================
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from admiss.adaptivity import Adaptivity
from admiss.testing.fits import CHECKS_OF_FITS
from admiss.testing.losses import check_loss as check_loss
from admiss.testing.parts import CHECKS_OF_PARTS

CHECKS = CHECKS_OF_PARTS | CHECKS_OF_FITS


def check_adaptivity(adaptivity: Adaptivity, *, except_for: Mapping[str, str] | None = None) -> None:
    """Raise an AssertionError at the first check that a class fails.

    Parameters
    ----------
    adaptivity : Adaptivity
        An object of the class, with the parameters to check.
    except_for : dict of str to str, optional
        Checks to skip, each with the reason why it does not apply to the class.

    Examples
    --------
    >>> import numpy as np
    >>> from admiss.adaptivity import Adaptivity
    >>> class Centred(Adaptivity):
    ...     def basis(self, M):
    ...         missing = M.sum(axis=1)
    ...         return np.column_stack([np.ones(len(M)), missing - missing.mean()])
    >>> try:
    ...     check_adaptivity(Centred())
    ... except AssertionError as error:
    ...     print(str(error)[:75])
    Centred fails 'basis': basis(M) gives other values if M has a single row: a
    """
    for _, check in adaptivity_checks(adaptivity, except_for=except_for):
        check()


def adaptivity_checks(
    adaptivity: Adaptivity, *, except_for: Mapping[str, str] | None = None
) -> Iterator[tuple[str, Callable[[], None]]]:
    """The checks as pairs of a name and a function without arguments, in the order in which they are run.

    Parameters
    ----------
    adaptivity, except_for
        As in :func:`check_adaptivity`.

    Examples
    --------
    >>> from admiss.adaptivity import Affine
    >>> [name for name, _ in adaptivity_checks(Affine())][:4]
    ['parameters', 'fit', 'basis', 'mask']
    """
    if not isinstance(adaptivity, Adaptivity):
        hint = f"an instance, {adaptivity.__name__}()" if isinstance(adaptivity, type) else "an instance"
        raise TypeError(f"The contract is for instances of subclasses of Adaptivity, not {adaptivity!r}: pass {hint}.")
    skipped = dict(except_for or {})
    unknown = [name for name in skipped if name not in CHECKS]
    if unknown:
        raise ValueError(f"except_for names {', '.join(unknown)}, but the checks are {', '.join(CHECKS)}.")
    if not all(isinstance(reason, str) and reason.strip() for reason in skipped.values()):
        raise ValueError("except_for must give a reason for each skipped check, {'name of check': 'reason'}.")
    return ((name, partial(_run, name, adaptivity)) for name in CHECKS if name not in skipped)


def _run(name: str, adaptivity: Adaptivity) -> None:
    """Run one check; any error in it becomes an AssertionError with one sentence."""
    check, who = CHECKS[name], type(adaptivity).__name__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check(adaptivity)
        except AssertionError as error:
            raise AssertionError(f"{who} fails {name!r}: {error}.") from error
        except Exception as error:
            promise = (check.__doc__ or "").split("\n")[0].rstrip(".")
            reason = re.sub(r" \{[^}]*\}", "", " ".join(str(error).split())).rstrip(".")  # options of solvers are noise
            raise AssertionError(
                f"{who} fails {name!r}: it raised {type(error).__name__} ({reason}), but it is required that "
                f"{promise[:1].lower()}{promise[1:]}."
            ) from error


def parametrize_with_checks(
    adaptivities: Iterable[Adaptivity], *, except_for: Mapping[str, str] | None = None
) -> Callable[[Any], Any]:
    """A pytest decorator that runs a test for each class and check; the test calls its argument ``check``.

    Parameters
    ----------
    adaptivities : iterable of Adaptivity
        Objects of the classes.
    except_for : dict of str to str, optional
        As in :func:`check_adaptivity`, for all classes.

    Examples
    --------
    >>> from admiss.adaptivity import Static
    >>> from admiss.testing import parametrize_with_checks
    >>> @parametrize_with_checks([Static()])
    ... def test_contract(check):
    ...     check()
    """
    import pytest

    checks = [
        pytest.param(check, id=f"{adaptivity!r}-{name}")
        for adaptivity in adaptivities
        for name, check in adaptivity_checks(adaptivity, except_for=except_for)
    ]
    return pytest.mark.parametrize("check", checks)
