"""The command ``admiss new-class``: files for a new adaptivity class and its test.

The files run as they are: the basis is 1 and the share of missing features, and the test passes.
"""

import argparse
import keyword
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

import admiss
import admiss.adaptivity

# Modules that the two files import, or that pytest reads: a file of the same name would shadow them.
IMPORTED = {
    "admiss", "formulations", "numpy", "scipy", "sklearn", "cvxpy", "pytest", "pandas", "polars", "joblib", "conftest",
}  # fmt: skip

CLASS = Template('''\
"""$name, an adaptivity class; see "Write your own adaptivity class" of admiss."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from admiss.adaptivity import Adaptivity


class $name(Adaptivity):
    """Weights that depend on TODO.

    Definition
        w_j(m) = sum_k W_jk phi_k(m) with phi = 1, |m| / d, where |m| is the number of missing features. (TODO)
    p(F)
        2 (d + 1): two for the intercept and for each feature. (TODO: the test compares it with the rank)
    What it can express
        Weights that vary with the number of missing features, such as a scale that shrinks. (TODO)
    Where it loses
        If it matters which features are missing, not how many. (TODO)
    Reference
        TODO: a paper, or "none known".
    """

    # fit(X, M) and columns(X, M), if the class needs its own, see centred features x_j - c_j in the user's units.

    # Weights and intercept contain all polynomials of the pattern up to this degree; Theorem 1 needs it for the bias.
    degree = 0

    def basis(self, M: Any) -> Any:
        """phi_k(m), one row for each row of M, which is 1.0 for a missing feature and 0.0 for an observed one."""
        return np.column_stack([np.ones(len(M)), M.mean(axis=1)])

    def names(self, feature_names: Sequence[str]) -> list[str]:
        """A name for each basis function; "1" is omitted when models are printed."""
        return ["1", "share missing"]
''')

TEST = Template('''\
"""$name satisfies the contract of adaptivity classes, has the stated p(F), and is compared with other classes."""

from collections.abc import Callable

import numpy as np
from $module import $name

from admiss import compare_classes
from admiss.bounds import coefficient_count
from admiss.datasets import make_synthetic
from admiss.testing import parametrize_with_checks


@parametrize_with_checks([$name()])
def test_contract(check: Callable[[], None]) -> None:
    check()


def test_coefficients_are_as_stated() -> None:
    for d in (2, 3, 5):
        assert coefficient_count($name(), d) == 2 * (d + 1)  # TODO: as p(F) in the docstring, if the basis changes


def test_first_comparison() -> None:
    data = make_synthetic(n=300, d=5, n_active=3, mechanism="censoring", random_state=0)
    table = compare_classes(data.X_train, data.y_train, ["static", "affine_intercept", $name()], cv=3, random_state=0)
    print(table)  # shown by pytest -s
    assert np.all(table["R2"] > 0)
''')


def new_class_files(name: str) -> dict[str, str]:
    """The names and contents of the two files of a new class.

    Examples
    --------
    >>> list(new_class_files("CountAdaptive"))
    ['count_adaptive.py', 'test_count_adaptive.py']
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(
            f"{name!r} cannot be the name of a class: use letters and digits without spaces, such as CountAdaptive."
        )
    if name in _taken_names():
        raise ValueError(f"{name} is already a name in admiss or in the two files: choose another.")
    if name.startswith("Test"):
        raise ValueError(f"pytest would collect {name} as a test, as it begins with Test: choose another name.")
    module = snake_case(name)
    if module in IMPORTED or module in sys.stdlib_module_names:
        raise ValueError(f"{module}.py would shadow the module {module}: choose another name than {name}.")
    words = {"name": name, "module": module}
    return {f"{module}.py": CLASS.substitute(words), f"test_{module}.py": TEST.substitute(words)}


def _taken_names() -> set[str]:
    """Names of the package, and those that the two files import."""
    imports = [line.partition(" import ")[2] for line in (CLASS.template + TEST.template).splitlines()]
    imported = {name.strip() for line in imports for name in line.split(",")}
    return {*admiss.__all__, *admiss.adaptivity.__all__, *imported, "np", "Contract"}


def snake_case(name: str) -> str:
    """CapWords converted to lower case with underscores.

    Examples
    --------
    >>> snake_case("CountAdaptive"), snake_case("EMClass2"), snake_case("already_small")
    ('count_adaptive', 'em_class2', 'already_small')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


PAGE = Path(__file__).parents[1] / "adaptivity" / "WRITE_YOUR_OWN.md"
DESCRIPTION = """\
Write two files to start from: an adaptivity class NAME with a basis, names and a docstring in the usual order, and a
test that runs the contract of adaptivity classes and a first comparison. Both run as written; look for TODO.
"""


def add_parser(commands: Any, summary: str) -> None:
    """Declare the options."""
    parser = commands.add_parser(
        "new-class",
        help=summary,
        description=DESCRIPTION,
        epilog="example:\n  admiss new-class CountAdaptive --folder ideas\n  cd ideas\n"
        f"  python -m pytest test_count_adaptive.py\n\nfrom nothing to a tested class:\n  {PAGE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="name of the class, CountAdaptive for instance")
    parser.add_argument(
        "--folder", default=".", metavar="DIR", help="where to write; created if absent (default: here)"
    )
    parser.set_defaults(handler=new_class_pages)


def new_class_pages(options: argparse.Namespace) -> Iterator[str]:
    """Write both files or none, and yield the next steps."""
    folder = Path(options.folder)
    files = {folder / file: text for file, text in new_class_files(options.name).items()}
    existing = [str(path) for path in files if path.exists()]
    if existing:
        raise ValueError(f"{existing[0]} already exists and is not overwritten: choose another name or --folder.")
    for part in (folder, *folder.parents):
        if part.exists() and not part.is_dir():
            raise ValueError(f"--folder {folder} cannot be created, since {part} is a file: name a folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise ValueError(f"--folder {folder} cannot be written to ({error.strerror}): name another.") from error
    for path in files:
        yield f"written: {path}"
    test = list(files)[1].name
    yield f"test it: {'' if folder == Path('.') else f'cd {folder} && '}python -m pytest {test}"
    yield f"read on: {PAGE}"
