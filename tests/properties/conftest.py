"""Assertions in the modules of properties are explained as those in tests are."""

import pytest

MODULES = ("missing", "estimator", "families", "relations")
pytest.register_assert_rewrite(*(f"tests.properties.{name}" for name in MODULES))
