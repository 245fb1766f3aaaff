"""The definitions that a function or class can reach, by the import graph at the granularity of top-level definitions.

From a definition one reaches every definition of its module that it names, and through imports, also those inside
functions and those of packages that re-export, the definitions of other local modules. Files beside a module that its
reached statements name, by a constant text, count too. A name that cannot be resolved
inside a local module, a module that is passed around, and a module with ``__getattr__`` count as a whole.

Every module that is executed on the way, with the packages that hold it and all that it imports, contributes its
effects (:mod:`admiss.study.sources.statements`) and what these reach. An imported name that its module never uses is
imported for effects: a local module counts as a whole then, an installed one by its version.
"""

import ast
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from admiss.study.sources.library import Library
from admiss.study.sources.places import is_followed
from admiss.study.sources.references import Import, References
from admiss.study.sources.statements import ModuleSource, Statement, text_hash

# Names and modules of the engine that describe a study, identify its cells or show them: they compute no number.
DESCRIBING = {"Study", "Plan", "Product", "Best", "Presentation", "Catalogue"}
SHOWING = ("admiss.study.report", "admiss.study.sources", "admiss.study.recipe")
ENGINE = "admiss.study"
# Attributes that every module has.
OF_EVERY_MODULE = {"__name__", "__file__", "__doc__", "__path__", "__package__", "__spec__", "__loader__"}
Definition = tuple[str, str]


