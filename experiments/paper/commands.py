"""The command ``compare-paper``: tables and claims of studies beside the paper's, as Markdown."""

import argparse

import polars as pl

from admiss.cli.study.commands import named_study
from admiss.study import EngineError
from admiss.study.report.presentation import Presentation
from admiss.study.report.sections import markdown
from admiss.study.run import RUNS, folders_of_runs, opened_store
from admiss.study.table import read_table
from experiments.scales import SCALES


def compare_studies(options: argparse.Namespace) -> str:
    """Compare one study, or all that were run."""
    if options.scale not in (None, *SCALES):
        raise EngineError(f"Unknown scale {options.scale!r}: choose one of {', '.join(SCALES)}.")
    if options.study is not None:
        compared = [named_study(options)]
    elif options.out is not None:
        raise EngineError("--out is the folder of one study: name the study too.")
    else:
        known = options.studies.known().values()
        compared = [each for each in known if folders_of_runs(each.study, options.scale)]
        if not compared:
            scale = "" if options.scale is None else f" at scale {options.scale}"
            raise EngineError(f"There are no runs{scale} in {RUNS}: run a study first, or name one and its folder.")
    texts = []
    for presentation in compared:
        with opened_store(presentation.study, options.scale, options.out) as store:
            texts.append(compare_paper(read_table(store, presentation.study), presentation))
    return "\n\n".join(texts)


def compare_paper(table: pl.DataFrame, presentation: Presentation) -> str:
    """All sections of a study as Markdown."""
    lines = [f"# {presentation.study.title}", ""]
    sections = presentation.sections(table)
    for section in sections:
        lines += [f"## {section.title}", "", section.text, ""]
        lines += [*markdown(section.header, section.rows), ""] if section.rows else []
        lines += [section.conclusion, ""] if section.conclusion else []
    if not sections:
        lines += ["The paper has no tables to compare this study with.", ""]
    return "\n".join(lines)
