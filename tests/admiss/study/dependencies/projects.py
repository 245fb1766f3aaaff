"""Little projects of users, each with edits that change scores and edits that do not.

A project is a set of files with a module ``mine`` that has the method ``half`` and the instance ``Numbers``. An edit
replaces a text in a file by another. A record is of whole files: the projects differ in how these are found and read, and
not in what is done with the names inside.
"""

# ruff: noqa: E501

from collections.abc import Sequence
from typing import NamedTuple

HEAD = '''"""A study."""

from dataclasses import dataclass

from admiss.study import Method, Product, Study


@dataclass(frozen=True)
class Numbers:
    """Rows."""

    n: int

    def make(self):
        return [float(i) for i in range(1, self.n + 1)]

'''
TAIL = '''

def title_of(rows):
    """A table."""
    return "a table"


STUDY = Study("mine", "A title", "A description", lambda scale: [Product([Numbers(4)], [Method("half", half)])])
'''
# Edits of every project that change no score, and those of them that must not mark cells.
HARMLESS = [
    ("mine.py", "A title", "Another title"),
    ("mine.py", "A description", "Another description"),
    ("mine.py", '"a table"', '"another table"'),
    ("mine.py", '"""Rows."""', '"""Rows, which are numbers."""'),
]
UNSEEN = [
    ("mine.py", "import Method, Product, Study", "import (\n    Method,\n    Product,\n    Study,\n)"),
    ("mine.py", '"""Rows."""', '"""Rows."""  # a comment'),
    ("mine.py", "\n", "\r\n"),
]

Edit = tuple[str, str, str]


class Project(NamedTuple):
    """Body of ``mine``, further files, edits that change the score, and edits that do not."""

    mine: str
    files: dict[str, str]
    changing: list[Edit]
    harmless: Sequence[Edit] = ()

    @property
    def texts(self) -> dict[str, str]:
        return {"mine.py": HEAD + self.mine + TAIL, **self.files}


