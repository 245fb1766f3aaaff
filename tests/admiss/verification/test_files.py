"""Certificates in files, tables of other kinds, searches, messages, the command line, and the speed of a proof."""

import json
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from admiss import (
    AdaptiveClassifier,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    FiniteClassifier,
    FiniteRegressor,
    FiniteRegressorCV,
    JointImputeRegressor,
    verify,
)
from admiss.adaptivity import Adaptivity
from admiss.cli.main import main
from admiss.datasets import make_synthetic
from admiss.extras import MissingPackageError
from admiss.partition import Greedy, OptimalTree, SplitAssignTree
from formulations.certificate import Certificate


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    made = make_synthetic(n=200, d=4, rank=3, n_active=3, random_state=0)
    return made.X_train, made.y_train


def test_a_file_is_verified_in_another_process(rows: Any, tmp_path: Path) -> None:
    model = FiniteRegressor(OptimalTree(2)).fit(*rows)
    model.certificate_.save(tmp_path / "proof.npz")
    np.savez(tmp_path / "rows.npz", X=rows[0], y=rows[1])
    code = (
        "import numpy, admiss; rows = numpy.load('rows.npz'); "
        "print(admiss.verify('proof.npz', rows['X'], rows['y']).verified)"
    )
    shown = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "True"


def test_damaged_and_foreign_files_are_refused(rows: Any, tmp_path: Path) -> None:
    model = FiniteRegressor(OptimalTree(2)).fit(*rows)
    path = tmp_path / "proof.npz"
    model.certificate_.save(path)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:  # one byte in the middle of an array, not in a header that nobody reads
        largest = max(archive.infolist(), key=lambda member: member.compress_size)
    at = largest.header_offset + len(largest.filename) + 60 + largest.compress_size // 2
    one_byte = content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :]
    for damaged in (content[:-200], content[: len(content) // 2], b"", b"text", one_byte):
        (tmp_path / "damaged.npz").write_bytes(damaged)
        with pytest.raises(ValueError, match="not a certificate written by Certificate.save, or it is damaged"):
            verify(tmp_path / "damaged.npz", *rows)
    certificate = model.certificate_
    for name in ("patterns", "leaf", "leaf_weights", "leaf_costs", "scale"):
        arrays = {key: value for key, value in certificate.evidence["arrays"].items() if key != name}
        replace(certificate, evidence={**certificate.evidence, "arrays": arrays}).save(path)
        with pytest.raises(ValueError, match="is damaged"):
            verify(path, *rows)
    np.savez(tmp_path / "other.npz", X=rows[0])
    with pytest.raises(ValueError, match="not a certificate"):
        verify(tmp_path / "other.npz", *rows)
    Certificate(1.0, 1.0, "optimal", "", "", 0.0, evidence={"kind": "other"}).save(tmp_path / "empty.npz")
    with pytest.raises(ValueError, match="not the certificate of a finite"):
        verify(tmp_path / "empty.npz", *rows)
    for missing in (tmp_path / "none.npz", tmp_path):
        with pytest.raises(ValueError, match="There is no file"):
            verify(missing, *rows)
    with pytest.raises(ValueError, match="give the fitted model"):
        verify(certificate, *rows)
    with pytest.raises(ValueError, match="Only the certificate_ of a model that was fitted to rows"):
        Certificate(1.0, 1.0, "optimal", "", "", 0.0).save(tmp_path / "bare.npz")


def test_settings_changed_in_a_file_are_refused(rows: Any, tmp_path: Path) -> None:
    model = FiniteRegressor(OptimalTree(2)).fit(*rows)
    evidence = model.certificate_.evidence
    changed = {**evidence, "program": {**evidence["program"], "ridge": 2.0}}
    replace(model.certificate_, evidence=changed).save(tmp_path / "proof.npz")
    assert "leaf 0 costs" in verify(tmp_path / "proof.npz", *rows).reason


def test_a_file_holds_no_pickle(rows: Any, tmp_path: Path) -> None:
    AdaptiveRegressor(lam=0.1).fit(*rows).certificate_.save(tmp_path / "proof.npz")
    with zipfile.ZipFile(tmp_path / "proof.npz") as archive:
        headers = [archive.read(name)[:128] for name in archive.namelist()]
    assert headers
    assert not any(b"'|O'" in header for header in headers)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_and_names(frame: Any, rows: Any) -> None:
    X = frame({name: rows[0][:, j] for j, name in enumerate("abcd")})
    model = FiniteRegressor(OptimalTree(2, split_features=["b", "d"])).fit(X, rows[1])
    assert verify(model, X, rows[1])
    assert verify(model, rows[0], rows[1])


def test_searches_are_verified_by_their_selected_model(rows: Any) -> None:
    for search in (
        FiniteRegressorCV(OptimalTree(), max_depths=[1, 2], ridges=[1.0], cv=3, random_state=0),
        AdaptiveRegressorCV("affine_intercept", n_lambdas=10, cv=3, random_state=0),
    ):
        assert verify(search.fit(*rows), *rows)


def test_rows_of_weight_zero_do_not_matter(rows: Any) -> None:
    X, y = rows
    s = np.where(np.arange(len(y)) % 5 == 0, 0.0, 1.5)
    for model in (FiniteRegressor(OptimalTree(2)), AdaptiveRegressor(lam=0.1)):
        model.fit(X, y, s)
        assert verify(model, X, y, s)
        assert verify(model, np.where(s[:, None] > 0, X, 7.0), y, s)
        assert not verify(model, X, y)


class CountAdaptive(Adaptivity):
    """Weights that depend on how many values are missing."""

    def basis(self, M: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(M)), M.sum(axis=1)])


