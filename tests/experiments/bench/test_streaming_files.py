"""The benchmark of files larger than memory, on few rows."""

import pytest

from experiments.__main__ import main


@pytest.mark.slow
def test_report(tmp_path, capsys):
    options = ["--quick", "--out", str(tmp_path / "out"), "--scratch", str(tmp_path / "scratch")]
    assert main(["bench", "streaming-files", *options]) == 0
    report = capsys.readouterr().out
    for name in ("plain scan", "one pass", "affine intercept", "exact tree of depth 4", "SGDRegressor", "glum"):
        assert name in report
    assert not list((tmp_path / "scratch").iterdir())
