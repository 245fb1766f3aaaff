"""Edits of little projects: a cell must be stale whenever its score changes.

The oracle is the score itself, computed before and after each edit.
"""

import pytest
from projects import HARMLESS, PROJECTS, UNSEEN
from random_projects import random_project

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


def check(seed, precise, write, score_here, recorded):
    project = random_project(seed, precise)
    write(project.texts)
    first = score_here()
    assert "score" in first, first
    cell, parts = recorded()
    changed = 0
    for file, old, new in project.edits:
        assert project.texts[file].count(old) == 1
        write({file: project.texts[file].replace(old, new)})
        if score_here() != first:
            changed += 1
            assert Present().changes(parts, cell) == [f"{file} changed"], (seed, file, old)
        write({file: project.texts[file]})
    assert changed


@pytest.mark.slow
@pytest.mark.parametrize("precise", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_edits_of_random_projects_that_change_the_score_are_seen(seed, precise, write, score_here, recorded):
    check(seed, precise, write, score_here, recorded)


@pytest.mark.exhaustive
@pytest.mark.parametrize("precise", [True, False])
@pytest.mark.parametrize("seed", range(100, 500))
def test_edits_of_many_random_projects_that_change_the_score_are_seen(seed, precise, write, score_here, recorded):
    check(seed, precise, write, score_here, recorded)
