"""Writing a class of one's own: the contract finds what is broken, the template runs, the page is true."""

import ast
import copy
import doctest
import subprocess
import sys
from pathlib import Path

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

import admiss.adaptivity
from admiss.adaptivity import Adaptivity, Affine, AffineIntercept, FullyAdaptive, LowRankAffine, Polynomial, Static
from admiss.cli.main import main
from admiss.testing import CHECKS, adaptivity_checks, check_adaptivity, parametrize_with_checks
from admiss.testing.template import new_class_files

PAGE = Path(admiss.adaptivity.__file__).parent / "WRITE_YOUR_OWN.md"


class CountAdaptive(Adaptivity):
    degree = 0

    def basis(self, M):
        missing = M.sum(axis=1)
        return np.column_stack([np.ones(len(M)), missing, missing**2])


class SparseCount(CountAdaptive):
    def basis(self, M):
        return sp.csr_array(super().basis(M))


class LowRank(Affine):
    def structure(self, W):
        return (0.02 * cp.normNuc(W[1:, 1:]), []) if W.shape[1] > 1 else (0.0, [])


class NearPatterns(FullyAdaptive):
    """A model for each pattern, near the average one; no weight beyond 5."""

    def structure(self, W):
        average = cp.sum(W, axis=1, keepdims=True) / W.shape[1]
        return 0.1 * cp.sum_squares(W - average), [cp.abs(W[1:]) <= 5]


class ConditionalExpectation(AffineIntercept):
    """x_j where observed, else its regression on what is observed, under the covariance of mean-imputed rows."""

    def fit(self, X, M, sample_weight=None):
        fitted = super().fit(X, M)
        s = np.where(M, 0.0, (np.ones(len(X)) if sample_weight is None else sample_weight)[:, None])
        fitted.mean_ = (s * np.where(M, 0.0, X)).sum(axis=0) / s.sum(axis=0)
        Z = np.where(M, 0.0, X - fitted.mean_)
        s = np.ones(len(X)) if sample_weight is None else sample_weight
        fitted.covariance_ = (Z * s[:, None]).T @ Z / s.sum()
        return fitted

    def columns(self, X, M):
        Z = np.where(M, 0.0, X - self.mean_)
        for m in np.unique(M, axis=0):
            rows = (M == m).all(axis=1)
            regression = np.linalg.pinv(self.covariance_[np.ix_(~m, ~m)]) @ self.covariance_[np.ix_(~m, m)]
            Z[np.ix_(rows, m)] = Z[np.ix_(rows, ~m)] @ regression
        return np.hstack([self.basis(M.astype(float)), Z + self.mean_])


class Clustered(Adaptivity):
    """Learns a fitted scikit-learn object, a list and a dict: how near patterns are to those that are frequent."""

    def __init__(self, neighbours=3):
        self.neighbours = neighbours

    def fit(self, X, M, sample_weight=None):
        fitted = copy.copy(self)
        s = np.ones(len(M)) if sample_weight is None else sample_weight
        rows = s > 0  # a row without weight is no row
        distinct, code = np.unique(M[rows], axis=0, return_inverse=True)
        counts = np.bincount(code.ravel(), s[rows])
        frequent = distinct[counts >= np.median(counts)]
        fitted.tree_ = NearestNeighbors(n_neighbors=min(self.neighbours, len(frequent))).fit(frequent.astype(float))
        fitted.shares_ = [float(share) for share in np.sort(counts / counts.sum())]
        fitted.sizes_ = {"patterns": len(distinct), "frequent": len(frequent)}
        return fitted

    def basis(self, M):
        near = self.tree_.kneighbors(M)[0].mean(axis=1)
        return np.column_stack([np.ones(len(M)), near + self.shares_[-1] / self.sizes_["patterns"]])


class SumToOne(Affine):
    """A legal constraint on the weights where nothing is missing."""

    def structure(self, W):
        return 0.0, [cp.sum(W[1:, 0]) == 1]


