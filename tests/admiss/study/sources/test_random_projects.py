"""Random projects: an edit that changes the score changes the digest; if all ways are precise, no other does."""

import pytest
from random_projects import random_project


def check(seed, precise, write, compute_here):
    project = random_project(seed, precise)
    write(project.texts)
    first = compute_here()
    assert "score" in first.score, first.score
    changed = 0
    for file, old, new in project.edits:
        assert project.texts[file].count(old) == 1
        write({file: project.texts[file].replace(old, new)})
        after = compute_here()
        write({file: project.texts[file]})
        same = after.sources.digest == first.sources.digest
        if after.score != first.score:
            changed += 1
            assert not same, (seed, file, old)
        elif precise:
            assert same, (seed, file, old)
    assert changed


@pytest.mark.slow
@pytest.mark.parametrize("precise", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_digests_follow_scores(seed, precise, write, compute_here):
    check(seed, precise, write, compute_here)


@pytest.mark.exhaustive
@pytest.mark.parametrize("precise", [True, False])
@pytest.mark.parametrize("seed", range(100, 500))
def test_digests_follow_scores_in_many_projects(seed, precise, write, compute_here):
    check(seed, precise, write, compute_here)
