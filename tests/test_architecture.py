"""Imports go one way: between the three packages, and between folders and modules inside each of them."""

import ast
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYERS = ("formulations", "admiss", "experiments")
# What is fitted, proven and bounded, and what reads files, draws, generates data or runs studies around it.
CORE = {
    "patterns", "statistics", "adaptivity", "estimator", "linear", "partition", "finite", "joint", "laws", "stack",
    "intervals", "augmentation", "bounds", "baselines", "verification", "testing",
}  # fmt: skip
AROUND = {"streaming", "tables", "study", "compare", "cli", "report", "plots", "datasets"}


def modules() -> dict[str, Path]:
    found = {}
    for layer in LAYERS:
        for path in ROOT.joinpath(layer).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def imported(tree: ast.AST, known: dict[str, Path]) -> set[str]:
    """Modules of the project that a source imports anywhere, inside functions too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in inside}
    return found & set(known)


@cache
def edges() -> list[tuple[str, str]]:
    known = modules()
    return [
        (name, other)
        for name, path in known.items()
        for other in sorted(imported(ast.parse(path.read_text(encoding="utf-8")), known))
        if other != name
    ]


def children(importer: str, target: str) -> tuple[str, str, str]:
    """The package that holds both modules, and its two children (folders or modules) that the import joins."""
    a, b = importer.split("."), target.split(".")
    shared = 0
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    package = ".".join(a[:shared])
    first, second = (
        ".".join(parts[: shared + 1]) if len(parts) > shared else f"{package}.__init__" for parts in (a, b)
    )
    return package, first, second


def graphs() -> dict[str, dict[str, set[str]]]:
    """For every package the graph of imports between its folders and modules."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for importer, target in edges():
        package, first, second = children(importer, target)
        if package and not first.endswith("__init__"):  # a package may gather names of its modules
            found[package][first].add(second)
    return found


def cycle(graph: dict[str, set[str]]) -> str:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " is imported by ".join(error.args[1])
    return ""


def test_imports_inside_a_package_have_no_cycle() -> None:
    found = {package: cycle(graph) for package, graph in graphs().items()}
    assert len(found) > len(LAYERS)
    assert not any(found.values()), "\n".join(f"inside {package}: {text}" for package, text in found.items() if text)


def test_layers_import_downwards() -> None:
    upward = [
        f"{importer} imports {target}"
        for importer, target in edges()
        if LAYERS.index(target.split(".")[0]) > LAYERS.index(importer.split(".")[0])
    ]
    assert not upward, "\n".join(upward)


def part(module: str) -> str:
    """The folder or module of admiss that a module belongs to."""
    return module.split(".")[1] if module.startswith("admiss.") else ""


def test_the_core_imports_nothing_that_reads_files_draws_or_runs_studies() -> None:
    assert {part(name) for name in modules()} >= CORE | AROUND, "a folder was renamed: rename it here"
    outward = {(a, b) for a, b in edges() if part(a) in CORE and part(b) in AROUND}
    assert not outward, "\n".join(f"{a} imports {b}" for a, b in sorted(outward))


def test_sources_in_chunks_know_nothing_of_studies() -> None:
    assert [(a, b) for a, b in edges() if part(a) in {"streaming", "tables"} and part(b) in {"study", "compare"}] == []


def test_formulations_know_nothing_of_scikit_learn() -> None:
    users = [path.name for path in ROOT.joinpath("formulations").rglob("*.py") if "sklearn" in path.read_text()]
    assert users == []


def test_nothing_private_of_other_libraries_is_imported() -> None:
    private = []
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] not in LAYERS:
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                private += [f"{name} imports {part}" for part in names if part.startswith("_") and part != "__future__"]
    assert private == []


def test_a_cycle_is_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) in {
        "a is imported by c is imported by b is imported by a",
        "b is imported by a is imported by c is imported by b",
        "c is imported by b is imported by a is imported by c",
    }
    assert not cycle({"a": {"b", "c"}, "b": {"c"}})


def test_no_folder_is_a_drawer() -> None:
    folders = {part for name in modules() for part in name.split(".")}
    assert not folders & {"utils", "util", "common", "helpers", "misc"}
