"""The command line: errors are one sentence, and all text fits the terminal."""

import sys
from contextlib import suppress

import pytest

from admiss.cli.main import COMMANDS, main


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "admiss: error: the following arguments are required: COMMAND; see admiss --help"),
        (["compare", "--folds", "x"],
         "admiss compare: error: argument --folds: invalid int value: 'x'; see admiss compare --help"),
        (["compare", "--data", "no.csv", "--target", "y"], "admiss compare: error: There are no CSV files at no.csv."),
        (["datasets", "--no"], "admiss datasets: error: unrecognized arguments: --no; see admiss datasets --help"),
    ],
)  # fmt: skip
def test_errors_have_no_usage_lines(arguments, line, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", line + "\n")


def test_an_unknown_command_names_the_others(capsys):
    with pytest.raises(SystemExit):
        main(["comprae"])
    shown = capsys.readouterr().err
    assert shown.startswith("admiss: error: argument COMMAND: invalid choice: 'comprae'")
    assert "compare" in shown
    assert shown.count("\n") == 1


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS), ["study", "run"], ["study", "report"]])
def test_help_fits_the_terminal(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 78


@pytest.mark.parametrize("arguments", [["compare", "--data", "no.csv", "--target", "y"], ["study", "run", "no.py"]])
def test_errors_are_broken_between_words_on_a_terminal_and_one_line_elsewhere(arguments, capsys, monkeypatch):
    def error():
        with suppress(SystemExit):
            main(arguments)
        return capsys.readouterr().err

    monkeypatch.setenv("COLUMNS", "30")
    line = error()
    assert line.count("\n") == 1
    assert len(line) > 30
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("admiss.terminal.progress._Terminal.clear", lambda self: None)
    broken = error()
    assert broken.split() == line.split()
    assert max(map(len, broken.splitlines())) <= 30


def test_commands_print_on_standard_output(capsys):
    assert main(["versions"]) == 0
    shown = capsys.readouterr()
    assert "admiss" in shown.out
    assert shown.err == ""
