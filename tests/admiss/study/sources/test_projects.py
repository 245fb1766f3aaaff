"""Edits of little projects: the digest must change whenever the score does, and never by a title, a table or a comment.

The oracle is the score itself, computed before and after each edit.
"""

import pytest
from projects import HARMLESS, PROJECTS


def edited(texts, edit):
    name, old, new = edit
    assert old in texts[name], f"{old!r} is not in {name}"
    return {**texts, name: texts[name].replace(old, new)}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROJECTS)
def test_edits_that_change_the_score_change_the_digest_and_others_do_not(name, write, compute_here):
    project = PROJECTS[name]
    write(project.texts)
    first = compute_here()
    assert "score" in first.score, first.score
    for edit in project.changing:
        write(edited(project.texts, edit))
        after = compute_here()
        assert after.score != first.score, edit
        assert after.sources.digest != first.sources.digest, edit
        write(project.texts)
    for edit in [*project.harmless, *([] if project.whole else HARMLESS)]:
        write(edited(project.texts, edit))
        after = compute_here()
        assert after.score == first.score, edit
        assert after.sources.parts == first.sources.parts, edit
        write(project.texts)
    assert compute_here() == first
