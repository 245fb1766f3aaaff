"""The study, the scale and the folder that the options of a command name."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from admiss.extras import optional_import
from admiss.study.store import FILE
from admiss.study.study import SCALES, EngineError, Study

if TYPE_CHECKING:  # needs polars
    from admiss.study.report.presentation import Catalogue, Presentation

RUNS = Path("runs")


def catalogue_of(options: argparse.Namespace) -> "Catalogue":
    """Load the studies of a command; their modules import most of the package, which takes seconds."""
    with optional_import("This command", "study"):
        catalogue: Catalogue = options.catalogue()
    return catalogue


def named_study(options: argparse.Namespace) -> "Presentation":
    """The study that is named, at a scale that exists."""
    catalogue = catalogue_of(options)
    if options.study not in catalogue:
        raise EngineError(f"Unknown study {options.study!r}: choose one of {', '.join(catalogue)}.")
    check_scale(options)
    return catalogue[options.study]


def check_scale(options: argparse.Namespace) -> None:
    """Refuse an unknown scale."""
    if options.scale not in (None, *SCALES):
        raise EngineError(f"Unknown scale {options.scale!r}: choose one of {', '.join(SCALES)}.")


def store_folder(options: argparse.Namespace, study: Study) -> Path:
    """The folder that is named, or the only one that exists."""
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
