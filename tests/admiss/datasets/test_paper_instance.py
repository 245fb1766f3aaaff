import hashlib
import math

import numpy as np
import pytest
from scipy import stats
from sklearn.tree import DecisionTreeRegressor

from admiss.datasets.paper.instances import _population, _rows_left, draw_target, paper_instance, paper_instances
from admiss.datasets.paper.julia_random import TAIL_START, JuliaRandom, _normal, ziggurat_tables

WORD = 2**64 - 1


# A second computation of the generator, in Python's integers.


def seeded(seed):
    digest = hashlib.sha256(seed.to_bytes(4, "little")).digest()
    return [int.from_bytes(digest[8 * k : 8 * k + 8], "little") for k in range(4)]


def word(s):
    total = (s[0] + s[3]) & WORD
    out = (((total << 23) | (total >> 41)) + s[0]) & WORD
    a, b, c, d = s
    c, d = c ^ a, d ^ b
    s[:] = [a ^ d, b ^ c, c ^ ((b << 17) & WORD), ((d << 45) | (d >> 19)) & WORD]
    return out


def words(s, size):
    if size < 8:
        return [word(s) for _ in range(size)]
    factors = [0x02011CE34BCE797F, 0x5A94851FB48A6E05, 0x3688CF5D48899FA7, 0x867B4BB4C42E5661]
    by_word = [[factor * word(s) & WORD for _ in range(8)] for factor in factors]
    lanes = [list(state) for state in zip(*by_word, strict=True)]
    full = [word(lane) for _ in range(size // 8) for lane in lanes]
    return full + [word(s) for _ in range(size % 8)]


def uniform(s):
    return math.ldexp(word(s) >> 11, -53)


def normals(s, size):
    return [normal(s, w) for w in words(s, size)] if size >= 7 else [normal(s, word(s)) for _ in range(size)]


def normal(s, w):
    inside, width, height = ziggurat_tables()
    bits = w >> 12
    position, strip = bits >> 1, bits >> 1 & 255
    x = position * float(width[strip]) * (-1) ** (bits & 1)
    if position < inside[strip]:
        return x
    if strip == 0:
        while True:
            beyond, height_drawn = -math.log(uniform(s)) / TAIL_START, -math.log(uniform(s))
            if 2 * height_drawn > beyond**2:
                return (TAIL_START + beyond) * (-1) ** (position >> 8 & 1)
    share = uniform(s)
    if share * float(height[strip - 1]) + (1 - share) * float(height[strip]) < math.exp(-x * x / 2):
        return x
    return normal(s, word(s))


def shuffled(s, size):
    order, mask = list(range(size)), (1 << (size - 1).bit_length()) - 1
    for i in range(size, 1, -1):
        mask = mask >> 1 if mask >> 1 == i else mask
        j = i
        while j >= i:
            j = (word(s) >> 12) & mask
        order[i - 1], order[j] = order[j], order[i - 1]
    return order


def test_documented_uniforms():
    assert JuliaRandom(1234).uniforms(2).tolist() == [0.32597672886359486, 0.5490511363155669]


@pytest.mark.parametrize("size", [1, 2, 6, 7, 8, 9, 16, 23, 4096, 5000])
def test_two_computations_of_the_draws_agree(size):
    rng, s = JuliaRandom(size), seeded(size)
    np.testing.assert_array_equal(rng.uniforms(size), [math.ldexp(w >> 11, -53) for w in words(s, size)])
    np.testing.assert_array_equal(rng.single_uniforms(size), [uniform(s) for _ in range(size)])
    np.testing.assert_allclose(rng.normals(size), normals(s, size), rtol=1e-15)
    np.testing.assert_array_equal(rng.shuffled(size), shuffled(s, size))
    # Both consumed the same number of words.
    assert rng.uniforms(1)[0] == uniform(s)


def test_short_arrays_are_single_draws_and_long_ones_are_not():
    one, other = JuliaRandom(5), JuliaRandom(5)
    np.testing.assert_array_equal(one.uniforms(7), other.single_uniforms(7))
    np.testing.assert_array_equal(one.normals(6), [other.normals(1)[0] for _ in range(6)])
    assert not np.isin(one.uniforms(8), other.single_uniforms(100)).any()


def test_seeds_of_more_than_one_word_and_bad_seeds():
    assert JuliaRandom(2**32).uniforms(1) != JuliaRandom(0).uniforms(1)
    with pytest.raises(ValueError, match="A seed must be"):
        JuliaRandom(-1)


def test_strips_have_one_area_and_the_tables_need_extended_precision():
    inside, width, height = ziggurat_tables()
    edges = width * 2.0**51
    area = edges[0] * height[-1]
    assert area == pytest.approx(
        TAIL_START * height[-1] + math.sqrt(2 * math.pi) * stats.norm.sf(TAIL_START), rel=1e-14
    )
    np.testing.assert_allclose(edges[2:] * (height[1:-1] - height[2:]), area, rtol=1e-11)
    # The top strip closes at f(0) = 1: that is what r was chosen for.
    assert edges[1] * (1 - height[1]) == pytest.approx(area, rel=1e-12)
    np.testing.assert_allclose(height[1:], np.exp(-(edges[1:] ** 2) / 2), rtol=1e-14)
    np.testing.assert_allclose(inside[2:] / 2.0**51, edges[1:-1] / edges[2:], rtol=1e-15)
    assert [hex(k) for k in inside[[0, 1, 2, 255]]] == ["0x7799ec012f7b2", "0x0", "0x6045f4c7de363", "0x78d2d25998e24"]
    assert hashlib.sha256(inside.astype("<i8").tobytes()).hexdigest()[:16] == "1bcc0be1b535db60"
    # The same recursion in double precision: 47 to 49 of the 256 entries are off, with the libraries at hand.
    x, f, wrong = TAIL_START, math.exp(-TAIL_START * TAIL_START / 2), 0
    for i in range(254, 0, -1):
        edge = math.sqrt(-2 * math.log(area / x + f))
        wrong += int(edge / x * 2.0**51) != inside[i + 1]
        x, f = edge, math.exp(-edge * edge / 2)
    assert 20 < wrong < 100


def test_normals_are_normal():
    x = JuliaRandom(1).normals(400_000)
    assert stats.kstest(x, "norm").pvalue > 1e-4
    # A share q lies beyond r, within five standard errors, and as many on either side.
    q = 2 * stats.norm.sf(TAIL_START)
    tail = x[np.abs(x) > TAIL_START]
    assert abs(len(tail) - q * len(x)) < 5 * math.sqrt(q * len(x))
    assert abs(np.sign(tail).sum()) < 5 * math.sqrt(len(tail))
    assert stats.kstest(stats.norm.sf(np.abs(tail)) / stats.norm.sf(TAIL_START), "uniform").pvalue > 1e-4


def test_the_ends_of_the_strips():
    tables = ziggurat_tables()
    inside, width = tables[:2]
    for strip in (0, 1, 100, 255):
        # The first position of a strip that needs a test; the last that needs none.
        first = int(inside[strip]) + (strip - int(inside[strip])) % 256
        for sign in (0, 1):
            state = JuliaRandom(3)._state
            if strip != 1:
                w = np.uint64(((first - 256) << 1 | sign) << 12)
                assert _normal(state, w, *tables) == (-1) ** sign * (first - 256) * width[strip]
                np.testing.assert_array_equal(state, JuliaRandom(3)._state)
            drawn = _normal(state, np.uint64((first << 1 | sign) << 12), *tables)
            assert not np.array_equal(state, JuliaRandom(3)._state)
            assert strip != 0 or abs(drawn) > TAIL_START


def test_orders_are_equally_likely():
    orders = ["".join(map(str, JuliaRandom(seed).shuffled(4))) for seed in range(4800)]
    _, counts = np.unique(orders, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-4


def test_the_first_replicates_are_those_of_the_authors():
    first, second = paper_instance(1000), paper_instance(1000, replicate=2)
    np.testing.assert_allclose(np.nanmean(first.X_train, axis=0)[:2], [-0.42866392, 1.02511876], atol=6e-9)
    np.testing.assert_allclose(np.nanmean(first.X_train, axis=0)[:3], [-0.429, 1.025, -1.037], atol=6e-4)
    np.testing.assert_allclose(np.nanmean(second.X_train, axis=0)[:2], [-0.379, 1.007], atol=6e-4)
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(first.X_train, first.y_train)
    assert tree.score(first.X_train, first.y_train) == pytest.approx(0.638083, abs=6e-7)
    # Their R2 on test rows is against the mean of the training rows.
    error = np.mean((first.y_test - tree.predict(first.X_test)) ** 2)
    assert 1 - error / np.mean((first.y_test - first.y_train.mean()) ** 2) == pytest.approx(0.494931, abs=6e-7)


@pytest.mark.parametrize(
    ("signal", "ceilings"),
    [("linear", [0.773, 0.799, 0.798, 0.790, 0.421]), ("nn", [0.774, 0.793, 0.779, 0.375, 0.660])],
)
def test_ceilings_of_the_five_signals_on_all_rows(signal, ceilings):
    for replicate, ceiling in enumerate(ceilings, start=1):
        f, noise = draw_target(_population(), signal, replicate)
        assert 1 - np.var(noise) / np.var(f + noise) == pytest.approx(ceiling, abs=5.1e-4)
        assert np.linalg.norm(noise) == pytest.approx(np.linalg.norm(f) / 2)
        # On 5,000 + n of these rows it is nearly the same, and this is the ceiling of an instance.
        data = paper_instance(40, signal=signal, replicate=replicate)
        assert data.ceiling == pytest.approx(ceiling, abs=0.03)
        y, g = np.append(data.y_train, data.y_test), np.append(data.signal_train, data.signal_test)
        assert data.ceiling == pytest.approx(1 - np.var(y - g) / np.var(y))


def test_the_matrix_has_rank_five_and_the_covariance_of_its_factor():
    X = _population()
    values = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    assert values[5] < 1e-5 < 1 < values[4]
    rng = JuliaRandom(565)
    B, mu = rng.normals(50).reshape(5, 10).T, rng.normals(10)
    # Entries of a sample covariance have standard error sqrt((S_ii S_jj + S_ij^2) / N).
    S = B @ B.T
    error = np.sqrt((np.outer(np.diag(S), np.diag(S)) + S**2) / len(X))
    assert (np.abs(np.cov(X.T) - S) < 5 * error).all()
    assert (np.abs(X.mean(axis=0) - mu) < 5 * np.sqrt(np.diag(S) / len(X))).all()


@pytest.mark.parametrize("mechanism", ["mcar", "censoring"])
def test_feature_four_is_missing_in_the_first_cell_only(mechanism):
    for p, replicate, data in paper_instances(200, mechanism):
        M = np.isnan(np.vstack([data.X_train, data.X_test]))
        full = np.vstack([data.X_full_train, data.X_full_test])
        first = (p, replicate) == (0.1, 1)
        expected = np.full(10, p)
        expected[3] = p if first else 0.0
        # In the first cell quantiles are those of 10,000 rows, of which 5,200 are retained.
        exact = mechanism == "censoring" and not first
        np.testing.assert_allclose(M.mean(axis=0), expected, atol=2e-4 if exact else 5 * np.sqrt(p * (1 - p) / 5200))
        np.testing.assert_array_equal(np.vstack([data.X_train, data.X_test])[~M], full[~M])
        if mechanism == "censoring":
            for m, x in zip(M.T, full.T, strict=True):
                assert not m.any() or x[m].min() > x[~m].max() or x[m].max() < x[~m].min()


def test_cells_of_one_n_permute_the_same_rows():
    rows = _rows_left(60, 1)
    assert len(np.unique(rows)) == 5060
    np.testing.assert_array_equal(np.sort(rows), np.sort(_rows_left(60, 79)))
    for _, _, data in paper_instances(60):
        assert np.vstack([data.X_full_train, data.X_full_test])[:, 0].sum() == pytest.approx(
            _population()[rows, 0].sum()
        )
    # Missingness by position is that of the second cell throughout, with more positions for a larger p.
    few = paper_instance(60, replicate=2, missing_fraction=0.2)
    many = paper_instance(60, replicate=2, missing_fraction=0.3)
    assert (np.isnan(few.X_test) <= np.isnan(many.X_test)).all()


def test_both_ways_to_an_instance_agree_and_what_is_shared_cannot_be_changed():
    for p, replicate, data in paper_instances(20, "censoring", "nn"):
        if (p, replicate) in {(0.1, 1), (0.4, 7), (0.8, 10)}:
            before = paper_instance(20, "censoring", "nn", p, replicate)
            for name in vars(data):
                np.testing.assert_array_equal(getattr(data, name), getattr(before, name))
            for name in ("X_train", "X_full_train", "y_train", "X_full_test", "signal_test"):
                getattr(data, name)[:] = 0.0
            after = paper_instance(20, "censoring", "nn", p, replicate)
            np.testing.assert_array_equal(after.X_full_train, before.X_full_train)
            np.testing.assert_array_equal(after.y_train, before.y_train)
    with pytest.raises(ValueError, match="read-only"):
        _population()[0, 0] = 0.0


@pytest.mark.parametrize(
    "bad",
    [
        {"n": 0}, {"n": 5001}, {"n": 20.5}, {"n": "20"}, {"mechanism": "mar"}, {"signal": "tree"},
        {"missing_fraction": 0.9}, {"missing_fraction": 0.15}, {"missing_fraction": "0.1"},
        {"replicate": 0}, {"replicate": 11}, {"replicate": 1.5},
    ],
)  # fmt: skip
def test_bad_arguments(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        paper_instance(**{"n": 20, **bad})


def test_bad_arguments_of_all_cells_before_the_first_is_asked_for():
    with pytest.raises(ValueError, match="mechanism"):
        paper_instances(20, "mar")


# M to the bit; of X, y, f and the ceiling a few numbers, which may differ in their last bits.
PINS = [
    ((20, "mcar", "linear", 0.1, 1), "ac71aae3ee576cb6",
     [0.0401881955972, -0.673387372421, -0.353140352918, 0.580088515872, -0.310407735855, -0.45320236624, 0.77453391]),
    ((20, "censoring", "nn", 0.1, 1), "cf30842897c8b9fc",
     [0.0401881955972, -0.673387372421, 1.10549212225, 0.430874313651, 0.662910439051, -0.65451259090, 0.7770510573]),
    ((60, "mcar", "nn", 0.3, 7), "97339723f702152b",
     [-0.560572768814, -1.12955362631, 0.446707613351, -1.10744576972, 0.620711978965, 0.373389397276, 0.792525799576]),
    ((500, "censoring", "linear", 0.5, 4), "def1d204232111f7",
     [-0.39507896923, 1.37313340801, 2.56956077383, -0.187803713935, 2.89129845428, 0.374533647648, 0.787173743482]),
    ((1000, "mcar", "linear", 0.8, 10), "781d0f543c508876",
     [-0.510271558696, -1.2321449106, 2.52845496416, 1.4678200677, 2.38562169863, 2.77077587722, 0.41993211611]),
    ((1000, "censoring", "nn", 0.8, 10), "b6b66eff68f85219",
     [-0.510271558696, -1.2321449106, -0.571799614631, 0.797635259617, 0.326371842977, -1.4193912137, 0.657682487026]),
]  # fmt: skip


@pytest.mark.parametrize(("cell", "digest", "numbers"), PINS)
def test_instances_stay_what_they_are(cell, digest, numbers):
    data = paper_instance(*cell)
    M = np.isnan(np.vstack([data.X_train, data.X_test]))
    assert hashlib.sha256(np.packbits(M).tobytes()).hexdigest()[:16] == digest
    ends = [data.X_full_train[0, 0], data.X_full_test[-1, 9], data.y_train[0], data.y_test[-1], data.signal_train[0]]
    np.testing.assert_allclose([*ends, data.y_test.mean(), data.ceiling], numbers, rtol=1e-9)
