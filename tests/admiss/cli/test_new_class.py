"""The command ``admiss new-class``: the files run as written, nothing is overwritten, odd names are refused."""

import sys
from pathlib import Path

import pytest

import admiss.adaptivity
from admiss.cli.main import main
from admiss.testing import CHECKS

PAGE = Path(admiss.adaptivity.__file__).parent / "WRITE_YOUR_OWN.md"


@pytest.mark.slow
def test_the_files_run_as_written(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "ideas"
    assert main(["new-class", "MyOwnClass", "--folder", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert [path.name for path in sorted(folder.iterdir())] == ["my_own_class.py", "test_my_own_class.py"]
    assert f"cd {folder} && python -m pytest test_my_own_class.py" in shown
    assert str(PAGE) in shown
    monkeypatch.setattr(sys, "path", sys.path.copy())
    # In this process: a new one would take long to import everything.
    options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(folder)]
    code = pytest.main([*options, str(folder / "test_my_own_class.py")])
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert f"{len(CHECKS) + 2} passed" in shown


def test_nothing_is_overwritten_and_odd_names_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_mine.py").write_text("mine")
    (tmp_path / "file").write_text("")
    wrong = {
        "Mine": "test_mine.py already exists and is not overwritten: choose another name or --folder.",
        "My Class": "'My Class' cannot be the name of a class: use letters and digits without spaces",
        "2nd": "'2nd' cannot be the name of a class",
        "class": "'class' cannot be the name of a class",
        "": "'' cannot be the name of a class",
        "../Up": "'../Up' cannot be the name of a class",
        "Numpy": "numpy.py would shadow the module numpy: choose another name than Numpy.",
        "Random": "random.py would shadow the module random",
        "Conftest": "conftest.py would shadow the module conftest",
        "Adaptivity": "Adaptivity is already a name in admiss or in the two files: choose another.",
        "Affine": "Affine is already a name",
        "AdaptiveStackRegressor": "AdaptiveStackRegressor is already a name",
        "Contract": "Contract is already a name",
        "Sequence": "Sequence is already a name",
        "compare_classes": "compare_classes is already a name",
        "Test": "pytest would collect Test as a test, as it begins with Test: choose another name.",
        "TestedClass": "pytest would collect TestedClass",
    }
    for name, message in wrong.items():
        with pytest.raises(SystemExit) as stop:
            main(["new-class", name])
        assert stop.value.code == 2
        shown = capsys.readouterr().err
        assert message in shown
        assert shown.startswith("admiss new-class: error: ")
    for folder in ("file", "file/within", "file/within/it"):
        with pytest.raises(SystemExit):
            main(["new-class", "Mine", "--folder", folder])
        shown = capsys.readouterr().err
        assert f"error: --folder {folder} cannot be created, since file is a file: name a folder." in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "test_mine.py"]
    assert (tmp_path / "test_mine.py").read_text() == "mine"


def test_help(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["new-class", "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    for words in (
        "NAME",
        "--folder DIR",
        "admiss new-class CountAdaptive",
        "python -m pytest test_count_adaptive.py",
        str(PAGE),
    ):
        assert words in shown
