import numpy as np
import pytest

from formulations.log_link import Gamma, Poisson, Tweedie

POWERS = [1.0 + 1e-9, 1.001, 1.05, 1.3, 1.5, 1.7, 1.99, 1.999, 2.0 - 1e-9]
LOSSES = [Poisson(), Gamma(), *map(Tweedie, POWERS)]


def rows(loss, rng, n=400):
    y = rng.gamma(1.0, size=n) * 10.0 ** rng.uniform(-5, 5, size=n)
    if loss.b > 0:
        y[: n // 4] = 0.0
    return y, rng.normal(size=n) * 4


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_conjugate_is_never_below_the_supremum(loss):
    y, z = rows(loss, np.random.default_rng(0))
    t = loss.derivative(y, z)
    t = np.where(y > 0, t * (1.0 - 2.0**-40), t)
    slack = 200 * 2.0**-53 * loss.conjugate_size(y, t)
    for around in (0.0, 1e-6, 1e-3, 1.0, 10.0):
        other = z + around * np.random.default_rng(1).normal(size=len(z))
        assert np.all(loss.conjugate(y, t) >= t * other - loss.value(y, other) - slack)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_conjugate_is_tight_and_has_the_stated_derivatives(loss):
    y, z = rows(loss, np.random.default_rng(2))
    keep = np.abs(z) < 3
    y, z = y[keep], z[keep]
    t = loss.derivative(y, z)
    gap = loss.value(y, z) + loss.conjugate(y, t) - t * z
    assert np.all(gap <= 1e-12 * (1.0 + loss.conjugate_size(y, t)))
    safe = loss.curvature(y, z) > 1e-6 * (1.0 + np.abs(t))
    np.testing.assert_allclose(loss.dual_slope(y, t)[safe], z[safe], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(loss.dual_curvature(y, t)[safe], loss.curvature(y, z)[safe], rtol=1e-8)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_smaller_multiple_of_the_dual_point_is_not_moved_further(loss):
    y, z = rows(loss, np.random.default_rng(3))
    t = 0.999 * loss.derivative(y, z)
    for s in (0.9, 0.5, 0.01):
        assert np.all(s * loss.dual_curvature(y, t) <= loss.dual_curvature(y, s * t) * (1 + 1e-9))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_exposure_is_an_offset(loss):
    rng = np.random.default_rng(4)
    y, z = rows(loss, rng)
    e = rng.uniform(0.1, 10, size=len(y))
    expected = loss.value(y, z + np.log(e))
    np.testing.assert_allclose(loss.weight_of(e) * loss.value(y / e, z), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("loss", [Poisson(), Gamma(), Tweedie(1.3)], ids=str)
def test_the_value_is_half_the_deviance(loss):
    from sklearn.metrics import mean_tweedie_deviance

    y, z = rows(loss, np.random.default_rng(5))
    expected = mean_tweedie_deviance(y, np.exp(z), power=loss.variance_power) / 2.0
    assert np.mean(loss.value(y, z)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("power", [1.0, 2.0, 0.0, 3.0, float("nan")])
def test_powers_outside_are_refused(power):
    with pytest.raises(ValueError, match="power between 1 and 2"):
        Tweedie(power)