PROJECTS = {
    "its own function": Project(
        "def half(rows, seed):\n    return {'score': sum(rows) / 2}  # half\n",
        {},
        [("mine.py", "/ 2", "/ 4"), ("mine.py", "range(1, self.n + 1)", "range(self.n)")],
        [
            ("mine.py", "# half", "# halved"),
            ("mine.py", "{'score': sum(rows) / 2}", "{\n        'score': sum(rows) / 2}"),
        ],
    ),
    "a helper and a constant of the same file": Project(
        "FACTOR = 0.5\nUNUSED = 1\n\ndef scaled(rows):\n    return FACTOR * sum(rows)\n\n"
        "def half(rows, seed):\n    return {'score': scaled(rows)}\n",
        {},
        [("mine.py", "FACTOR = 0.5", "FACTOR = 0.25"), ("mine.py", "FACTOR * sum(rows)", "FACTOR + sum(rows)")],
        [("mine.py", "UNUSED = 1", "UNUSED = 2")],
    ),
    "a neighbouring module": Project(
        "import neighbour\nfrom neighbour import scaled as s\n\ndef half(rows, seed):\n"
        "    return {'score': s(sum(rows)) + neighbour.OFFSET}\n",
        {
            "neighbour.py": "OFFSET = 1\nDRAWN = 1\n\ndef scaled(x):\n    return inner(x) / 2\n\ndef inner(x):\n    return x\n\n"
            "def table(rows):\n    return 'table'\n"
        },
        [
            ("neighbour.py", "/ 2", "/ 4"),
            ("neighbour.py", "    return x\n", "    return -x\n"),
            ("neighbour.py", "OFFSET = 1", "OFFSET = 2"),
        ],
        [("neighbour.py", "DRAWN = 1", "DRAWN = 2"), ("neighbour.py", "'table'", "'a table'")],
    ),
    "a package with re-exports and relative imports": Project(
        "import tools.scaling.linear as lin\nfrom tools import scaled\nimport tools.offsets\n\ndef half(rows, seed):\n"
        "    return {'score': scaled(sum(rows)) + lin.SHIFT + tools.offsets.OFFSET}\n",
        {
            "tools/__init__.py": "from .scaling import scaled\nfrom . import pictures\n\n__all__ = ['scaled']\n",
            "tools/scaling/__init__.py": "from .linear import scaled_linearly as scaled\n",
            "tools/scaling/linear.py": "from ..deep.factors import FACTOR\nfrom .. import offsets as o\nSHIFT = 1\n"
            "def scaled_linearly(x):\n    return FACTOR * x + o.MORE\n",
            "tools/deep/__init__.py": "",
            "tools/deep/factors.py": "FACTOR = 0.5\nNOT_USED = 1\n",
            "tools/offsets.py": "OFFSET = 3\nMORE = 4\n",
            "tools/pictures.py": "def picture():\n    return 'p'\n",
        },
        [
            (
                "tools/scaling/__init__.py",
                "from .linear import scaled_linearly as scaled",
                "def scaled(x):\n    return x",
            ),
            ("tools/scaling/linear.py", "FACTOR * x", "FACTOR - x"),
            ("tools/scaling/linear.py", "SHIFT = 1", "SHIFT = 2"),
            ("tools/deep/factors.py", "FACTOR = 0.5", "FACTOR = 0.25"),
            ("tools/offsets.py", "OFFSET = 3", "OFFSET = 2"),
            ("tools/offsets.py", "MORE = 4", "MORE = 5"),
            (
                "tools/__init__.py",
                "from . import pictures",
                "from . import pictures\nfrom . import offsets\noffsets.MORE = 7",
            ),
        ],
        [("tools/pictures.py", "'p'", "'q'"), ("tools/deep/factors.py", "NOT_USED = 1", "NOT_USED = 2")],
    ),
    "imports inside functions": Project(
        "def half(rows, seed):\n    import late\n    from late import more as m\n    return {'score': late.scaled(sum(rows)) + m()}\n",
        {"late.py": "def scaled(x):\n    return x / 2\n\ndef more():\n    return 1\n\ndef other():\n    return 5\n"},
        [("late.py", "x / 2", "x / 4"), ("late.py", "return 1", "return 2")],
        [("late.py", "return 5", "return 6")],
    ),
    "all names of a module": Project(
        "from stars import *\n\ndef half(rows, seed):\n    return {'score': scaled(sum(rows)) + DEEP}\n",
        {
            "stars.py": "from deeper import *\n__all__ = ['scaled', 'DEEP']\n\ndef scaled(x):\n    return x / 2\n\ndef plot():\n    return 1\n",
            "deeper.py": "DEEP = 3\nNOT_DEEP = 1\n",
        },
        [("stars.py", "x / 2", "x / 4"), ("deeper.py", "DEEP = 3\n", "DEEP = 4\n")],
        [("stars.py", "return 1", "return 2"), ("deeper.py", "NOT_DEEP = 1", "NOT_DEEP = 2")],
    ),
    "a module that imports for effects": Project(
        "import scaling\nimport patches\n\ndef half(rows, seed):\n    return {'score': scaling.scaled(sum(rows))}\n",
        {
            "scaling.py": "def scaled(x):\n    return x\n",
            "patches.py": "import scaling\n\ndef better(x):\n    return x / 2\n\nscaling.scaled = better\n",
        },
        [("patches.py", "x / 2", "x / 4"), ("patches.py", "scaling.scaled = better", "scaling.scaled = abs")],
    ),
    "a registry by decorators": Project(
        "from registry import KNOWN\nimport plugins\n\ndef half(rows, seed):\n    return {'score': KNOWN['half'](sum(rows))}\n",
        {
            "registry.py": "KNOWN = {}\n\ndef register(function):\n    KNOWN[function.__name__] = function\n    return function\n",
            "plugins.py": "from registry import register\n\n@register\ndef half(x):\n    return helper(x) / 2\n\ndef helper(x):\n    return x\n",
        },
        [
            ("plugins.py", "/ 2", "/ 4"),
            ("plugins.py", "return x\n", "return x + 1\n"),
            ("registry.py", "KNOWN[function.__name__] = function", "KNOWN[function.__name__] = abs"),
        ],
    ),
    "modules imported by constant and by computed names": Project(
        "from importlib import import_module\nimport importlib\n\ndef half(rows, seed):\n"
        "    a = import_module('plugs.first').scaled(sum(rows))\n"
        "    return {'score': a + importlib.import_module('plugs.' + 'second').scaled(a)}\n",
        {
            "plugs/__init__.py": "",
            "plugs/first.py": "def scaled(x):\n    return x / 2\n",
            "plugs/second.py": "def scaled(x):\n    return x / 3\n",
        },
        [("plugs/first.py", "x / 2", "x / 4"), ("plugs/second.py", "x / 3", "x / 4")],
    ),
    "a package that imports its modules by computed names": Project(
        "from plugs import load\n\ndef half(rows, seed):\n    return {'score': load('second')(sum(rows))}\n",
        {
            "plugs/__init__.py": "import importlib\n\ndef load(name):\n    return importlib.import_module(f'{__name__}.{name}').scaled\n",
            "plugs/second.py": "from .third import FACTOR\n\ndef scaled(x):\n    return x / FACTOR\n",
            "plugs/third.py": "FACTOR = 3\n",
        },
        [("plugs/second.py", "x / FACTOR", "x * FACTOR"), ("plugs/third.py", "FACTOR = 3", "FACTOR = 4")],
    ),
    "lazy names of a module": Project(
        "from lazy import scaled\n\ndef half(rows, seed):\n    return {'score': scaled(sum(rows))}\n",
        {"lazy.py": "def _halved(x):\n    return x / 2\n\ndef __getattr__(name):\n    return _halved\n"},
        [("lazy.py", "x / 2", "x / 4")],
    ),
    "conditional imports": Project(
        "import sys\ntry:\n    from missing_module import scaled\nexcept ImportError:\n    from fallback import scaled\n\n"
        "if sys.version_info > (3, 0):\n    from modern import OFFSET\nelse:\n    OFFSET = 0\n\n"
        "def half(rows, seed):\n    return {'score': scaled(sum(rows)) + OFFSET}\n",
        {"fallback.py": "def scaled(x):\n    return x / 2\n", "modern.py": "OFFSET = 1\n"},
        [
            ("fallback.py", "x / 2", "x / 4"),
            ("modern.py", "OFFSET = 1", "OFFSET = 2"),
            ("mine.py", "> (3, 0)", "> (9, 0)"),
        ],
    ),
    "imports for type checkers": Project(
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from typed import Number\n\n"
        "def half(rows, seed) -> 'Number':\n    return {'score': sum(rows) / 2}\n",
        {"typed.py": "Number = float\n"},
        [("mine.py", "/ 2", "/ 4")],
        [("typed.py", "float", "int")],
    ),
    "docstrings that are read": Project(
        "def half(rows, seed):\n    '''2'''\n    return {'score': sum(rows) / int(half.__doc__)}\n",
        {},
        [("mine.py", "'''2'''", "'''4'''")],
    ),
    "a cycle of imports": Project(
        "import left\n\ndef half(rows, seed):\n    return {'score': left.scaled(sum(rows))}\n",
        {
            "left.py": "import right\n\ndef scaled(x):\n    return right.halved(x)\n\nTWO = 2\n",
            "right.py": "import left\n\ndef halved(x):\n    return x / left.TWO\n",
        },
        [("left.py", "TWO = 2", "TWO = 4"), ("right.py", "x / left.TWO", "x * left.TWO")],
    ),
    "a package without __init__": Project(
        "import space.part\nfrom space import other\n\ndef half(rows, seed):\n    return {'score': space.part.scaled(sum(rows)) + other.ONE}\n",
        {"space/part.py": "def scaled(x):\n    return x / 2\n", "space/other.py": "ONE = 1\n"},
        [("space/part.py", "x / 2", "x / 4"), ("space/other.py", "ONE = 1", "ONE = 2")],
    ),
    "files beside the modules": Project(
        "from pathlib import Path\nimport json\nimport tables\n\nFOLDER = Path(__file__).parent / 'settings'\n\n"
        "def half(rows, seed):\n    return {'score': json.loads((FOLDER / 'half.json').read_text()) * sum(rows) + tables.SHIFT}\n",
        {
            "settings/half.json": "0.5\n",
            "settings/unread.json": "1\n",
            "tables/__init__.py": "from os.path import dirname, join\nwith open(join(dirname(__file__), 'shift.txt')) as file:\n    SHIFT = float(file.read())\n",
            "tables/shift.txt": "1\n",
        },
        [("settings/half.json", "0.5", "0.25"), ("tables/shift.txt", "1", "2")],
        [("settings/unread.json", "1", "2")],
    ),
    "modules with the names of modules of Python": Project(
        "from this_package import statistics\nimport colorsys\n\ndef half(rows, seed):\n    return {'score': statistics.mean(rows) + colorsys.SHIFT}\n",
        {
            "this_package/__init__.py": "",
            "this_package/statistics.py": "def mean(x):\n    return sum(x) / 2\n",
            "colorsys.py": "SHIFT = 1\n",
        },
        [("this_package/statistics.py", "/ 2", "/ 4"), ("colorsys.py", "SHIFT = 1", "SHIFT = 2")],
    ),
    "a submodule and a function of one name": Project(
        "import pack\nimport pack.mean\n\ndef half(rows, seed):\n    return {'score': pack.mean.mean(rows)}\n",
        {"pack/__init__.py": "mean = None\n", "pack/mean.py": "def mean(x):\n    return sum(x) / 2\n"},
        [("pack/mean.py", "/ 2", "/ 4")],
    ),
    "effects of a package above": Project(
        "from upper.lower.work import scaled\n\ndef half(rows, seed):\n    return {'score': scaled(sum(rows))}\n",
        {
            "upper/__init__.py": "import math\nmath.my_factor = 2\n",
            "upper/lower/__init__.py": "",
            "upper/lower/work.py": "import math\n\ndef scaled(x):\n    return x / math.my_factor\n",
        },
        [("upper/__init__.py", "my_factor = 2", "my_factor = 4")],
    ),
}
