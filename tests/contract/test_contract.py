"""The contract of every public estimator: scikit-learn's checks, and our own with missing values.

``table`` lists the estimators; ``missing``, ``estimator`` and ``families`` have the checks.
"""

import pickle
import subprocess
import sys

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import estimator_checks_generator

import admiss
import admiss.adaptivity
import admiss.baselines
import admiss.joint
import admiss.partition
from tests.contract import estimator, families, missing  # noqa: F401
from tests.contract.contract import CHECKS, make_rows, outputs
from tests.contract.table import CASES

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
ARRAY_API = "check_array_api_input"  # skipped by scikit-learn unless its environment is set up for it


def scikit_learn_checks(case):
    """Names, with their options, and scikit-learn's checks of an estimator."""
    for model, check in estimator_checks_generator(case.model):
        options = "".join(f"-{name}={value}" for name, value in check.keywords.items())
        if check.func.__name__ != ARRAY_API:
            yield check.func.__name__, options, lambda check=check, model=model: check(model)


def all_checks(case):
    yield from scikit_learn_checks(case)
    for name, (check, applies) in CHECKS.items():
        if applies(case.model):
            yield name, "", lambda check=check: check(case)


def parameters(wanted):
    """One parameter set per estimator and wanted check."""
    return [
        pytest.param(check, id=f"{case}-{name}{options}", marks=[pytest.mark.slow] * case.slow)
        for case in CASES
        for name, options, check in all_checks(case)
        if wanted(case, name)
    ]


@pytest.mark.parametrize("check", parameters(lambda case, name: name not in case.not_promised | case.defects))
def test_contract(check):
    check()


def test_defects_are_declared_as_long_as_they_last():
    for case in CASES:
        for name, _, check in all_checks(case):
            if name in case.defects:
                with pytest.raises((Exception, pytest.fail.Exception)):
                    check()


def test_exceptions_name_checks_and_give_reasons():
    for case in CASES:
        declared = case.not_promised | case.defects
        assert set(declared) <= {name for name, _, _ in all_checks(case)}, case
        assert all(declared.values())


def test_every_public_estimator_is_under_contract():
    """In the quick tier; partitioners and adaptivity classes as parts of an estimator, in any tier."""
    public = [getattr(module, name) for module in (admiss, admiss.joint, admiss.baselines) for name in module.__all__]
    estimators = {item for item in public if isinstance(item, type) and issubclass(item, BaseEstimator)}
    assert len(estimators) == 23
    assert estimators == {type(case.model) for case in CASES if not case.slow}
    parts = {type(getattr(case.model, "partitioner", None)).__name__ for case in CASES}
    parts |= {
        type(admiss.adaptivity.resolve_adaptivity(case.model.adaptivity)).__name__
        for case in CASES
        if isinstance(case.model, admiss.AdaptiveRegressor)
    }
    listed = {*admiss.adaptivity.__all__, *admiss.partition.__all__} - parts
    assert listed == {"Adaptivity", "Limits", "Partition", "Partitioner", "resolve_adaptivity"}


@pytest.mark.slow
def test_pickles_load_and_predict_without_cvxpy(tmp_path):
    fitted = []
    for case in CASES:
        if not case.slow:
            X, y = make_rows(case.model)
            fitted.append((model := case.fit(X, y), X, outputs(model, X)))
    (tmp_path / "models.pickle").write_bytes(pickle.dumps(fitted))
    code = (
        "import pickle, sys\n"
        "sys.modules['cvxpy'] = None\n"
        "from tests.contract.contract import outputs\n"
        "for model, X, expected in pickle.load(open(sys.argv[1], 'rb')):\n"
        "    assert (outputs(model, X) == expected).all(), model\n"
        "    assert not hasattr(model, 'certificate_') or model.certificate_.status\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "models.pickle")], check=True)
