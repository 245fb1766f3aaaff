"""The study of Theorem 1 measures what it says."""

import numpy as np
import pytest

from admiss import AdaptiveRegressor
from admiss.bounds.counts import all_patterns, class_name, read_class
from admiss.bounds.generalization import generalization_bound
from admiss.bounds.taylor import bias_pair, draw_truth, independent_law, parity_truth
from experiments import bounds
from experiments import bounds_population as populations
from experiments import bounds_records as measured


def truth_weights(weights, source):
    """A truth of shape (d, 2^d) as the weights of one function of a population."""
    W = np.zeros((weights.shape[1], len(weights) + 1, 1))
    W[:, 1:, 0] = weights.T
    return W * source.observed[:, :, None]


@pytest.mark.parametrize("law", populations.LAWS)
def test_laws_of_patterns(law):
    d = 4
    for place in populations.MAGNITUDES:
        source = populations.population(place, law, d)
        assert source.patterns.sum(axis=1) == pytest.approx(1)
        x = source.rows[:, 1:]
        assert x.mean(axis=0) == pytest.approx(0)
        assert np.abs(x).max() <= 1
        # what the bounds are told is the law of the patterns, all of it
        told = populations.law_of_patterns(law, d)
        if told.ndim == 1:
            joint = independent_law(told)
        else:
            joint = np.array([np.mean((told == m).all(axis=1)) for m in all_patterns(d)])
        assert source.patterns.mean(axis=0) == pytest.approx(joint)


@pytest.mark.parametrize("law", ["fifth", "self-masked", "drop-out"])
@pytest.mark.parametrize("adaptivity", ["static", "affine", ("polynomial", 2), "fully_adaptive"])
def test_fit_is_that_of_the_package(law, adaptivity):
    d = 3
    source = populations.population("box", law, d)
    rng = np.random.default_rng(0)
    z, places = populations.draw(3000, source, rng)
    y = rng.normal(size=(3000, 1)) + z.sum(axis=1, keepdims=True) ** 2
    columns = populations.class_map(read_class(adaptivity, d), d)
    fitted = populations.least_squares(columns, *populations.sample_moments(z, places, y, 2**d))
    X = np.where(all_patterns(d)[places] == 1, np.nan, z[:, 1:])
    model = AdaptiveRegressor(read_class(adaptivity, d), lam=0).fit(X, y[:, 0])
    assert np.einsum("ij,ij->i", z, fitted[places, :, 0]) == pytest.approx(model.predict(X), abs=1e-6)


def test_sample_is_of_its_population():
    source = populations.population("corners", "self-masked", 2)
    z, places = populations.draw(40_000, source, np.random.default_rng(1))
    share = np.bincount(places, minlength=4) / len(places)
    assert share == pytest.approx(source.patterns.mean(axis=0), abs=0.01)  # four standard errors
    gram, _ = populations.sample_moments(z, places, np.zeros((len(z), 1)), 4)
    assert gram / len(z) == pytest.approx(populations.population_gram(source), abs=0.02)
    # a large x_1 is missing, so that its observed mean is negative: (.5 (.2) - .5 (.8)) / .5
    observed = z[(places == 0) | (places == 2), 2]
    assert observed.mean() == pytest.approx(-0.6, abs=0.03)


@pytest.mark.parametrize("kind", measured.KINDS)
@pytest.mark.parametrize("law", ["half", "fifth", "unequal"])
def test_three_computations_of_the_bias_agree(kind, law):
    d = 4
    rates = populations.RATES[law](d)
    weights = draw_truth(kind, d, 1.0, random_state=2)
    source = populations.population("corners", law, d)
    W = truth_weights(weights, source)
    gram = populations.population_gram(source)
    by_transform = populations.order_biases(weights, rates, 1.0)
    for t in range(d):
        columns = populations.class_map(read_class(("polynomial", t), d), d)
        best = populations.least_squares(columns, gram, gram @ W)
        by_population = populations.squared_distance(source, best, W)[0]
        by_projection = bias_pair(weights, t, independent_law(rates))[0]
        assert by_population == pytest.approx(by_projection, abs=1e-10)
        assert by_transform[t] == pytest.approx(by_projection, abs=1e-10)


