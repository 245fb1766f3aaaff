"""The examples of the page on writing your own class."""

import doctest
from pathlib import Path

import admiss.adaptivity

PAGE = Path(admiss.adaptivity.__file__).parent / "WRITE_YOUR_OWN.md"


def test_the_examples_run():
    results = doctest.testfile(str(PAGE), module_relative=False)
    assert results.attempted >= 30
    assert results.failed == 0