def test_classes_of_users(rows: Any, tmp_path: Path) -> None:
    model = AdaptiveRegressor(CountAdaptive(), lam=0.1).fit(*rows)
    assert verify(model, *rows)
    model.certificate_.save(tmp_path / "proof.npz")
    assert "verify the model, not its file" in verify(tmp_path / "proof.npz", *rows).reason


def test_what_is_not_covered_is_said(rows: Any) -> None:
    X, y = rows
    structured = AdaptiveRegressor("low_rank_affine", lam=0.1).fit(X, y)
    assert "structure of LowRankAffine" in verify(structured, X, y).reason
    textbook = FiniteRegressor(SplitAssignTree(1, time_limit=20), loss="absolute", ridge=0.0, leaf_model="static")
    outcome = verify(textbook.fit(X[:60], y[:60]), X[:60], y[:60])
    assert not outcome
    assert "squared loss, not Absolute (nothing was found to be wrong)" in outcome.reason
    heuristic = FiniteClassifier(Greedy(2)).fit(X, y > 0)
    assert "no bound is stated" in verify(heuristic, X, y > 0).lines
    with pytest.raises(ValueError, match="has no certificate_"):
        verify(JointImputeRegressor(), X, y)
    with pytest.raises(ValueError, match="has no certificate_"):
        verify(FiniteRegressor(), X, y)


def test_without_python_flint_there_is_one_sentence(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("admiss.verification.")]:
        if name.rpartition(".")[2] not in ("check", "result"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "flint", None)
    model = FiniteRegressor().fit(*rows)
    with pytest.raises(MissingPackageError, match=r"Verification needs flint: run pip install 'admiss\[verify\]'."):
        verify(model, *rows)


