"""Progress: one line on a terminal, plain lines of a command elsewhere, and nothing for users of the library."""

import io
import subprocess
import sys
import time

import pytest

import admiss.terminal.progress as module
from admiss.terminal.progress import command_progress, counter, gap_counter, progress, waiting


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.0)
    monkeypatch.setattr(module, "SILENCE", 0.1)
    monkeypatch.setattr(module, "LINE_PAUSE", 0.2)


def work(pieces, seconds):
    for piece in progress(range(pieces), pieces, "working"):
        time.sleep(seconds)
        yield piece


def test_users_of_the_library_see_nothing_elsewhere_than_on_a_terminal(quick, capsys):
    assert list(work(5, 0.05)) == list(range(5))
    with gap_counter("searching") as report:
        report(2.0, 1.0)
        time.sleep(0.3)
    with command_progress("a command"):
        pass
    assert list(work(5, 0.05)) == list(range(5))
    assert capsys.readouterr() == ("", "")


def test_plain_lines_of_a_command(quick, capsys):
    with command_progress("admiss compare") as say:
        say("before")
        assert list(work(10, 0.1)) == list(range(10))
        say("after")
    out, err = capsys.readouterr()
    assert out == "before\nafter\n"
    lines = err.splitlines()
    assert 2 <= len(lines) <= 5  # after 0.1 s, 0.3 s, 0.6 s and 1.05 s
    assert all(line.startswith("working ") and line.endswith(" s]") for line in lines)
    assert "\r" not in err


def test_a_quick_command_shows_nothing(capsys):
    with command_progress("admiss compare") as say:
        say("done")
    assert capsys.readouterr() == ("done\n", "")


def test_pauses_grow(quick, capsys, monkeypatch):
    monkeypatch.setattr(module, "LINE_GROWTH", 1000.0)
    with command_progress("silent"):
        time.sleep(0.9)
    assert 1 <= len(capsys.readouterr().err.splitlines()) <= 2


def test_silent_work_is_shown_and_the_innermost_first(quick, capsys):
    with command_progress("admiss compare"):
        time.sleep(0.2)
        with counter("outer"), counter("inner") as report:
            report(1, 4)
            time.sleep(0.4)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("admiss compare [")
    assert lines[-1].startswith("inner 1/4 [")


def test_a_line_on_a_terminal_is_cleared(quick, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(work(3, 0.01)) == [0, 1, 2]
    shown = sys.stderr.getvalue()
    assert "working 2/3" in shown
    assert "\n" not in shown
    assert shown.rpartition("\r")[0].rpartition("\r")[2].isspace()


def test_work_that_cannot_report_is_shown_on_a_terminal(quick, monkeypatch, capsys):
    with waiting("compiling"):
        time.sleep(0.1)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with waiting("compiling"):
        time.sleep(0.3)
    assert sys.stderr.getvalue().replace(" ", "") == "\rcompiling\r\r"
    monkeypatch.setattr(module, "PAUSE", 60.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with waiting("compiling"):
        pass
    assert sys.stderr.getvalue() == ""


def test_a_command_on_a_terminal_shows_silent_work_and_prints_below(quick, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(module, "PAUSE", 10.0)
    with command_progress("admiss compare") as say:
        time.sleep(0.3)
        assert "admiss compare [" in sys.stderr.getvalue()
        say("a page")
        assert sys.stderr.getvalue().endswith(" \r")
    assert capsys.readouterr().out == "a page\n"


def test_long_messages_fit_the_terminal(quick, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with counter("a label that is much longer than the line") as report:
        time.sleep(0.01)
        report(1, 2)
    assert max(map(len, sys.stderr.getvalue().split("\r"))) == 19


def time_left(monkeypatch, ends, total, later=0.0):
    """What is said of the time left after items that ended at some seconds, so many seconds after the last one."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    pace = module._Pace()
    for done, end in enumerate(ends, start=1):
        now[0] = end
        pace.add(done)
    now[0] += later
    return pace.words(total)


def test_the_time_left_of_equal_work_is_said(monkeypatch):
    assert time_left(monkeypatch, [10.0, 21.0, 30.0], 6) == ", 30 s left"
    assert time_left(monkeypatch, [10.0, 21.0, 30.0], 6, later=12.0) == ", 18 s left"
    assert time_left(monkeypatch, [1.0, 2.0], 2) == ", 0 s left"


def test_nothing_is_said_of_a_time_left_that_is_not_known(monkeypatch):
    assert time_left(monkeypatch, [0.01], 9) == ""  # one path of nine says nothing of the others
    assert time_left(monkeypatch, [0.01, 39.0], 9) == ""
    assert time_left(monkeypatch, [1.0, 2.0], 3, later=30.0) == ""  # it has passed


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_closed_standard_error_does_not_matter(quick, monkeypatch):
    closed = io.StringIO()
    closed.close()
    with command_progress("admiss compare"):
        monkeypatch.setattr(sys, "stderr", closed)
        time.sleep(0.3)
        monkeypatch.undo()


def test_an_error_ends_the_lines(quick, capsys):
    with pytest.raises(ValueError, match="wrong"), command_progress("admiss compare"):
        raise ValueError("wrong")
    assert module._messages is None
    list(work(3, 0.1))
    assert capsys.readouterr().err == ""


def test_a_piped_command(tmp_path):
    program = (
        "import time, admiss.terminal.progress as p; p.SILENCE = 0.2\n"
        "with p.command_progress('counting') as say:\n"
        "    time.sleep(0.6); say('result')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "result\n"
    assert ended.stderr == "counting [0 s]\n"
