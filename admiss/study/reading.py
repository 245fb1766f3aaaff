"""What is read from a store: its state as text, the page of a study, and files to keep."""

from pathlib import Path
from typing import TYPE_CHECKING

from admiss.atomic_write import check_outputs
from admiss.extras import optional_import
from admiss.study.plan import Plan
from admiss.study.run import failures, run_grid, study_files
from admiss.study.stale import stale_lines
from admiss.study.store import Store

if TYPE_CHECKING:  # needs polars
    from admiss.study.report.presentation import Presentation


def status_text(store: Store, study: Plan) -> str:
    """Count the cells of a store, and name what has changed since they were computed."""
    states = store.states()
    cells = {cell.key: cell for cell in run_grid(store, study)}
    known = [state for key, state in states.items() if key in cells]
    done = sum(state["status"] == "done" for state in known)
    lines = [
        f"{study.name} ({', '.join(store.scales())}) in {store.folder}",
        f"{done:,} done, {len(known) - done:,} failed, {len(cells) - len(known):,} pending, of {len(cells):,} cells",
        *failures(known),
        *stale_lines(list(cells.values()), states, store.dependencies()),
    ]
    if len(known) < len(states):
        lines.append(f"{len(states) - len(known):,} rows of cells that are no longer in the study, left out of tables")
    return "\n".join(lines)


def write_page(store: Store, presentation: "Presentation", path: Path | None) -> Path:
    """Write the page of a study, by default into the folder of the store, and return its path."""
    with optional_import("A report", "study"):
        from admiss.study.report.page import write_report
        from admiss.study.results import provenance
        from admiss.study.table import read_table
    study = presentation.study
    path = store.folder / "report.html" if path is None else path
    check_outputs([("--html", path)], study_files(store, study))
    return write_report(read_table(store, study), presentation, path, facts=provenance(store, study))


def write_files(store: Store, presentation: "Presentation", folder: Path) -> list[Path]:
    """Write tables and figures to be kept, and return their paths."""
    with optional_import("A table or figure", "study"):
        from admiss.study.results import provenance, write_results
        from admiss.study.table import read_table
    table, facts = read_table(store, presentation.study), provenance(store, presentation.study)
    words = {"versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items())}
    inputs = study_files(store, presentation.study)
    return write_results(table, presentation, folder, "\n".join(facts["command"]), words, inputs)
