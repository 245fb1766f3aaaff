"""The names to which a piece of syntax refers, and its ways to reach code that no name shows.

    chains      dotted names ``a.b.c`` as they occur
    imports     import statements inside functions
    modules     modules that are imported by a constant text
    texts       short constants, which may be names of files
    whole       ``globals()``, ``eval`` and the like: any name of the module may be used
    package     imports by computed names and the like: any module of the package may be used

Names of local variables are among the chains: at worst they reach too much.
"""

import ast
from dataclasses import dataclass, field

ANY_NAME = {"globals", "eval", "exec", "__globals__", "f_globals", "query"}
ANY_MODULE = {
    "import_module", "__import__", "__subclasses__", "spec_from_file_location", "run_path", "run_module",
    "resolve_name", "walk_packages", "iter_modules", "entry_points", "SourceFileLoader", "load_source", "locate",
    "load_module",
}  # fmt: skip
LONGEST_PATH = 200
IMPORTERS = {"import_module", "__import__"}


@dataclass(frozen=True)
class Import:
    """One name that an import statement binds.

    Attributes
    ----------
    bound : str
        The name; ``*`` for all names of a module.
    module : str
        The module that it stands for, or from which it is taken.
    attribute : str or None
        Its name there.
    loads : str
        The module that is executed: of ``import a.b`` this is ``a.b``, and the name ``a`` stands for ``a``.
    """

    bound: str
    module: str
    attribute: str | None
    loads: str


@dataclass
class References:
    """The references of a statement."""

    chains: set[tuple[str, ...]] = field(default_factory=set)
    imports: list[Import] = field(default_factory=list)
    modules: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    whole: bool = False
    package: bool = False


def references_of(statement: ast.AST, package: str) -> References:
    """Collect the references of a statement of a module in a package."""
    found = References()
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name | ast.Attribute):
            waiting += _add_chain(node, found)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.imports += imports_of(node, package)
        elif isinstance(node, ast.Call) and (named := _constant_import(node, package)) is not None:
            found.modules.add(named)
            waiting += node.args
        elif isinstance(node, ast.If) and is_type_checking(node.test):
            waiting += node.orelse
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str) and 0 < len(node.value) < LONGEST_PATH and node.value.isprintable():
                found.texts.add(node.value)
        else:
            if isinstance(node, ast.Global):
                found.chains |= {(name,) for name in node.names}
            waiting += ast.iter_child_nodes(node)
    return found


def _add_chain(node: ast.Name | ast.Attribute, found: References) -> list[ast.AST]:
    """Add a dotted name; returns what remains if it begins with another expression."""
    parts: list[str] = []
    inner: ast.AST = node
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    rest = [] if isinstance(inner, ast.Name) else [inner]
    if isinstance(inner, ast.Name):
        parts.append(inner.id)
        found.chains.add(tuple(reversed(parts)))
    found.whole |= not ANY_NAME.isdisjoint(parts)
    found.package |= not ANY_MODULE.isdisjoint(parts) or parts[::-1][:2] == ["sys", "modules"]
    return rest


def _constant_import(call: ast.Call, package: str) -> str | None:
    """The module that a call imports by a constant name."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", None)
    if name not in IMPORTERS or not call.args or not isinstance(call.args[0], ast.Constant):
        return None
    if not isinstance(call.args[0].value, str):
        return None
    target = call.args[0].value.lstrip(".")
    level = len(call.args[0].value) - len(target)
    return _absolute(target, level, package)


def imports_of(statement: ast.Import | ast.ImportFrom, package: str) -> list[Import]:
    """The names that an import statement binds."""
    if isinstance(statement, ast.Import):
        return [
            Import(each.asname, each.name, None, each.name)
            if each.asname
            else Import(each.name.partition(".")[0], each.name.partition(".")[0], None, each.name)
            for each in statement.names
        ]
    source = _absolute(statement.module or "", statement.level, package)
    if source == "__future__":
        return []
    return [Import(each.asname or each.name, source, each.name, source) for each in statement.names]


def _absolute(target: str, level: int, package: str) -> str:
    """Name of a module given relative to a package; every dot beyond the first is one package further up."""
    if not level:
        return target
    parts = package.split(".")
    above = parts[: len(parts) - (level - 1)]
    return ".".join([*above, target] if target else above)


def is_type_checking(test: ast.AST) -> bool:
    """Whether a condition is ``TYPE_CHECKING``."""
    name = test.id if isinstance(test, ast.Name) else getattr(test, "attr", None)
    return name == "TYPE_CHECKING"