class Dialled(Affine):
    """No structure where its strength is 0, and only there."""

    def __init__(self, strength=0.0):
        self.strength = strength

    def has_structure(self):
        return self.strength != 0

    def structure(self, W):
        return self.strength * cp.sum(cp.norm(W[1:], 2, axis=0)), []


SOUND = [
    Static(), AffineIntercept(), Affine(), Polynomial(2), FullyAdaptive(), CountAdaptive(), SparseCount(), LowRank(),
    NearPatterns(), ConditionalExpectation(), Clustered(), SumToOne(), Dialled(), Dialled(0.1), LowRankAffine(0.0),
]  # fmt: skip


@parametrize_with_checks(SOUND)
def test_sound_classes_keep_the_contract(check):
    check()


# ----- what is broken, under the name of the check that must find it


class Centred(CountAdaptive):
    """basis: depends on the other rows."""

    def basis(self, M):
        return super().basis(M) - M.mean()


class RowNumbers(CountAdaptive):
    """basis: depends on the place of the row."""

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), np.arange(len(M))])


class FlatBasis(CountAdaptive):
    """basis: one number a row."""

    def basis(self, M):
        return M.sum(axis=1)


class WrongMask(CountAdaptive):
    """mask: no row for the intercept."""

    def mask(self, d):
        return np.ones((d, 3), dtype=bool)


class WrongNames(CountAdaptive):
    """names: too few."""

    def names(self, feature_names):
        return ["1"]


class WrongCounts(CountAdaptive):
    """counts: rows of any kind."""

    def counts(self, patterns, weights):
        return np.full((patterns.shape[1] + 1, 3), weights.sum())


class LearnsInPlace(CountAdaptive):
    """fit: changes itself."""

    def fit(self, X, M):
        self.share_ = M.mean(axis=0)
        return copy.copy(self)


class Remembers(CountAdaptive):
    """fit: does not learn anew."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        if not hasattr(self, "share_"):
            fitted.share_ = M.mean(axis=0)
        return fitted


class Scribbles(CountAdaptive):
    """fit: writes into the rows."""

    def fit(self, X, M):
        X[M] = 0.0
        return copy.copy(self)


class Draws(CountAdaptive):
    """fit: random without a seed."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.direction_ = np.random.default_rng().normal(size=M.shape[1])
        return fitted


class Rounds(CountAdaptive):
    """parameters: not kept as they are given."""

    def __init__(self, power=2.5):
        self.power = int(power)


class LeaksNaN(AffineIntercept):
    """columns: NaN where missing."""

    def columns(self, X, M):
        return np.hstack([self.basis(M.astype(float)), X])


class ReadsHidden(AffineIntercept):
    """hidden_values: the sign of a NaN."""

    def columns(self, X, M):
        return np.hstack([self.basis(M.astype(float)), np.where(M, np.signbit(X), X)])


class Squares(AffineIntercept):
    """affine: not affine in x."""

    def columns(self, X, M):
        return np.hstack([self.basis(M.astype(float)), np.where(M, 0.0, X**2)])


class ImputesOne(AffineIntercept):
    """units: 1.0, in whatever units."""

    def basis(self, M):
        return super().basis(M) * np.array([1.0] + [0.0] * (len(self.monomials_) - 1))

    def columns(self, X, M):
        return np.hstack([self.basis(M.astype(float)), np.where(M, 1.0, X)])


class NotConvex(Affine):
    """structure: a penalty that is not convex."""

    def structure(self, W):
        return cp.sum(cp.sqrt(cp.abs(W))), []


class NoPair(Affine):
    """structure: no constraints."""

    def structure(self, W):
        return cp.sum_squares(W)


