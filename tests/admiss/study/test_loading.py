"""Studies in files and modules of users: found, or refused in a sentence."""

import sys

import pytest

from admiss.cli.study.files import load_study
from admiss.study import EngineError, Study

FILE = """
from sklearn.linear_model import Ridge
from admiss.study import Study
from neighbour import ROWS

{name} = Study("{study}", instances=[("a", ROWS)], methods={{"ridge": Ridge()}})
"""
NEIGHBOUR = "import numpy as np\nROWS = (np.eye(9), np.arange(9.0))\n"


@pytest.fixture(autouse=True)
def imports_as_before(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("loaded_", "neighbour", "package_of_")):
            del sys.modules[name]


def write(folder, file, text):
    folder.mkdir(parents=True, exist_ok=True)
    folder.joinpath("neighbour.py").write_text(NEIGHBOUR)
    folder.joinpath(file).write_text(text)
    return folder / file


def test_the_only_study_of_a_file_is_found_from_any_folder_with_its_neighbours(tmp_path, monkeypatch):
    path = write(tmp_path / "there", "loaded_one.py", FILE.format(name="STUDY", study="one"))
    tmp_path.joinpath("here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    found = load_study(str(path))
    assert found.study.name == "one"
    assert load_study("../there/loaded_one.py").study is found.study
    assert type(found.study) is Study


def test_one_of_several_studies_is_named(tmp_path):
    text = FILE.format(name="FIRST", study="first") + FILE.format(name="SECOND", study="second")
    path = write(tmp_path, "loaded_two.py", text)
    assert load_study(f"{path}:SECOND").study.name == "second"
    with pytest.raises(EngineError, match="has several studies: choose one, .*loaded_two.py:FIRST for instance"):
        load_study(str(path))
    with pytest.raises(EngineError, match="has no study called THIRD: it has FIRST, SECOND"):
        load_study(f"{path}:THIRD")


def test_a_presentation_stands_for_its_study(tmp_path):
    text = FILE.format(name="STUDY", study="shown") + (
        "from admiss.study.report.presentation import Presentation\n"
        "SHOWN = Presentation(STUDY, score_words=lambda rows: 'in my words')\n"
    )
    found = load_study(str(write(tmp_path, "loaded_shown.py", text)))
    assert found.score_words(None) == "in my words"


def test_a_file_of_a_package_and_a_module_are_the_same(tmp_path, monkeypatch):
    path = write(tmp_path / "package_of_mine", "inner.py", "from ._rows import STUDY\n")
    path.with_name("__init__.py").write_text("")
    rows = FILE.format(name="STUDY", study="inner").replace("from neighbour", "from package_of_mine.neighbour")
    path.with_name("_rows.py").write_text(rows)
    monkeypatch.chdir(tmp_path)
    by_file = load_study(str(path)).study
    assert load_study("package_of_mine.inner:STUDY").study is by_file
    assert load_study("package_of_mine.inner").study is by_file


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("loaded_none.py", "X = 1\n", "has no study: define one"),
        ("loaded_wrong.py", "\nimport nothing_at_all\n", "cannot be imported because of line 2 .ModuleNotFoundError"),
        ("loaded_exit.py", "import sys\nsys.exit(3)\n", "cannot be imported because of line 2 .SystemExit: 3"),
        ("loaded_syntax.py", "x = = 1\n", "cannot be imported because of line 1 .SyntaxError"),
        ("loaded_bad.py", FILE.format(name="S", study="a b"), "loaded_bad.py: The name of a study must consist of"),
        ("json.py", "X = 1\n", "json.py has the name of another module, json: rename the file"),
        ("not-a-name.py", "X = 1\n", "not-a-name.py cannot be imported under this name"),
    ],
)
def test_files_without_a_study_are_refused_in_one_sentence(tmp_path, file, text, sentence):
    path = write(tmp_path, file, text)
    with pytest.raises(EngineError, match=sentence) as error:
        load_study(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("place", ["loaded_absent.py", "absent.module:STUDY", "nothing", "folder/nothing"])
def test_what_does_not_exist_is_refused_in_one_sentence(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EngineError, match="There is no file|is not a Python file"):
        load_study(place)
