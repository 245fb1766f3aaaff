"""Every public estimator has every property that it promises: scikit-learn's checks, and our own with missing values.

``table`` lists the estimators; ``missing``, ``estimator``, ``relations`` and ``families`` have the properties.
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
from tests.properties import estimator, families, missing, relations  # noqa: F401
from tests.properties.entry import PROPERTIES, RELATIONS, make_rows, outputs
from tests.properties.table import TABLE

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
ARRAY_API = "check_array_api_input"  # skipped by scikit-learn unless its environment is set up for it
MORE_SEEDS = (1, 2, 3)


def scikit_learn_checks(entry):
    """Names, with their options, and scikit-learn's checks of an estimator."""
    for model, check in estimator_checks_generator(entry.model):
        options = "".join(f"-{name}={value}" for name, value in check.keywords.items())
        if check.func.__name__ != ARRAY_API:
            yield check.func.__name__, options, lambda check=check, model=model: check(model)


def properties_of(entry):
    return [name for name, (_, applies) in PROPERTIES.items() if applies(entry.model)]


def promised(names):
    """A parameter set for each entry and promised property."""
    found = []
    for entry in TABLE:
        text, marks = str(entry), [pytest.mark.slow] * entry.slow
        wanted = [name for name in names(entry) if name not in entry.not_promised]
        found += [pytest.param(entry, name, id=f"{text}-{name}", marks=marks) for name in wanted]
    return found


def checks_of_scikit_learn():
    """In the quick tier for one entry of each class: what is checked is mostly the same code."""
    seen = set()
    for entry in TABLE:
        first = type(entry.model) not in seen and not entry.slow
        seen |= {type(entry.model)} if first else set()
        text, marks = str(entry), [] if first else [pytest.mark.slow]
        for name, options, check in scikit_learn_checks(entry):
            if name not in entry.not_promised:
                yield pytest.param(check, id=f"{text}-{name}{options}", marks=marks)


@pytest.mark.parametrize("check", list(checks_of_scikit_learn()))
def test_scikit_learn(check):
    check()


@pytest.mark.parametrize(("entry", "name"), promised(properties_of))
def test_property(entry, name):
    PROPERTIES[name][0](entry)


@pytest.mark.slow
@pytest.mark.parametrize("seed", MORE_SEEDS)
@pytest.mark.parametrize(
    ("entry", "name"), promised(lambda entry: [name for name in properties_of(entry) if name in RELATIONS])
)
def test_relation_on_other_tables(entry, name, seed):
    PROPERTIES[name][0](entry, seed)


def test_exceptions_name_properties_and_give_reasons():
    for entry in TABLE:
        of_scikit_learn = {name for name in entry.not_promised if name.startswith("check_")}
        assert set(entry.not_promised) - of_scikit_learn <= set(properties_of(entry)), entry
        assert all(entry.not_promised.values())
        if of_scikit_learn:
            assert of_scikit_learn <= {name for name, _, _ in scikit_learn_checks(entry)}, entry


def test_every_public_estimator_is_in_the_table():
    """In the quick tier; partitioners and adaptivity classes as parts of an estimator, in any tier."""
    public = [getattr(module, name) for module in (admiss, admiss.joint, admiss.baselines) for name in module.__all__]
    estimators = {item for item in public if isinstance(item, type) and issubclass(item, BaseEstimator)}
    estimators.remove(admiss.TableEncoder)  # reads tables of anything: it has tests of its own
    assert len(estimators) == 25
    assert estimators == {type(entry.model) for entry in TABLE if not entry.slow}
    parts = {type(getattr(entry.model, "partitioner", None)).__name__ for entry in TABLE}
    parts |= {
        type(admiss.adaptivity.resolve_adaptivity(entry.model.adaptivity)).__name__
        for entry in TABLE
        if isinstance(entry.model, admiss.AdaptiveRegressor)
    }
    listed = {*admiss.adaptivity.__all__, *admiss.partition.__all__} - parts
    assert listed == {"Adaptivity", "Limits", "Partition", "Partitioner", "resolve_adaptivity"}


@pytest.mark.slow
def test_pickles_load_and_predict_without_cvxpy(tmp_path):
    fitted = []
    for entry in TABLE:
        if not entry.slow:
            X, y = make_rows(entry.model)
            fitted.append((model := entry.fit(X, y), X, outputs(model, X)))
    (tmp_path / "models.pickle").write_bytes(pickle.dumps(fitted))
    code = (
        "import pickle, sys\n"
        "sys.modules['cvxpy'] = None\n"
        "from tests.properties.entry import outputs\n"
        "for model, X, expected in pickle.load(open(sys.argv[1], 'rb')):\n"
        "    assert (outputs(model, X) == expected).all(), model\n"
        "    assert not hasattr(model, 'certificate_') or model.certificate_.status\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "models.pickle")], check=True)