class KnownPatterns(CountAdaptive):
    """unseen_patterns: NaN where a number of missing features was not seen."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.most_ = M.sum(axis=1).max()
        return fitted

    def basis(self, M):
        phi = super().basis(M)
        phi[M.sum(axis=1) > self.most_] = np.nan
        return phi


class MissingOnly(Adaptivity):
    """complete_data: nothing is left of the features where nothing is missing."""

    def basis(self, M):
        return M.sum(axis=1, keepdims=True)


class NuclearNorm(Affine):
    """complete_data: W has a single column then, and its norm is not defined."""

    def structure(self, W):
        return 0.02 * cp.normNuc(W[1:, 1:]), []


class NoCells(CountAdaptive):
    """cells: says that its basis functions are cells."""

    cells = True


class UnweightedShare(Adaptivity):
    """weights: rows are counted, whatever their weight."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.share_ = M.mean(axis=0)
        return fitted

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), M @ self.share_ + 0.2])


class FirstRow(Adaptivity):
    """row_order: compares with the first training row."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.first_ = M[0]
        return fitted

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), (self.first_ == M).all(axis=1)])


class FirstFeature(Adaptivity):
    """permuted_features: one feature is not like the others."""

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), M[:, 0]])


class Hidden(Adaptivity):
    """basis: what is learned is kept elsewhere, and changes with the next fit."""

    learned = 0.0

    def fit(self, X, M, sample_weight=None):
        Hidden.learned = np.average(M.mean(axis=1), weights=sample_weight)
        return copy.copy(self)

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), np.exp(5 * self.learned * M.sum(axis=1))])


class ShareOfOthers(Adaptivity):
    """one_feature: a share of no features."""

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), M.sum(axis=1) / np.float64(M.shape[1] - 1)])


class Boasts(CountAdaptive):
    """bounds: linear weights are not among these."""

    degree = 1


class SeenCellsOnly(FullyAdaptive):
    """cells: an unseen pattern is in no cell, and has prediction 0."""

    def basis(self, M):
        return (M[:, None] == self.patterns_).all(2)


class ShrunkenIntercept(Affine):
    """shifted_target: a penalty on the intercept."""

    def structure(self, W):
        return 0.1 * cp.sum_squares(W), []


class NoneFeasible(Affine):
    """structure: constraints that contradict each other."""

    def structure(self, W):
        return 0.0, [cp.sum(W[1:]) <= 1, cp.sum(W[1:]) >= 2]


class OutsideOfTheMask(AffineIntercept):
    """structure: asks for a weight that the mask leaves out."""

    def structure(self, W):
        return 0.0, [W[1:, 1:] >= 1] if W.shape[1] > 1 else []


class NeverApplied(Affine):
    """structure: its penalty is not asked for."""

    def structure(self, W):
        return cp.sum_squares(W[1:]), []

    def has_structure(self):
        return False


class NeverHeld(NeverApplied):
    """structure: its constraints are not asked for."""

    def structure(self, W):
        return 0.0, [W[1:] >= 0]


class FeaturesFirst(AffineIntercept):
    """columns: those of the intercept come last."""

    def columns(self, X, M):
        return np.hstack([np.where(M, 0.0, X), self.basis(M.astype(float))])


class SwappedFeatures(AffineIntercept):
    """columns: two features have changed places."""

    def columns(self, X, M):
        return np.hstack([self.basis(M.astype(float)), np.where(M, 0.0, X)[:, ::-1]])


class Frame(CountAdaptive):
    """basis: a data frame."""

    def basis(self, M):
        return pd.DataFrame(super().basis(M))


class FourFeatures(Adaptivity):
    """one_feature: a weight for each of four features."""

    def basis(self, M):
        return np.column_stack([np.ones(len(M)), M @ np.array([1.0, 2.0, 3.0, 4.0])])


class Clipped(CountAdaptive):
    """parameters: kept as given only where they are small."""

    def __init__(self, k=2):
        self.k = min(k, 3)


class OddNames(CountAdaptive):
    """printing: as many names as basis functions for four features alone, none else."""

    def names(self, feature_names):
        if feature_names[0] != "a":
            raise KeyError(feature_names[0])
        return ["1", "one", "two"]


class KeepsLambda(CountAdaptive):
    """fit: what cannot be pickled."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.shift_ = lambda x: x + 1
        return fitted


