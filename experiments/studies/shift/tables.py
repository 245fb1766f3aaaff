"""Tables of the study of shifts: by case and estimator, by estimator over all shifts, robust programs, claims.

The gain of augmentation is judged by paired t tests over units, adjusted (Holm) over all rows of a table.
"""

import polars as pl

from admiss.estimates import Estimate
from admiss.study.report.comparisons import BETTER, UNDECIDED, WORSE
from admiss.study.report.sections import Section
from admiss.terminal.table import number
from experiments.paper.sections import claims_section
from experiments.studies.gains import adjusted, difference, estimated, mean, mean_of, verdict, with_interval
from experiments.studies.shift.claims import CLAIMS
from experiments.studies.shift.gains import GENERATED, KINDS, REAL, SHIFTS, WORDS, gain, scores
from experiments.studies.shift.grid import CASES, method_name
from experiments.studies.shift.instances import WITHOUT_SHIFT
from experiments.studies.shift.methods import ESTIMATORS, ROBUST

GROUPS = {"score": "R2", "worst_feature": "worst feature", "unseen": "unseen patterns"}
UNITS = {GENERATED: "draws", REAL: "sets"}
AUGMENTABLE = tuple(name for name in ESTIMATORS if name not in ROBUST)


def shift_sections(table: pl.DataFrame) -> list[Section]:
    """All tables of the study."""
    by_case = [_by_case(table, kind) for kind in KINDS]
    over_shifts = [_over_shifts(table, kind) for kind in KINDS]
    return [*by_case, *over_shifts, _robust(table), claims_section(CLAIMS, table)]


def _by_case(table: pl.DataFrame, kind: str) -> Section:
    rows: list[list[str]] = []
    gains: list[Estimate] = []
    for case in CASES:
        for name in AUGMENTABLE:
            found = estimated(gain(table, kind, case, name))
            if found is None:
                continue
            pairs = [
                number(mean(scores(table, kind, case, method_name(name, augmented), value)))
                for value in GROUPS
                for augmented in (False, True)
            ]
            rows.append([WORDS[case], name, str(found.units), *pairs[:2], *with_interval(found), *pairs[2:]])
            gains.append(found)
    for row, each, p in zip(rows, gains, adjusted(gains), strict=True):
        row.insert(8, verdict(each, p))
    groups = [f"{words}{part}" for words in list(GROUPS.values())[1:] for part in ("", ", augmented")]
    header = ["case", "estimator", UNITS[kind], "R2", "augmented", "gain", "low", "high", "verdict", *groups]
    text = (
        "R2 of all test rows, plain and trained on further deletions; the gain with its 95 % interval over "
        f"{UNITS[kind]}, and the verdict on it, adjusted for the {len(rows)} rows (Holm). Then R2 of the test rows "
        "that lack a feature, for the feature with the lowest, and of the rows whose pattern training has not seen."
    )
    words = ", ".join(f"{sum(row[8] == found for row in rows)} {found}" for found in (BETTER, UNDECIDED, WORSE))
    conclusion = f"Augmentation on {kind} data, {len(rows)} comparisons, adjusted: {words}." if rows else ""
    return Section(f"{kind.capitalize()} data by case", text, header, rows, conclusion)


def _over_shifts(table: pl.DataFrame, kind: str) -> Section:
    rows = []
    for name in AUGMENTABLE:
        for augmented in (False, True):
            method = method_name(name, augmented)
            shifted = {case: scores(table, kind, case, method) for case in SHIFTS}
            average = mean_of(list(shifted.values()))
            if not average:
                continue
            means = {case: mean(values) or 0.0 for case, values in shifted.items()}
            worst = min(means, key=means.__getitem__)
            without = [number(mean(scores(table, kind, case, method))) for case in WITHOUT_SHIFT]
            found = estimated(mean_of([gain(table, kind, case, name) for case in SHIFTS])) if augmented else None
            row = [
                method,
                str(len(average)),
                number(mean(average)),
                *with_interval(found),
                number(means[worst]),
                WORDS[worst],
            ]
            rows.append([*row, *without])
    text = (
        f"R2, mean over the {len(SHIFTS)} shifts; the gain of augmentation on that mean with its 95 % interval over "
        f"{UNITS[kind]}; the shift with the lowest mean R2; and R2 without shift."
    )
    header = ["method", UNITS[kind], "mean over shifts", "gain", "low", "high", "lowest", "shift"]
    return Section(
        f"{kind.capitalize()} data over all shifts", text, [*header, *(WORDS[case] for case in WITHOUT_SHIFT)], rows
    )


def _robust(table: pl.DataFrame) -> Section:
    rows = []
    for name in ROBUST:
        for words, cases in (
            *((WORDS[case], (case,)) for case in WITHOUT_SHIFT),
            ("mean over all shifts", SHIFTS),
        ):
            own = [scores(table, GENERATED, case, name) for case in cases]
            level = mean_of(own)
            if not level:
                continue
            row = [name, words, str(len(level)), number(mean(level))]
            for other in ("static", "affine intercept"):
                pairs = [
                    difference(each, scores(table, GENERATED, case, other))
                    for each, case in zip(own, cases, strict=True)
                ]
                row += with_interval(estimated(mean_of(pairs)))
            rows.append(row)
    text = (
        "Robust static models (see ``robust``), generated data: R2, and its difference to the static model and to the "
        "affine intercept, both plain, with 95 % intervals over draws."
    )
    others = [f"{part} {words}" for words in ("static", "affine intercept") for part in ("minus", "low", "high")]
    return Section("Robust programs", text, ["program", "case", "draws", "R2", *others], rows)
