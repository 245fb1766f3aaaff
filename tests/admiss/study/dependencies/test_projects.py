"""Edits of little projects: a cell must be stale whenever its score changes.

The oracle is the score itself, computed before and after each edit.
"""

import pytest
from projects import HARMLESS, PROJECTS, UNSEEN

from admiss.study.stale import Present


def edited(texts, edit):
    name, old, new = edit
    assert old in texts[name], f"{old!r} is not in {name}"
    return {name: texts[name].replace(old, new)}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROJECTS)
def test_edits_that_change_the_score_are_seen(name, write, score_here, recorded):
    project = PROJECTS[name]
    write(project.texts)
    first = score_here()
    assert "score" in first, first
    cell, parts = recorded()
    assert Present().changes(parts, cell) == []
    for edit in project.changing:
        write(edited(project.texts, edit))
        assert score_here() != first, edit
        assert Present().changes(parts, cell) == [f"{edit[0]} changed"]
        write(project.texts)
    for edit in [*project.harmless, *HARMLESS, *UNSEEN]:
        write(edited(project.texts, edit))
        assert score_here() == first, edit
        changes = Present().changes(parts, cell)
        assert changes in ([], [f"{edit[0]} changed"])
        assert not (changes and edit in UNSEEN), edit
        write(project.texts)
    assert Present().changes(parts, cell) == []
