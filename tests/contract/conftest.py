"""Assertions in the modules of checks are explained as those in tests are."""

import pytest

pytest.register_assert_rewrite("tests.contract.missing", "tests.contract.estimator", "tests.contract.families")
