"""Public names with their signatures, and the options of every command."""

import argparse
import inspect
from importlib import import_module
from types import ModuleType
from typing import Any

from admiss.cli.main import COMMANDS, build_parser

MODULES = (
    "admiss",
    "admiss.adaptivity",
    "admiss.baselines",
    "admiss.bounds",
    "admiss.datasets",
    "admiss.joint",
    "admiss.laws",
    "admiss.partition",
    "admiss.plots",
    "admiss.streaming",
    "admiss.study",
)


def public_names() -> dict[str, dict[str, list[str]]]:
    """For each module its public names, with the parameters of functions and classes and the members of classes."""
    found: dict[str, dict[str, list[str]]] = {}
    for module_name in MODULES:
        module = import_module(module_name)
        names = getattr(module, "__all__", None) or _defined_in(module)
        found[module_name] = {name: _described(getattr(module, name)) for name in sorted(names)}
    return found


def _defined_in(module: ModuleType) -> list[str]:
    own = {name: item for name, item in vars(module).items() if getattr(item, "__module__", "") == module.__name__}
    return [name for name in own if not name.startswith("_")]


def _described(item: Any) -> list[str]:
    if not callable(item):
        return []
    try:
        parameters = [_written(parameter) for parameter in inspect.signature(item).parameters.values()]
    except (ValueError, TypeError):  # built-in types have no signature
        parameters = []
    members = [f".{name}" for name in dir(item) if not name.startswith("_")] if inspect.isclass(item) else []
    return parameters + members


def _written(parameter: inspect.Parameter) -> str:
    default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
    return parameter.name + ("=.." if " at 0x" in default or len(default) > 60 else default)


def options() -> dict[str, list[str]]:
    """The options and arguments of every command and of what is below it."""
    found: dict[str, list[str]] = {}
    for command in COMMANDS:
        parser = build_parser([command])
        choices = next(action for action in parser._actions if action.dest == "command").choices
        _collect(command, choices[command], found)
    return found


def _collect(name: str, parser: argparse.ArgumentParser, found: dict[str, list[str]]) -> None:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    others = [action for action in parser._actions if action not in below]
    found[name] = sorted(" ".join(action.option_strings) or action.dest for action in others)
    for action in below:
        for part, child in action.choices.items():
            _collect(f"{name} {part}", child, found)
