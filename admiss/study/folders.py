"""Folders of runs: ``runs/NAME-SCALE`` below the current one, ``runs/NAME`` for a study with one scale."""

from pathlib import Path

from admiss.study.plan import EngineError, Plan
from admiss.study.store import FILE

RUNS = Path("runs")


def check_scale(study: Plan, scale: str | None) -> None:
    """Refuse an unknown scale; None stands for any."""
    if scale not in (None, *study.scales):
        raise EngineError(f"Unknown scale {scale!r} of {study.name}: choose one of {', '.join(study.scales)}.")


def folder_of(study: Plan, scale: str) -> Path:
    """The folder of a run at a scale, unless another is named."""
    return RUNS / (study.name if len(study.scales) == 1 else f"{study.name}-{scale}")


def folders_of_runs(study: Plan, scale: str | None = None) -> list[Path]:
    """The folders under ``runs`` that have a store of a study."""
    folders = [folder_of(study, name) for name in study.scales if scale in (None, name)]
    return [folder for folder in folders if folder.joinpath(FILE).exists()]


def store_folder(study: Plan, scale: str | None = None, folder: str | Path | None = None) -> Path:
    """The folder that is named, or the only one that exists."""
    check_scale(study, scale)
    if folder is not None:
        return Path(folder)
    if scale is not None:
        return folder_of(study, scale)
    found = folders_of_runs(study)
    if not found:
        raise EngineError(f"There is no run of {study.name} in {RUNS}: run it first, or name its folder with --out.")
    if len(found) > 1:
        raise EngineError(f"There are several runs ({', '.join(map(str, found))}): choose one with --scale or --out.")
    return found[0]