def test_excess_risk_against_drawn_rows():
    d = 3
    source = populations.population("box", "self-masked", d)
    W = truth_weights(parity_truth(d), source)
    rng = np.random.default_rng(3)
    other = 3 * rng.normal(size=W.shape) * source.observed[:, :, None]
    exact = populations.squared_distance(source, other, W, L=1.0)[0]
    z, places = populations.draw(100_000, source, rng)
    f, truth = (np.einsum("ij,ij->i", z, V[places, :, 0]) for V in (other, W))
    losses = (np.clip(f, -1, 1) - truth) ** 2
    assert losses.mean() == pytest.approx(exact, abs=4 * losses.std() / np.sqrt(len(losses)))
    assert np.abs(f).max() > 2  # truncation matters


@pytest.fixture(scope="module")
def cells():
    return [measured.cell(3, "corners", "half", half, measured.SIZES[half][:3], 3, 2) for half in measured.HALVES]


def test_needed_constant_makes_the_bound_tight(cells):
    records = [record for cell in cells for record in measured.read(cell)]
    tight = 0
    for record in records:
        c = record.needed("true")
        assert record.excess <= 4  # truncated
        assert record.biases["true"] <= record.biases["proved"] + 1e-9
        if c > 0:
            F = next(F for F in measured.classes(3) if class_name(read_class(F, 3)) == record.name)
            bound = generalization_bound(record.n, 3, F, record.sigma2, 1.0, c, bias=record.biases["true"])
            assert bound.total == pytest.approx(record.sigma2 + record.excess)
            tight += 1
            # with L = 10 the printed constant is 10 times too small where L^2 is the larger
            ratio = record.needed("true", 10.0, "paper") / record.needed("true", 10.0)
            assert ratio == pytest.approx(max(record.sigma2 * 100, 100) / max(record.sigma2 * 100, 10))
    assert tight > 20


def test_halves_share_nothing(cells):
    choose, check = cells
    assert not set(choose["sizes"]) & set(check["sizes"])
    assert not set(measured.SIZES["choose"]) & set(measured.SIZES["check"])
    assert choose["bias"]["static"] != check["bias"]["static"]


def test_failures_are_counted_on_the_other_half(cells):
    records = [record for cell in cells for record in measured.read(cell)]
    worst, failed, checked = measured.chosen_constant(records, "true")
    c = worst.needed("true")
    assert worst.half == "choose"
    assert all(record.needed("true") <= c for record in records if record.half == "choose")
    others = [record for record in records if record.half == "check"]
    assert checked == len(others)
    assert failed == [record for record in others if record.needed("true") > c]
    swapped = [measured.Record(**{**vars(r), "half": "check" if r.half == "choose" else "choose"}) for r in records]
    _, failed_when_swapped, _ = measured.chosen_constant(swapped, "true")
    assert bool(failed) != bool(failed_when_swapped)  # the largest c of all is in one of the halves


def test_noise_at_the_range_needs_the_largest_constant():
    # The largest c of the study is at sigma^2 = L^2, twice what the other variances need.
    records = list(measured.read(measured.cell(2, "corners", "fifth", "choose", (4,), 30, 3)))
    largest = {v: max(r.needed("true") for r in records if r.sigma2 == v) for v in measured.VARIANCES}
    assert max(largest, key=largest.get) == 1.0


def test_parities_exceed_the_printed_bias():
    row = measured.bias_cell(8, "half", 6)
    printed, proved = row["paper"][6], row["proved"][6]
    assert printed == pytest.approx(8**7 / 5040**2)
    assert max(truth[6] for truth in row["true"]["parity"]) == pytest.approx(0.5)
    assert all(truth[6] < printed for kind in ("gaussian", "signs") for truth in row["true"][kind])
    assert all(truth[t] <= row["proved"][t] for kind in measured.KINDS for truth in row["true"][kind] for t in range(7))
    assert proved == 1
    table = "\n".join(bounds._biases([row]))
    parities = sum(truth[6] > printed for truth in row["true"]["parity"])
    assert f"| 8 | 6 | 0 of 6 | 0 of 6 | {parities} of 6 | 0 | 0 |" in table


def test_quickly(tmp_path, capsys):
    text = bounds.run(tmp_path, quick=True)
    assert "one c for all" in text
    assert "above 8 x printed" in text
    assert (tmp_path / "quick-bounds.png").stat().st_size > 20_000
    assert "measuring" in capsys.readouterr().out
    assert bounds.run(tmp_path, quick=True) == text
    assert "measuring" not in capsys.readouterr().out