class Reach:
    """What some roots reach.

    Attributes
    ----------
    parts : dict
        Hash of the text by ``file: name`` of the definitions, in a fixed order.
    installed : set of str
        Names of installed modules.
    own : bool
        Whether modules of admiss that are not followed, or of formulations, are reached.
    """

    def __init__(self, library: Library, roots: Iterable[Definition], homes: dict[str, str]) -> None:
        self.library = library
        self.homes = homes
        self.installed: set[str] = set()
        self.own = False
        self._texts: defaultdict[str, list[str]] = defaultdict(list)
        self._hashes: dict[str, str] = {}
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        self._seen: set[tuple[str, ...]] = set()
        self._waiting: list[tuple[str, ModuleSource, Statement]] = []
        for module, name in sorted(roots):
            self._take(module, name, ())
        while self._waiting:
            part, source, statement = self._waiting.pop()
            self._texts[part].append(statement.text)
            self._names[source.name] |= statement.references.texts
            self._follow(source, statement.references)
        for module, names in self._names.items():
            self._count_files(module, names)

    @property
    def parts(self) -> dict[str, str]:
        found = {part: text_hash("\n".join(sorted(texts))) for part, texts in self._texts.items()}
        return dict(sorted({**found, **self._hashes}.items()))

    def _first(self, *step: str) -> bool:
        """Whether a step is made for the first time."""
        if step in self._seen:
            return False
        self._seen.add(step)
        return True

    def _follow(self, source: ModuleSource, references: References) -> None:
        inside = defaultdict(list)
        for each in references.imports:
            inside[each.bound].append(each)
            self._execute(each.loads)
            self._submodule(each)
        for chain in references.chains:
            self._name(source, chain, inside.get(chain[0], []))
        for name in references.modules:
            self._whole(name)
        if references.whole:
            self._whole(source.name)
        if references.package and not is_followed(source.name):
            for name in self.library.neighbours(source.name):
                self._whole(name)

    def _name(self, source: ModuleSource, chain: tuple[str, ...], inside: Iterable[Import] = ()) -> None:
        """Follow a dotted name that occurs in a module."""
        head, rest = chain[0], chain[1:]
        for each in [*inside, *source.imports.get(head, ())]:
            self._import(each, rest)
        if head in source.definitions:
            self._define(source, head)
        for star in source.imports.get("*", ()):
            self._from_star(star.module, head, rest)

    def _import(self, each: Import, rest: tuple[str, ...]) -> None:
        if each.attribute is None:
            self._module(each.module, rest)
        else:
            self._take(each.module, each.attribute, rest)

    def _define(self, source: ModuleSource, name: str) -> None:
        if self._first("define", source.name, name):
            self._execute(source.name)
            for statement in source.definitions[name]:
                self._waiting.append((f"{source.file_name}: {name}", source, statement))

    def _from_star(self, module: str, name: str, rest: tuple[str, ...]) -> None:
        """Follow a name that may come from a module whose names are all imported."""
        source = self._source(module)
        if source is None:
            self._module(module, (name,))
        elif self._first("star", module, name, *rest) and self._has(source, name):
            self._take(module, name, rest)
            if "__all__" in source.definitions:
                self._define(source, "__all__")

    def _has(self, source: ModuleSource, name: str, above: tuple[str, ...] = ()) -> bool:
        if name in source.definitions or name in source.imports or "__getattr__" in source.definitions:
            return True
        stars = [self._source(star.module) for star in source.imports.get("*", ()) if star.module not in above]
        return any(star is None or self._has(star, name, (*above, source.name)) for star in stars)

    def _take(self, module: str, name: str, rest: tuple[str, ...]) -> None:
        """Follow ``module.name.rest``, where the name is a definition, a re-export or a submodule."""
        if not self._first("take", module, name, *rest):
            return
        if module == ENGINE and name in self.homes:
            module = self.homes[name]
        if module.startswith(ENGINE) and name in DESCRIBING:
            return
        if self.library.place(module).kind in ("installed", "standard"):
            self._module(module, (name, *rest))
            return
        source = self._source(module)
        inner = f"{module}.{name}"
        if source is not None and (name in source.definitions or name in source.imports):
            self._execute(module)
            self._name(source, (name, *rest))
            if rest and source.is_package and self.library.place(inner).kind == "local":
                self._module(inner, rest)  # if the submodule has taken the name
        elif self.library.place(module).folders is not None and self.library.place(inner).kind != "absent":
            self._module(inner, rest)
        elif source is None:
            self._module(module, (name, *rest))
        elif name not in OF_EVERY_MODULE:
            stars = source.imports.get("*", ())
            for star in stars:
                self._from_star(star.module, name, rest)
            if not stars or "__getattr__" in source.definitions:
                self._whole(module)

    def _module(self, name: str, rest: tuple[str, ...]) -> None:
        """Follow ``name.rest``, where the name is a module; without rest the module is passed around."""
        place = self.library.place(name)
        if place.kind == "installed":
            self.installed.add(name)
        elif place.kind == "own" or (name == ENGINE and not rest):
            self._own(name, rest)
        elif place.kind == "absent":
            self._hashes[f"module {name}"] = "absent"
        elif place.kind == "local":
            self._execute(name)
            if rest:
                if self._source(name) is not None or place.folders is not None:
                    self._take(name, rest[0], rest[1:])
            else:
                self._whole(name)

    def _own(self, name: str, rest: tuple[str, ...]) -> None:
        """Follow a module of admiss: ``import admiss`` may stand for the part of it that is followed."""
        inner = f"{name}.{rest[0]}" if rest else ""
        if inner and self.library.place(inner).kind == "local":
            self._module(inner, rest[1:])
        else:
            self.own = True

    def _source(self, name: str) -> ModuleSource | None:
        if self.library.place(name).kind != "local" or name.startswith(SHOWING):
            return None
        return self.library.module(name)

    def _execute(self, name: str) -> None:
        """Count the effects of a local module, of the packages that hold it, and of all that it imports."""
        if not self._first("execute", name) or self.library.place(name).kind != "local" or name.startswith(ENGINE):
            return
        if "." in name:
            self._execute(name.rpartition(".")[0])
        source = self._source(name)
        if source is None:
            self._count_bytes(name)
            return
        for statement in source.effects:
            self._waiting.append((f"{source.file_name}: top-level statements", source, statement))
        for bound, imports in source.imports.items():
            for each in imports:
                self._execute(each.loads)
                self._submodule(each)
                if bound != "*" and not source.is_package and bound not in source.mentioned:
                    self._unused(each)
        for name, statements in source.definitions.items():
            if any(self._registers(source, each.node) for each in statements if isinstance(each.node, ast.ClassDef)):
                self._define(source, name)

    def _submodule(self, each: Import) -> None:
        """Execute the submodule that ``from package import submodule`` names."""
        if each.attribute is None or self.library.place(each.module).folders is None:
            return
        source = self._source(each.module)
        if source is None or each.attribute not in source.definitions:
            self._execute(f"{each.module}.{each.attribute}")

    def _unused(self, each: Import) -> None:
        """Follow an import for effects."""
        inner = f"{each.module}.{each.attribute}"
        is_package = self.library.place(each.module).folders is not None
        submodule = each.attribute is not None and is_package and self.library.place(inner).kind == "local"
        name = inner if submodule else each.loads
        if self.library.place(name).kind == "local":
            self._whole(name)
        else:
            self._module(name, ())

    def _registers(self, source: ModuleSource, node: ast.ClassDef) -> bool:
        """Whether a local base of a class hears of its subclasses."""
        bases = self._bases(source, node)
        return any("__init_subclass__" in each.text or getattr(each.node, "keywords", None) for each in bases)

    def _bases(self, source: ModuleSource, node: ast.ClassDef, depth: int = 0) -> Iterator[Statement]:
        for base in node.bases:
            chain = ast.unparse(base).partition("[")[0].split(".")
            for holder, name in self._definers(source.name, chain, 0):
                for statement in holder.definitions.get(name, ()):
                    yield statement
                    if isinstance(statement.node, ast.ClassDef) and depth < 20:
                        yield from self._bases(holder, statement.node, depth + 1)

    def _definers(self, module: str, chain: list[str], depth: int) -> Iterator[tuple[ModuleSource, str]]:
        """The modules in which a dotted name is defined."""
        source = self._source(module)
        if source is None or depth > 20 or not chain:
            return
        if chain[0] in source.definitions:
            yield source, chain[0]
        for each in source.imports.get(chain[0], ()):
            if each.attribute is None:
                target, rest = each.module, chain[1:]
                while len(rest) > 1 and self.library.place(f"{target}.{rest[0]}").kind == "local":
                    target, rest = f"{target}.{rest[0]}", rest[1:]
                yield from self._definers(target, rest, depth + 1)
            else:
                yield from self._definers(each.module, [each.attribute, *chain[1:]], depth + 1)
                yield from self._definers(f"{each.module}.{each.attribute}", chain[1:], depth + 1)
        for star in source.imports.get("*", ()):
            yield from self._definers(star.module, chain, depth + 1)

    def _whole(self, name: str) -> None:
        """Count all statements of a local module, or the bytes of one that is not written in Python."""
        if not self._first("whole", name):
            return
        if self.library.place(name).kind != "local" or name == ENGINE:
            self._module(name, ("__name__",))
            return
        self._execute(name)
        source = self._source(name)
        if source is None:
            return
        for statement in source.statements:
            self._waiting.append((f"{source.file_name}: all of it", source, statement))
        for imports in source.imports.values():
            for each in imports:
                if each.bound != "*":
                    self._import(each, ("__name__",) if each.attribute is None else ())
                else:
                    self._whole(each.module)

    def _count_files(self, name: str, texts: set[str]) -> None:
        """Count the files in the folder of a local module that its reached statements name, or in a folder there."""
        place, source = self.library.place(name), self._source(name)
        if place.file is None or source is None or is_followed(name):
            return
        here = place.file.parent
        folders = [".", *(text for text in texts if here.joinpath(text).is_dir())]
        for text in texts:
            for folder in folders:
                path = here / folder / text
                if path.suffix not in ("", ".py") and path.is_file():
                    inside = posixpath.normpath(posixpath.join(posixpath.dirname(source.file_name), folder, text))
                    self._hashes[inside] = self.library.file_hash(path)

    def _count_bytes(self, name: str) -> None:
        file = self.library.place(name).file
        while file is not None and not file.is_file() and file != Path(file.anchor):
            file = file.parent  # inside an archive
        if file is not None and file.is_file() and file.suffix != ".py":
            self._hashes[f"{name.replace('.', '/')}{file.suffix}"] = self.library.file_hash(file)
