"""What the options of a command name: a study, a scale, a folder; and modules that only some commands need."""

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

from admiss.study.errors import EngineError
from admiss.study.store import FILE
from admiss.study.study import SCALES, Study

RUNS = Path("runs")


def named_study(options: argparse.Namespace) -> Study:
    """The study that is named, at a scale that there is."""
    from experiments.catalogue import find_study

    try:
        study = find_study(options.study)
    except ValueError as error:
        raise EngineError(str(error)) from None
    check_scale(options)
    return study


def check_scale(options: argparse.Namespace) -> None:
    """Refuse a scale that there is not."""
    if options.scale not in (None, *SCALES):
        raise EngineError(f"Unknown scale {options.scale!r}: choose one of {', '.join(SCALES)}.")


def store_folder(options: argparse.Namespace, study: Study) -> Path:
    """The folder that is named, or the only one there is."""
    if options.out is not None:
        return Path(options.out)
    if options.scale is not None:
        return RUNS / f"{study.name}-{options.scale}"
    found = folders_of_runs(study)
    if not found:
        raise EngineError(f"There is no run of {study.name} in {RUNS}: run it first, or name its folder with --out.")
    if len(found) > 1:
        raise EngineError(f"There are several runs ({', '.join(map(str, found))}): choose one with --scale or --out.")
    return found[0]


def folders_of_runs(study: Study, scale: str | None = None) -> list[Path]:
    """The folders under ``runs`` that have a store of a study."""
    folders = [RUNS / f"{study.name}-{name}" for name in SCALES if scale in (None, name)]
    return [folder for folder in folders if folder.joinpath(FILE).exists()]


def needed_module(name: str) -> Any:
    """A module that needs more than running does."""
    try:
        return import_module(name)
    except ImportError as error:
        raise EngineError(f"This command needs {error.name or name}, which is not installed ({error}).") from error
