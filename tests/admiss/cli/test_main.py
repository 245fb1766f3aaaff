"""The command line: errors are one line."""

import pytest

from admiss.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "admiss: error: the following arguments are required: COMMAND; see admiss --help"),
        (["compare", "--folds", "x"],
         "admiss compare: error: argument --folds: invalid int value: 'x'; see admiss compare --help"),
        (["compare", "--data", "no.csv", "--target", "y"], "admiss compare: error: There is no file no.csv."),
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


def test_commands_print_on_standard_output(capsys):
    assert main(["versions"]) == 0
    shown = capsys.readouterr()
    assert "admiss" in shown.out
    assert shown.err == ""
