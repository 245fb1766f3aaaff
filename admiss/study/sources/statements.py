"""A module as its top-level statements, each with the names that it binds.

    definitions     functions, classes, and assignments to simple names: they count if something refers to the name
    imports         likewise
    effects         statements that may change what other code computes: they count whenever the module is executed

Effects are expressions, loops, conditions, ``with``, ``try``, ``del``, assignments to attributes and items, augmented
assignments, assignments to a private name that nothing refers to, definitions with decorators that may register them,
and classes with keywords or with calls in their body. Names bound inside such a statement are defined by it.

Texts are those of ``ast.unparse``: formatting, comments and docstrings do not matter. Docstrings are kept in a module
that mentions ``__doc__``. Blocks ``if __name__ == "__main__"`` and ``if TYPE_CHECKING`` are left out.
"""

import ast
import hashlib
from collections import defaultdict
from functools import cached_property

from admiss.study.sources.references import Import, References, imports_of, is_type_checking, references_of

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Decorators that leave nothing behind, by the modules that have them; none of these modules registers anything.
PURE_MODULES = {"abc", "contextlib", "dataclasses", "enum", "functools", "numba", "typing", "typing_extensions"}
PURE_BUILTINS = {"property", "staticmethod", "classmethod"}


class Statement:
    """A top-level statement."""

    def __init__(self, node: ast.stmt, package: str) -> None:
        self.node = node
        self.package = package

    @cached_property
    def text(self) -> str:
        """Its normalised source."""
        return ast.unparse(self.node)

    @cached_property
    def references(self) -> References:
        """The names that it refers to."""
        return references_of(self.node, self.package)


class ModuleSource:
    """The statements of a module.

    Parameters
    ----------
    name : str
    text : str
        Its source.
    is_package : bool
        Whether it is the ``__init__`` of a package.
    """

    def __init__(self, name: str, text: str, is_package: bool) -> None:
        self.name = name
        self.is_package = is_package
        self.package = name if is_package else name.rpartition(".")[0]
        self.file_name = name.replace(".", "/") + ("/__init__.py" if is_package else ".py")
        self.statements: list[Statement] = []
        self.definitions: defaultdict[str, list[Statement]] = defaultdict(list)
        self.imports: defaultdict[str, list[Import]] = defaultdict(list)
        self.effects: list[Statement] = []
        tree = ast.parse(text)
        if "__doc__" not in text and "getdoc" not in text:
            _strip_docstrings(tree)
        self._read(tree.body)
        self.effects += [
            statement
            for name, statements in self.definitions.items()
            if name.startswith("_") and not name.startswith("__") and name not in self.mentioned
            for statement in statements
            if isinstance(statement.node, ast.Assign | ast.AnnAssign) and statement not in self.effects
        ]

    def _read(self, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.If) and (_is_main_guard(node.test) or is_type_checking(node.test)):
                self._read(node.orelse)
            elif (
                isinstance(node, ast.If) and isinstance(node.test, ast.UnaryOp) and is_type_checking(node.test.operand)
            ):
                self._read(node.body)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._bind_imports(node)
            elif not (isinstance(node, ast.Pass) or _is_constant(node)):
                self._bind(Statement(node, self.package))

    def _bind_imports(self, node: ast.Import | ast.ImportFrom) -> None:
        for each in imports_of(node, self.package):
            self.imports[each.bound].append(each)

    def _bind(self, statement: Statement) -> None:
        node = statement.node
        self.statements.append(statement)
        if isinstance(node, DEFINITIONS):
            self.definitions[node.name].append(statement)
            if self._may_register(node):
                self.effects.append(statement)
            return
        targets = _targets(node)
        if targets is not None and all(isinstance(target, ast.Name) for target in targets):
            for target in targets:
                assert isinstance(target, ast.Name)
                self.definitions[target.id].append(statement)
            return
        self.effects.append(statement)
        for inner in _executed(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                self._bind_imports(inner)
            elif isinstance(inner, DEFINITIONS):
                self.definitions[inner.name].append(statement)
            elif isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
                self.definitions[inner.id].append(statement)
            elif isinstance(inner, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and inner.name:
                self.definitions[inner.name].append(statement)

    def _may_register(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
        if not all(map(self._is_pure, node.decorator_list)):
            return True
        if not isinstance(node, ast.ClassDef):
            return False
        calls = any(isinstance(each, ast.Expr) and not _is_constant(each) for each in node.body)
        return calls or bool(node.keywords)

    def _is_pure(self, decorator: ast.expr) -> bool:
        head: ast.expr = decorator
        while isinstance(head, ast.Call | ast.Attribute):
            head = head.func if isinstance(head, ast.Call) else head.value
        if not isinstance(head, ast.Name) or head.id in self.definitions:
            return False
        sources = {each.module.partition(".")[0] for each in self.imports.get(head.id, ())}
        return sources <= PURE_MODULES if sources else head.id in PURE_BUILTINS

    @cached_property
    def mentioned(self) -> set[str]:
        """All names that its statements read, and the texts of ``__all__``."""
        found = {
            node.id
            for statement in self.statements
            for node in ast.walk(statement.node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        for statement in self.definitions.get("__all__", ()):
            found |= {str(each.value) for each in ast.walk(statement.node) if isinstance(each, ast.Constant)}
        return found


def text_hash(text: str) -> str:
    """SHA-256 of a text in 12 digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _targets(node: ast.stmt) -> list[ast.expr] | None:
    """The targets of a plain assignment, with tuples unpacked; None for other statements."""
    if isinstance(node, ast.AugAssign):
        return [node.target] if isinstance(node.target, ast.Name) and node.target.id == "__all__" else None
    if isinstance(node, ast.AnnAssign):
        return [node.target]
    if not isinstance(node, ast.Assign):
        return None
    waiting, found = list(node.targets), []
    while waiting:
        target = waiting.pop()
        if isinstance(target, ast.Tuple | ast.List):
            waiting += target.elts
        else:
            found.append(target.value if isinstance(target, ast.Starred) else target)
    return found


def _executed(node: ast.AST) -> list[ast.AST]:
    """The nodes inside a compound statement that run with it: not those inside functions and classes."""
    found, waiting = [], list(ast.iter_child_nodes(node))
    while waiting:
        inner = waiting.pop()
        found.append(inner)
        if isinstance(inner, ast.If) and is_type_checking(inner.test):
            waiting += inner.orelse
        elif not isinstance(inner, (*DEFINITIONS, ast.Lambda)):
            waiting += ast.iter_child_nodes(inner)
    return found


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_main_guard(test: ast.expr) -> bool:
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    sides = [test.left, *test.comparators]
    names = [each.id for each in sides if isinstance(each, ast.Name)]
    return names == ["__name__"] and any(isinstance(each, ast.Constant) and each.value == "__main__" for each in sides)


def _strip_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, *DEFINITIONS)) and node.body and _is_constant(node.body[0]):
            del node.body[0]
            if not node.body:
                node.body.append(ast.Pass())