def test_the_command_shows_what_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["compare", "--verify", "--rows", "200", "--folds", "0", "--max-depth", "2", "--methods"]
    assert main([*arguments, "greedy", "tree", "boxes"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("verified") == 2
    assert shown.count("cost only") == 2
    content = json.loads((tmp_path / "admiss-compare.json").read_text())
    for comparison in content["comparisons"]:
        verified = [row["verified"] for row in comparison["methods"]]
        assert verified[:3] == ["cost only", "yes", "yes"]
        assert set(verified[3:]) <= {"-"}  # references


def nearly_collinear(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """A leaf is nearly collinear inside one box, which costs much less than its Gram matrix tells."""
    rng = np.random.default_rng(0)
    a, b, z = rng.standard_normal((3, n))
    m2, m3 = rng.random((2, n)) < 0.5
    y = np.where(m2, z, 0.3 * a + b) + np.where(m3, 0.5, -0.5)
    columns = a, np.where(m2, a + 1e-5 * z, b), np.where(m2, np.nan, a), np.where(m3, np.nan, b)
    return 1e6 * np.column_stack(columns), y


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 1e-14, 1.0])
def test_a_nearly_collinear_leaf_is_not_overpriced(ridge: float, center: bool) -> None:
    X, y = nearly_collinear()
    options = {"leaf_model": "static", "ridge": ridge, "center": center, "scale": False}
    model = FiniteRegressor(OptimalTree(1), **options).fit(X, y)
    outcome = verify(model, X, y)
    assert outcome, str(outcome)
    assert outcome.optimum[1] < 96
    greedy = FiniteRegressor(OptimalTree(1, split_features=[3]), **options).fit(X, y)
    greedy.partitioner.split_features = None
    greedy.certificate_ = replace(greedy.certificate_, evidence=None)
    assert "above what is proven" in verify(greedy, X, y).reason


@pytest.mark.slow
@pytest.mark.parametrize("leaf_model", ["static", "affine_intercept"])
@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_ten_features_to_depth_four_take_seconds(leaf_model: str, ridge: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10_000, 10))
    y = X @ rng.standard_normal(10) + rng.standard_normal(10_000)
    X[rng.random(X.shape) < 0.4] = np.nan
    model = FiniteRegressor(OptimalTree(4), leaf_model=leaf_model, ridge=ridge).fit(X, y)
    start = time.process_time()
    outcome = verify(model, X, y)
    assert outcome, str(outcome)
    assert time.process_time() - start < 15


@pytest.mark.slow
@pytest.mark.parametrize(("lam", "l1_ratio"), [(0.0, 0.5), (10.0, 0.5), (10.0, 1.0)])
@pytest.mark.parametrize("classes", [False, True])
def test_a_hundred_columns_take_seconds(lam: float, l1_ratio: float, classes: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10_000, 10))
    y = X @ rng.standard_normal(10) + rng.standard_normal(10_000)
    X[rng.random(X.shape) < 0.4] = np.nan
    kind = AdaptiveClassifier if classes else AdaptiveRegressor
    model = kind("affine", lam=lam, l1_ratio=l1_ratio).fit(X, y > 0 if classes else y)
    start = time.process_time()
    outcome = verify(model, X, y > 0 if classes else y)
    assert outcome, str(outcome)
    assert time.process_time() - start < 60  # it takes 2 to 11, by machine


def test_scales_of_nearly_constant_features(rows: Any) -> None:
    X = rows[0].copy()
    for size in (0.0, 1e-13, 1e-12, 1e-11, 1e-9):
        X[:, 0] = np.where(np.isnan(X[:, 0]), np.nan, 3.0 + size * np.arange(len(X)))
        for model in (FiniteRegressor(OptimalTree(1), scale=True), AdaptiveRegressor(lam=0.1)):
            assert "standard deviation" not in verify(model.fit(X, rows[1]), X, rows[1]).reason


def test_a_bound_above_the_objective_or_a_negative_tolerance_is_rejected(rows):
    model = FiniteRegressor(OptimalTree(max_depth=2)).fit(*rows)
    right = model.certificate_
    lower = right.objective * (1 - 1e-9)
    for changes in ({"objective": lower}, {"objective": lower, "bound": 0.99 * lower}, {"tolerance": -1.0}):
        model.certificate_ = replace(right, **changes)
        assert not verify(model, *rows)
