"""Random projects: modules whose functions call each other in many ways, and a constant in each function.

Module i has the functions f_i_0 and f_i_1 and a class K_i. Each function adds its constant to what it calls in later
modules. A way to call is a header of the module, a line of the function, and an expression.
"""

# ruff: noqa: E501

import random
from typing import NamedTuple

FUNCTIONS = 2
PRECISE = {
    "module": ("import {t}", "", "{t}.{f}()"),
    "alias of a module": ("import {t} as a{k}", "", "a{k}.{f}()"),
    "function": ("from {t} import {f}", "", "{f}()"),
    "alias of a function": ("from {t} import {f} as g{k}", "", "g{k}()"),
    "inside": ("", "import {t} as i{k}", "i{k}.{f}()"),
    "inside, function": ("", "from {t} import {f} as j{k}", "j{k}()"),
    "assigned": ("import {t} as b{k}\ns{k} = b{k}.{f}", "", "s{k}()"),
    "class": ("import {t} as c{k}\nclass C{k}:\n    def call(self):\n        return c{k}.{f}()", "", "C{k}().call()"),
    "default": ("import {t} as d{k}\ndef h{k}(g=d{k}.{f}):\n    return g()", "", "h{k}()"),
    "partial": ("from functools import partial\nfrom {t} import {f} as e{k}\np{k} = partial(e{k})", "", "p{k}()"),
    "lambda": ("import {t} as m{k}\nl{k} = lambda: m{k}.{f}()", "", "l{k}()"),
    "comprehension": ("import {t} as n{k}", "", "[g() for g in (n{k}.{f},)][0]"),
    "inherited": ("import {t} as o{k}\nclass D{k}(o{k}.{c}):\n    pass", "", "D{k}().value()"),
    "facade": ("from facade_{k} import shown as q{k}", "", "q{k}()"),
    "facade, module": ("import facade_{k}.inner as r{k}", "", "r{k}.shown()"),
    "cached": ("from functools import cache\nimport {t} as u{k}\n@cache\ndef v{k}():\n    return u{k}.{f}()", "", "v{k}()"),
    "dict": ("from {t} import {f} as w{k}\nW{k} = {{'x': w{k}}}", "", "W{k}['x']()"),
    "nested": ("from {t} import {f} as x{k}", "def y{k}():\n        return x{k}()", "y{k}()"),
}  # fmt: skip
COARSE = {
    "all names": ("from {t} import *", "", "{f}()"),
    "computed attribute": ("import {t} as A{k}", "", "getattr(A{k}, '{f}'[:2] + '{f}'[2:])()"),
    "passed": ("import {t} as B{k}\ndef c_{k}(m):\n    return m.{f}()", "", "c_{k}(B{k})"),
    "item": ("from {t} import {f} as E{k}\nR{k} = {{}}\nR{k}['x'] = E{k}", "", "R{k}['x']()"),
    "tried": ("try:\n    from {t} import {f} as F{k}\nexcept ImportError:\n    F{k} = None", "", "F{k}()"),
    "conditional": ("if len('x'):\n    import {t} as G{k}", "", "G{k}.{f}()"),
    "put into a class": ("import {t} as H{k}\nclass I{k}:\n    pass\nI{k}.call = staticmethod(H{k}.{f})", "", "I{k}.call()"),
    "global": ("import {t} as J{k}\ndef init{k}():\n    global v_{k}\n    v_{k} = J{k}.{f}\ninit{k}()", "", "v_{k}()"),
    "by text": ("from importlib import import_module", "", "import_module('{t}').{f}()"),
    "looped": ("import {t} as L{k}\nfor z{k} in [L{k}.{f}]:\n    pass", "", "z{k}()"),
    "evaluated": ("import {t} as M{k}", "", "eval('M{k}.{f}()')"),
    "registered": ("import {t} as O{k}\nP{k} = []\ndef r_{k}(f):\n    P{k}.append(f)\n    return f\n@r_{k}\ndef _q{k}():\n"
                   "    return O{k}.{f}()", "", "P{k}[0]()"),
    "walrus": ("import {t} as S{k}\nprint(end=str(T{k} := S{k}.{f})[:0])", "", "T{k}()"),
    "patched": ("import {t} as U{k}\nimport patched_{k}", "", "patched_{k}.call()"),
}  # fmt: skip
MINE = """from dataclasses import dataclass
from admiss.study import Method, Product, Study
import {first}

@dataclass(frozen=True)
class Numbers:
    n: int

    def make(self):
        return None

def half(rows, seed):
    return {{"score": {first}.f_0_0()}}

STUDY = Study("mine", "T", "D", lambda scale: [Product([Numbers(4)], [Method("half", half)])])
"""


class RandomProject(NamedTuple):
    """Texts by file, and the places of the constants: file, old text, new text."""

    texts: dict[str, str]
    edits: list[tuple[str, str, str]]


def random_project(seed: int, precise: bool) -> RandomProject:
    rng = random.Random(seed)
    ways = PRECISE if precise else {**PRECISE, **COARSE}
    names = [f"{rng.choice(['', '', 'pack.', 'pack.deep.'])}mod{i}" for i in range(rng.randint(3, 5))]
    texts = {"mine.py": MINE.format(first=names[0])}
    for folder in ("pack", "pack/deep"):
        texts[f"{folder}/__init__.py"] = ""
    edits, count = [], 0
    for i, name in enumerate(names):
        headers, functions = [], []
        file = f"{name.replace('.', '/')}.py"
        for j in range(FUNCTIONS):
            lines, terms = [], [f"{1000 + 10 * i + j}"]
            for later in range(i + 1, len(names)):
                if rng.random() < 0.6:
                    count += 1
                    target = {
                        "t": names[later],
                        "f": f"f_{later}_{rng.randrange(FUNCTIONS)}",
                        "c": f"K_{later}",
                        "k": count,
                    }
                    header, line, term = (part.format(**target) for part in ways[rng.choice(list(ways))])
                    headers.append(header)
                    lines += [f"    {line}\n"] if line else []
                    terms.append(term)
                    texts |= _companions(target)
            functions.append(f"def f_{i}_{j}():\n{''.join(lines)}    return {' + '.join(terms)}\n")
            edits.append((file, f"return {1000 + 10 * i + j}", f"return {7000 + 10 * i + j}"))
        functions.append(f"class K_{i}:\n    def value(self):\n        return {1500 + i}\n")
        edits.append((file, f"return {1500 + i}", f"return {7500 + i}"))
        texts[file] = "\n".join([*headers, *functions])
    return RandomProject(texts, edits)


def _companions(target: dict[str, object]) -> dict[str, str]:
    """Packages that show a function under another name, and a module that is patched."""
    k, t, f = target["k"], target["t"], target["f"]
    return {
        f"facade_{k}/__init__.py": "from .inner import shown\n",
        f"facade_{k}/inner.py": f"from {t} import {f} as hidden\n\ndef shown():\n    return hidden()\n",
        f"patched_{k}.py": f"import patches_{k}\n\ndef call():\n    return None\n\npatches_{k}.patch(globals())\n",
        f"patches_{k}.py": f"import {t} as target\n\ndef patch(names):\n    names['call'] = target.{f}\n",
    }
