"""Classes with a structure under penalties and strengths of any size: a fit, or one sentence."""

import numpy as np
import pytest

from admiss import AdaptiveClassifier, AdaptiveRegressor


@pytest.mark.parametrize("name", ["low_rank_affine", "fused_patterns"])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("lam", [1e9, 1e12, 1e100, 1e300])
def test_an_overwhelming_penalty_leaves_the_intercept(make_rows, name, l1_ratio, lam, capfd):
    X, y = make_rows()
    model = AdaptiveRegressor(name, lam=lam, l1_ratio=l1_ratio).fit(X, y)
    assert model.certificate_.relative_gap < 1e-6
    labels = y > np.median(y)
    classifier = AdaptiveClassifier(name, lam=lam, l1_ratio=l1_ratio).fit(X, labels)
    for pattern in np.unique(np.isnan(X), axis=0):
        assert np.abs(model.coef_at(pattern)).max() < 1e-6
        assert np.abs(classifier.coef_at(pattern)).max() < 1e-6
    if name == "low_rank_affine":  # fused patterns have intercepts of their own
        assert model.predict(X) == pytest.approx(np.full(len(y), y.mean()), abs=1e-5)
        assert classifier.predict_proba(X)[:, 1] == pytest.approx(np.full(len(y), labels.mean()), abs=1e-5)
    assert "panicked" not in capfd.readouterr().err


def test_a_large_penalty_on_few_columns_leaves_the_others(make_rows):
    """With corrections that are penalised away, low-rank weights are those of the affine intercept."""
    X, y = make_rows()
    settings = {"lam": 0.1, "l1_ratio": 0.5, "adaptive_penalty": 1e14}
    low_rank = AdaptiveRegressor("low_rank_affine", **settings).fit(X, y)
    static = AdaptiveRegressor("static", **settings).fit(X, y)
    assert low_rank.predict(X) == pytest.approx(static.predict(X), abs=1e-3)