class KeepsDictOfArrays(CountAdaptive):
    """fit: what has no == that is True or False."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.table_ = {"share": M.mean(axis=0)}
        return fitted


class DrawsInside(Adaptivity):
    """columns: random in an object that nothing looks into."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.generator_ = np.random.default_rng()
        return fitted

    def basis(self, M):
        slope = copy.deepcopy(self.generator_).normal()
        return np.column_stack([np.ones(len(M)), np.exp(slope * M.sum(axis=1))])


BROKEN = [
    SeenCellsOnly, ShrunkenIntercept, NoneFeasible, OutsideOfTheMask, NeverApplied, NeverHeld, FeaturesFirst,
    SwappedFeatures, Frame, FourFeatures, Clipped, OddNames, KeepsLambda, KeepsDictOfArrays, DrawsInside,
    Centred, RowNumbers, FlatBasis, WrongMask, WrongNames, WrongCounts, LearnsInPlace, Remembers, Scribbles,
    Draws, Rounds, LeaksNaN, ReadsHidden, Squares, ImputesOne, NotConvex, NoPair, KnownPatterns, MissingOnly,
    NuclearNorm, NoCells, UnweightedShare, FirstRow, FirstFeature, Hidden, ShareOfOthers, Boasts,
]  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_the_contract_names_what_is_broken(broken):
    expected = broken.__doc__.partition(":")[0]
    with pytest.raises(AssertionError) as failure:
        check_adaptivity(broken())
    message = str(failure.value)
    assert message.startswith(f"{broken.__name__} fails '{expected}': ")
    assert message.endswith(".")
    assert ". " not in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (SeenCellsOnly(), "7 of 16 patterns are in no cell"),
        (ShrunkenIntercept(), "keep structure away from row 0 of W, the intercept"),
        (NoneFeasible(), "no W satisfies the constraints of structure"),
        (NeverApplied(), "has_structure is False, but structure has a penalty or constraints"),
        (FeaturesFirst(), "row by row of the mask, the intercept first"),
        (SwappedFeatures(), "belongs to feature 0 and basis function 0, but it is in the units of feature 3"),
        (Frame(), "basis(M) is a DataFrame: give a numpy array of numbers, or a csr_array"),
        (FourFeatures(), "no number of features is fixed"),
        (Clipped(5), "the parameter k is not kept as it is given"),
        (KeepsLambda(), "cannot be pickled"),
        (NuclearNorm(), "without missing values the class can be fitted"),
    ],
)
def test_the_contract_says_what_to_do(broken, words):
    with pytest.raises(AssertionError) as failure:
        check_adaptivity(broken)
    assert words in str(failure.value)
    assert "tol_gap" not in str(failure.value)


def test_the_shift_of_a_target_is_seen_on_unseen_patterns():
    with pytest.raises(AssertionError, match="predictions for y \\+ 100"):
        dict(adaptivity_checks(SeenCellsOnly()))["shifted_target"]()


def test_folds_that_do_not_refit_are_found():
    with pytest.raises(AssertionError, match="Hidden fails 'folds': folds do not refit all that the class learns"):
        dict(adaptivity_checks(Hidden()))["folds"]()


def test_a_class_may_not_promise_everything():
    reason = {"permuted_features": "the first feature is the reference"}
    check_adaptivity(FirstFeature(), except_for=reason)
    left = [name for name, _ in adaptivity_checks(FirstFeature(), except_for=reason)]
    assert left == [name for name in CHECKS if name != "permuted_features"]
    with pytest.raises(ValueError, match="except_for names permuted, but the checks are parameters"):
        check_adaptivity(FirstFeature(), except_for={"permuted": "a reason"})
    with pytest.raises(ValueError, match="must give a reason"):
        check_adaptivity(FirstFeature(), except_for={"permuted_features": ""})
    with pytest.raises(TypeError, match=r"an object of it, Affine\(\)"):
        check_adaptivity(Affine)


