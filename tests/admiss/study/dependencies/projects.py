"""Little projects of users, each with edits that change scores and edits that do not.

A project is a set of files with a module ``mine`` that has the method ``half`` and the instance ``Numbers``. An edit
replaces a text in a file by another.
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
    "a name assigned several times": Project(
        "FACTOR = 1.0\nFACTOR = FACTOR / 2\nOTHER, (FIRST, *REST) = 1, (2, 3)\n"
        "def half(rows, seed):\n    return {'score': sum(rows) * FACTOR * FIRST}\n",
        {},
        [
            ("mine.py", "FACTOR = 1.0", "FACTOR = 2.0"),
            ("mine.py", "FACTOR / 2", "FACTOR / 4"),
            ("mine.py", "(2, 3)", "(4, 3)"),
        ],
    ),
    "a function that is defined again": Project(
        "def scale(x):\n    return x\n\n_first = scale\n\ndef scale(x):\n    return _first(x) / 2\n\n"
        "def half(rows, seed):\n    return {'score': scale(sum(rows))}\n",
        {},
        [("mine.py", "    return x\n", "    return x + 1\n"), ("mine.py", "_first(x) / 2", "_first(x) / 4")],
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
    "a module that is imported only by a table": Project(
        "import scaling\nimport drawing\n\ndef picture():\n    return drawing.draw()\n\n"
        "def half(rows, seed):\n    return {'score': scaling.scaled(sum(rows))}\n",
        {
            "scaling.py": "def scaled(x):\n    return x / 2\n",
            "drawing.py": "import scaling\n\ndef draw():\n    return 'drawn'\n\nSIZE = 3\nscaling.SHIFT = SIZE\nscaling.scaled = lambda x: x / SIZE\n",
        },
        [("drawing.py", "SIZE = 3", "SIZE = 4")],
        [("drawing.py", "'drawn'", "'painted'")],
    ),
    "methods that are put into a class": Project(
        "class Model:\n    def fit(self, rows):\n        return sum(rows)\n\ndef other(self, rows):\n    return sum(rows) / 2\n\n"
        "Model.fit = other\n\ndef half(rows, seed):\n    return {'score': Model().fit(rows)}\n",
        {},
        [("mine.py", "/ 2", "/ 4"), ("mine.py", "Model.fit = other", "pass")],
    ),
    "methods that are put in by setattr in a loop": Project(
        "class Model:\n    pass\n\nPOWERS = {'one': 1, 'two': 2}\nfor name, power in POWERS.items():\n"
        "    setattr(Model, name, lambda self, x, p=power: x ** p)\n\n"
        "def half(rows, seed):\n    return {'score': Model().two(sum(rows))}\n",
        {},
        [("mine.py", "'two': 2", "'two': 3"), ("mine.py", "x ** p", "x * p")],
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
    "a registry by subclasses": Project(
        "from base import Base\nimport special\n\ndef unused():\n    return special\n\n"
        "def half(rows, seed):\n    return {'score': Base.known['special']().score(rows)}\n",
        {
            "base.py": "class Base:\n    known = {}\n\n    def __init_subclass__(cls, **options):\n        Base.known[cls.__module__] = cls\n",
            "special.py": "import base\n\nclass Special(base.Base):\n    def score(self, rows):\n        return sum(rows) / 2\n",
        },
        [
            ("special.py", "/ 2", "/ 4"),
            (
                "base.py",
                "Base.known[cls.__module__] = cls",
                "cls.score = lambda self, rows: 7\n        Base.known[cls.__module__] = cls",
            ),
        ],
    ),
    "a registry by a metaclass": Project(
        "from base import Base, KNOWN\nfrom special import Special as S\n\ndef unused():\n    return S\n\n"
        "def half(rows, seed):\n    return {'score': KNOWN['Special']().score(rows)}\n",
        {
            "base.py": "KNOWN = {}\n\nclass Meta(type):\n    def __init__(cls, name, bases, namespace):\n        KNOWN[name] = cls\n\n"
            "class Base(metaclass=Meta):\n    pass\n",
            "special.py": "from base import Base as B\n\nclass Middle(B):\n    pass\n\nclass Special(Middle):\n    def score(self, rows):\n        return sum(rows) / 2\n",
        },
        [("special.py", "/ 2", "/ 4")],
    ),
    "subclasses by search": Project(
        "class Base:\n    pass\n\nclass Third(Base):\n    def score(self, rows):\n        return sum(rows) / 3\n\n"
        "def half(rows, seed):\n    return {'score': Base.__subclasses__()[0]().score(rows)}\n",
        {},
        [("mine.py", "/ 3", "/ 4")],
    ),
    "names that are computed": Project(
        "def scaled_2(x):\n    return x / 2\n\ndef half(rows, seed):\n    return {'score': globals()['scaled' + '_2'](sum(rows))}\n",
        {},
        [("mine.py", "x / 2", "x / 4")],
    ),
    "text that is evaluated": Project(
        "def scaled(x):\n    return x / 2\n\ndef half(rows, seed):\n    return {'score': eval('scaled(sum(rows))')}\n",
        {},
        [("mine.py", "x / 2", "x / 4")],
    ),
    "attributes of a module by computed names": Project(
        "import ways\n\ndef half(rows, seed):\n    return {'score': getattr(ways, 'scaled_' + str(2))(sum(rows))}\n",
        {"ways.py": "from more_ways import scaled_2\n", "more_ways.py": "def scaled_2(x):\n    return x / 2\n"},
        [("more_ways.py", "x / 2", "x / 4"), ("ways.py", "from more_ways import scaled_2", "scaled_2 = abs")],
    ),
    "a module that is passed to a function": Project(
        "import ways as w\n\ndef call(module, x):\n    return module.scaled(x)\n\ndef half(rows, seed):\n    return {'score': call(w, sum(rows))}\n",
        {"ways.py": "def scaled(x):\n    return x / 2\n"},
        [("ways.py", "x / 2", "x / 4")],
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
    "classes with bases elsewhere": Project(
        "from bases import Halving\n\nclass Model(Halving):\n    pass\n\ndef half(rows, seed):\n    return {'score': Model().score(rows)}\n",
        {
            "bases.py": "class Root:\n    def score(self, rows):\n        return sum(rows) / self.divisor\n\nclass Halving(Root):\n    divisor = 2\n"
        },
        [
            ("bases.py", "divisor = 2", "divisor = 4"),
            ("bases.py", "sum(rows) / self.divisor", "sum(rows) - self.divisor"),
        ],
    ),
    "decorators": Project(
        "from functools import wraps, cache\nfrom deco import halved\n\n@cache\ndef two():\n    return 2\n\n"
        "@halved(by=2)\ndef half(rows, seed):\n    return {'score': sum(rows) / two()}\n",
        {
            "deco.py": "from functools import wraps\n\ndef halved(by):\n    def outer(f):\n        @wraps(f)\n        def g(*a):\n"
            "            return {'score': f(*a)['score'] / by}\n        return g\n    return outer\n"
        },
        [("deco.py", "/ by", "* by"), ("mine.py", "by=2", "by=4"), ("mine.py", "return 2", "return 3")],
    ),
    "global state": Project(
        "FACTOR = 1\n\ndef prepare():\n    global FACTOR\n    FACTOR = 2\n\nprepare()\n\ndef half(rows, seed):\n    return {'score': sum(rows) / FACTOR}\n",
        {},
        [("mine.py", "FACTOR = 2", "FACTOR = 4"), ("mine.py", "\nprepare()\n", "\n")],
    ),
    "settings by items and in place": Project(
        "SETTINGS = {'factor': 1}\nSETTINGS['factor'] = 2\nSIZES = [1]\nALIAS = SIZES\nALIAS += [2]\n\n"
        "def half(rows, seed):\n    return {'score': sum(rows) / SETTINGS['factor'] / SIZES[-1]}\n",
        {},
        [("mine.py", "SETTINGS['factor'] = 2", "SETTINGS['factor'] = 4"), ("mine.py", "ALIAS += [2]", "ALIAS += [4]")],
    ),
    "docstrings that are read": Project(
        "def half(rows, seed):\n    '''2'''\n    return {'score': sum(rows) / int(half.__doc__)}\n",
        {},
        [("mine.py", "'''2'''", "'''4'''")],
    ),
    "a private name that is assigned for an effect": Project(
        "STATE = []\n\ndef prepare():\n    STATE.append(2)\n\n_done = prepare()\n\ndef half(rows, seed):\n    return {'score': sum(rows) / STATE[0]}\n",
        {},
        [("mine.py", "STATE.append(2)", "STATE.append(4)")],
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
    "single dispatch": Project(
        "from functools import singledispatch\n\n@singledispatch\ndef total(rows):\n    return 0\n\n@total.register\ndef _(rows: list):\n    return sum(rows) / 2\n\n"
        "def half(rows, seed):\n    return {'score': total(rows)}\n",
        {},
        [("mine.py", "/ 2", "/ 4")],
    ),
    "enumerations, tuples with names and comprehensions": Project(
        "from collections import namedtuple\nfrom enum import Enum\n\nDIVISORS = [d for d in (2, 3)]\n\nclass Way(Enum):\n    HALF = DIVISORS[0]\n\n"
        "Pair = namedtuple('Pair', 'a b')\n\ndef half(rows, seed):\n    return {'score': Pair(sum(rows) / Way.HALF.value, 1).a}\n",
        {},
        [("mine.py", "(2, 3)", "(4, 3)"), ("mine.py", "'a b'", "'b a'")],
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
    "classes, defaults and constants that are computed at import": Project(
        "import numpy as np\n\ndef table(k):\n    return [k, 2 * k]\n\nTABLE = table(1)\n\nclass Model:\n    grid = {n: TABLE[n] for n in (0, 1)}\n\n"
        "    def score(self, rows, by=TABLE[1]):\n        return float(np.sum(rows)) / by\n\ndef half(rows, seed):\n    return {'score': Model().score(rows)}\n",
        {},
        [("mine.py", "2 * k", "4 * k"), ("mine.py", "table(1)", "table(2)"), ("mine.py", "by=TABLE[1]", "by=TABLE[0]")],
    ),
    "aliases of modules and functions": Project(
        "import ways\nway = ways\nscale = way.scaled\nfrom functools import partial\nhalved = partial(scale, by=2)\n\n"
        "def half(rows, seed):\n    return {'score': halved(sum(rows))}\n",
        {"ways.py": "def scaled(x, by):\n    return x / by\n"},
        [("ways.py", "x / by", "x * by"), ("mine.py", "by=2", "by=4")],
    ),
    "a helper that is replaced by another module at import": Project(
        "import scaling\nimport setup_of_mine\nsetup_of_mine.prepare()\n\ndef half(rows, seed):\n    return {'score': scaling.scaled(sum(rows))}\n",
        {
            "scaling.py": "def scaled(x):\n    return x\n",
            "setup_of_mine.py": "import scaling\n\ndef prepare():\n    scaling.scaled = other\n\ndef other(x):\n    return x / 2\n",
        },
        [("setup_of_mine.py", "x / 2", "x / 4")],
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
