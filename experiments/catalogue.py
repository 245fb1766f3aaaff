"""The studies by name, each bound to its tables, claims and figures."""

from dataclasses import replace
from typing import Any

import polars as pl

from admiss.report.figures import Drawing
from admiss.study.report.by_setting import time_drawing
from admiss.study.report.labels import Labels
from admiss.study.report.presentation import Catalogue, Presentation
from admiss.study.report.sections import Section
from experiments.paper.figures import paper_drawings
from experiments.paper.labels import LABELS, R2, R2_OR_AUC, authors_r2, by_signal_and_design, r2_words
from experiments.paper.real_design.claims import REAL_DESIGN_CLAIMS
from experiments.paper.real_design.tables import real_design_comparison, real_design_sections
from experiments.paper.sections import claims_section
from experiments.paper.synthetic.claims import SYNTHETIC_CLAIMS
from experiments.paper.synthetic.tables import synthetic_comparison, synthetic_sections
from experiments.studies.bounds.figures import bounds_drawing, paper_data_drawing
from experiments.studies.bounds.grid import STUDY as BOUNDS
from experiments.studies.bounds.tables import bounds_sections
from experiments.studies.classes.grid import STUDY as CLASSES
from experiments.studies.classes.tables import classes_sections
from experiments.studies.grids.grid import STUDY as GRIDS
from experiments.studies.grids.grid import grids_sections
from experiments.studies.indicators.figures import LABELS as INDICATOR_LABELS
from experiments.studies.indicators.figures import indicator_drawings
from experiments.studies.indicators.gains import by_draw
from experiments.studies.indicators.grid import STUDY as INDICATORS
from experiments.studies.indicators.tables import indicator_sections
from experiments.studies.intervals.figures import LABELS as INTERVAL_LABELS
from experiments.studies.intervals.figures import interval_drawings
from experiments.studies.intervals.grid import STUDY as INTERVALS
from experiments.studies.intervals.tables import interval_sections
from experiments.studies.partitions.figures import partition_drawings
from experiments.studies.partitions.grid import STUDY as PARTITIONS
from experiments.studies.partitions.tables import partition_sections
from experiments.studies.real_design.grid import STUDY as REAL_DESIGN
from experiments.studies.recommendation.grid import STUDY as RECOMMENDATION
from experiments.studies.recommendation.tables import recommendation_sections
from experiments.studies.shift.figures import LABELS as SHIFT_LABELS
from experiments.studies.shift.figures import shift_drawings
from experiments.studies.shift.grid import STUDY as SHIFT
from experiments.studies.shift.tables import shift_sections
from experiments.studies.stack.grid import STUDY as STACK
from experiments.studies.stack.tables import stack_sections
from experiments.studies.synthetic.grid import STUDY as SYNTHETIC

# Studies with the methods and instances of the paper.
OF_PAPER: dict[str, Any] = {
    "drawings": paper_drawings,
    "value": authors_r2,
    "refine": by_signal_and_design,
}


def _labels(score: str) -> Labels:
    return replace(LABELS, words={**LABELS.words, "score": score})


def _synthetic(table: pl.DataFrame) -> list[Section]:
    claims = claims_section(SYNTHETIC_CLAIMS, table)
    return [*synthetic_sections(table, SYNTHETIC.best), claims]


def _real_design(table: pl.DataFrame) -> list[Section]:
    claims = claims_section(REAL_DESIGN_CLAIMS, table, clipped=True)
    return [*real_design_sections(table, REAL_DESIGN.best), claims]


def _seconds(rows: pl.DataFrame) -> list[Drawing]:
    drawing = time_drawing(rows, LABELS)
    return [drawing] if drawing else []


def _bounds(rows: pl.DataFrame) -> list[Drawing]:
    drawings = (bounds_drawing(rows), paper_data_drawing(rows))
    return [*(drawing for drawing in drawings if drawing), *_seconds(rows)]


def _partitions(rows: pl.DataFrame) -> list[Drawing]:
    return [*partition_drawings(rows), *_seconds(rows)]


CATALOGUE: Catalogue = {
    presentation.study.name: presentation
    for presentation in (
        Presentation(SYNTHETIC, _synthetic, synthetic_comparison, labels=_labels(R2), score_words=r2_words, **OF_PAPER),
        Presentation(GRIDS, grids_sections, labels=_labels(R2), **OF_PAPER),
        Presentation(
            REAL_DESIGN,
            _real_design,
            real_design_comparison,
            labels=_labels(R2_OR_AUC),
            score_words=r2_words,
            **OF_PAPER,
        ),
        Presentation(PARTITIONS, partition_sections, drawings=_partitions, labels=_labels(R2), score_words=r2_words),
        Presentation(BOUNDS, bounds_sections, drawings=_bounds, labels=LABELS, compared=False),
        Presentation(RECOMMENDATION, recommendation_sections, labels=LABELS, compared=False, score_words=r2_words),
        Presentation(STACK, stack_sections, labels=_labels(R2_OR_AUC), score_words=r2_words, **OF_PAPER),
        Presentation(
            INDICATORS,
            indicator_sections,
            drawings=indicator_drawings,
            labels=INDICATOR_LABELS,
            refine=by_draw,
            score_words=r2_words,
        ),
        Presentation(
            CLASSES,
            classes_sections,
            drawings=_seconds,
            labels=replace(_labels(R2_OR_AUC), reference=CLASSES.reference),
            score_words=r2_words,
        ),
        Presentation(SHIFT, shift_sections, drawings=shift_drawings, labels=SHIFT_LABELS, score_words=r2_words),
        Presentation(INTERVALS, interval_sections, drawings=interval_drawings, labels=INTERVAL_LABELS, compared=False),
    )
}