def test_a_class_need_not_be_linear_at_patterns():
    class Sizes(AffineIntercept):
        def columns(self, X, M):
            return np.hstack([self.basis(M.astype(float)), np.where(M, 0.0, np.abs(X))])

    class Declared(Sizes):
        def linear_at_patterns(self):
            return False

    reason = {"complete_data": "signs are lost"}
    with pytest.raises(AssertionError, match="Sizes fails 'affine': .* or let linear_at_patterns say no"):
        check_adaptivity(Sizes(), except_for=reason)
    check_adaptivity(Declared(), except_for=reason)


def test_the_contract_leaves_random_numbers_and_warnings_alone():
    np.random.seed(3)
    state = np.random.get_state()[1].copy()
    check_adaptivity(CountAdaptive())
    np.testing.assert_array_equal(np.random.get_state()[1], state)


def test_the_contract_is_imported_without_pytest():
    code = "import sys, admiss.testing; print('pytest' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert found.stdout.strip() == "False", found.stderr


# ----- the template


def test_the_template_runs_as_it_is_written(tmp_path, capsys):
    assert main(["new-class", "MyOwnClass", "--folder", str(tmp_path / "ideas")]) == 0
    shown = capsys.readouterr().out
    assert [path.name for path in sorted((tmp_path / "ideas").iterdir())] == ["my_own_class.py", "test_my_own_class.py"]
    assert f"cd {tmp_path / 'ideas'} && python -m pytest test_my_own_class.py" in shown
    assert str(PAGE) in shown
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_own_class.py"],
        cwd=tmp_path / "ideas", capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    assert f"{len(CHECKS) + 2} passed" in ran.stdout


def test_the_docstring_of_the_template_has_its_order():
    text = new_class_files("MyOwnClass")["my_own_class.py"]
    heads = ["Definition", "p(F)", "What it can express", "Where it loses", "Reference"]
    places = [text.index(f"    {head}\n") for head in heads]
    assert places == sorted(places)


def test_the_template_is_typed():
    for text in new_class_files("MyOwnClass").values():
        functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
        assert functions
        for function in functions:
            assert function.returns is not None
            assert all(a.annotation is not None for a in function.args.args if a.arg != "self")


def test_nothing_is_overwritten_and_odd_names_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_mine.py").write_text("mine")
    (tmp_path / "file").write_text("")
    wrong = {
        "Mine": "Nothing is overwritten, and test_mine.py is there already: choose another name or --folder.",
        "My Class": "'My Class' cannot be the name of a class: use letters and digits without spaces",
        "2nd": "'2nd' cannot be the name of a class",
        "class": "'class' cannot be the name of a class",
        "": "'' cannot be the name of a class",
        "../Up": "'../Up' cannot be the name of a class",
        "Numpy": "numpy.py would take the place of the module numpy: choose another name than Numpy.",
        "Random": "random.py would take the place of the module random",
        "Conftest": "conftest.py would take the place of the module conftest",
        "Adaptivity": "Adaptivity is a name that admiss or the two files have already: choose another.",
        "Affine": "Affine is a name that",
        "AdaptiveStackRegressor": "AdaptiveStackRegressor is a name that",
        "Contract": "Contract is a name that",
        "Sequence": "Sequence is a name that",
        "compare_classes": "compare_classes is a name that",
        "Test": "pytest takes Test, which begins with Test, for a test: choose another name.",
        "TestedClass": "pytest takes TestedClass,",
    }
    for name, message in wrong.items():
        with pytest.raises(SystemExit) as stop:
            main(["new-class", name])
        assert stop.value.code == 2
        shown = capsys.readouterr().err
        assert message in shown
        assert shown.startswith("usage: admiss new-class ")
    for folder in ("file", "file/within", "file/within/it"):
        with pytest.raises(SystemExit):
            main(["new-class", "Mine", "--folder", folder])
        shown = capsys.readouterr().err
        assert f"error: --folder {folder} cannot be, since file is a file: name a folder." in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "test_mine.py"]
    assert (tmp_path / "test_mine.py").read_text() == "mine"


def test_help_suffices(capsys):
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


def test_the_page_is_true():
    results = doctest.testfile(str(PAGE), module_relative=False)
    assert results.attempted >= 30
    assert results.failed == 0
