"""The random numbers of Julia 1.7 to 1.10, draw for draw.

Words are the outputs of xoshiro256++. The four words of its state are the SHA-256 digest of the seed, written as
little-endian 32-bit words.

    uniform      the top 53 bits of a word, times 2^-53
    words        arrays of fewer than 8 are single words; longer ones come from 8 interleaved generators, whose states
                 are single words times a constant (first word of each of the 8, second word of each, ..); the remainder
                 after the last full 8 are single words again
    normal       ziggurat of 256 strips (Marsaglia and Tsang, 2000) on the top 52 bits of a word: the sign is the
                 lowest bit, the strip the next 8, the position in the strip all 51 bits after the sign. Arrays of 7 or
                 more draw their words first; a rejected position draws further single words
    shuffle      for i = n, .., 2 swap i with a 52-bit draw, masked by 2^k - 1 and redrawn while it is not below i. The
                 mask is halved when its half equals i: for i a power of two it is one bit too wide, which costs
                 draws, and these count

Strips have edges x_255 = r > x_254 > .. > x_1 and equal areas v, with f(x) = exp(-x^2 / 2):

    v = r f(r) + int_r^inf f,      f(x_i) = f(x_{i+1}) + v / x_{i+1}

Each edge inherits the errors of the previous ones, so the tables are evaluated with 50 digits and rounded once.

Everything is exact except normals beyond r, one in 3,700, which need a logarithm: their last bit depends on the
machine's library.
"""

from decimal import Decimal, localcontext
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import FloatArray, IntArray
from formulations.jit import compiled

# Of Julia: strips of its ziggurat, and generators that fill long arrays.
STRIPS, LANES = 256, 8
TAIL = Decimal("3.6541528853610087963519472518")
TAIL_START, TAIL_SCALE = float(TAIL), float(1 / TAIL)
LANE_FACTORS = np.array([0x02011CE34BCE797F, 0x5A94851FB48A6E05, 0x3688CF5D48899FA7, 0x867B4BB4C42E5661], np.uint64)

WordArray = NDArray[np.uint64]


class JuliaRandom:
    """A generator seeded as by Julia's `Random.seed!(seed)`.

    Parameters
    ----------
    seed : int
        Non-negative.

    Examples
    --------
    >>> rng = JuliaRandom(1234)
    >>> float(rng.uniforms(1)[0]), float(rng.uniforms(1)[0])
    (0.32597672886359486, 0.5490511363155669)
    >>> JuliaRandom(1234).shuffled(5).tolist()
    [4, 2, 0, 1, 3]
    """

    def __init__(self, seed: int) -> None:
        if seed < 0:
            raise ValueError(f"A seed must be a non-negative whole number, not {seed!r}.")
        words = max(1, -(-seed.bit_length() // 32))
        self._state = np.frombuffer(sha256(seed.to_bytes(4 * words, "little")).digest(), "<u8").astype(np.uint64)

    def uniforms(self, size: int) -> FloatArray:
        """The array `rand(size)`."""
        return _as_uniforms(_words(self._state, size))

    def single_uniforms(self, size: int) -> FloatArray:
        """The results of ``size`` calls of `rand()`."""
        return _as_uniforms(_single_words(self._state, size))

    def normals(self, size: int) -> FloatArray:
        """The array `randn(size)`; below 7 the same as ``size`` calls of `randn()`."""
        return _normals(self._state, size, *ziggurat_tables())

    def shuffled(self, size: int) -> IntArray:
        """The numbers 0 to size - 1 in the order of `shuffle(1:size) .- 1`."""
        return _shuffled(self._state, size)


def _as_uniforms(words: WordArray) -> FloatArray:
    return (words >> np.uint64(11)).astype(float) * 2.0**-53


@lru_cache(maxsize=1)
def ziggurat_tables() -> tuple[IntArray, FloatArray, FloatArray]:
    """For each strip: the number of positions that need no test, the width of a position, and f at the edge.

    Examples
    --------
    >>> inside, width, height = ziggurat_tables()
    >>> hex(inside[0]), float(width[1]), float(height[0])
    ('0x7799ec012f7b2', 9.558660351455634e-17, 1.0)
    """
    positions = Decimal(2**51)
    inside = [0] * STRIPS
    width = [Decimal(0)] * STRIPS
    height = [Decimal(1)] * STRIPS
    with localcontext() as context:
        context.prec = 50
        x, f = TAIL, _density(TAIL)
        area = TAIL * f + f / _continued_fraction(TAIL)
        # Strip 0 is the rectangle of area v and height f(r): the tail is where it is wider than r.
        inside[0] = int(TAIL * f / area * positions)
        width[0] = area / f / positions
        width[-1] = x / positions
        height[-1] = f
        for i in range(STRIPS - 2, 0, -1):
            edge = (-2 * (area / x + height[i + 1]).ln()).sqrt()
            inside[i + 1] = int(edge / x * positions)
            width[i], height[i] = edge / positions, _density(edge)
            x = edge
    tables = np.array(inside, dtype=np.int64), np.array(width, dtype=float), np.array(height, dtype=float)
    for table in tables:
        table.flags.writeable = False
    return tables


def _density(x: Decimal) -> Decimal:
    return (-x * x / 2).exp()


def _continued_fraction(x: Decimal) -> Decimal:
    """f(x) / int_x^inf f = x + 1 / (x + 2 / (x + 3 / ..)); at r, 400 terms give more than 50 digits."""
    value = x
    for k in range(400, 0, -1):
        value = x + k / value
    return value


# Floating point operations are neither reordered nor fused: each is rounded as in Julia.
_compiled = partial(compiled, fastmath=False)


@_compiled
def _word(state: Any) -> Any:
    total = state[0] + state[3]
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + state[0]
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << np.uint64(45)) | (state[3] >> np.uint64(19))
    return word


@_compiled
def _single_words(state: Any, size: int) -> Any:
    words = np.empty(size, np.uint64)
    for i in range(size):
        words[i] = _word(state)
    return words


@_compiled
def _words(state: Any, size: int) -> Any:
    words = np.empty(size, np.uint64)
    in_lanes = size - size % LANES
    if in_lanes > 0:
        lanes = np.empty((LANES, 4), np.uint64)
        for k in range(4):
            for lane in range(LANES):
                lanes[lane, k] = LANE_FACTORS[k] * _word(state)
        for i in range(in_lanes):
            words[i] = _word(lanes[i % LANES])
    for i in range(in_lanes, size):
        words[i] = _word(state)
    return words


@_compiled
def _uniform(state: Any) -> Any:
    return (_word(state) >> np.uint64(11)) * 2.0**-53


@_compiled
def _normal(state: Any, word: Any, inside: Any, width: Any, height: Any) -> float:
    """The normal of a word; further words are drawn from the state if its position is not inside its strip."""
    while True:
        position = np.int64(word >> np.uint64(13))
        negative = (word >> np.uint64(12)) & np.uint64(1) == np.uint64(1)
        strip = position & 255
        x = (-position if negative else position) * width[strip]
        if position < inside[strip]:
            return x
        if strip == 0:
            while True:
                beyond = -TAIL_SCALE * np.log(_uniform(state))
                height_drawn = -np.log(_uniform(state))
                if height_drawn + height_drawn > beyond * beyond:
                    # The sign of the tail is another bit.
                    return -TAIL_START - beyond if (position >> 8) & 1 else TAIL_START + beyond
        if (height[strip - 1] - height[strip]) * _uniform(state) + height[strip] < np.exp(-0.5 * x * x):
            return x
        word = _word(state)


@_compiled
def _normals(state: Any, size: int, inside: Any, width: Any, height: Any) -> Any:
    normals = np.empty(size)
    if size < 7:
        for i in range(size):
            normals[i] = _normal(state, _word(state), inside, width, height)
        return normals
    words = _words(state, size)
    for i in range(size):
        normals[i] = _normal(state, words[i], inside, width, height)
    return normals


@_compiled
def _shuffled(state: Any, size: int) -> Any:
    order = np.arange(size)
    mask = 1
    while mask + 1 < size:
        mask = 2 * mask + 1
    for i in range(size, 1, -1):
        if mask >> 1 == i:
            mask >>= 1
        j = np.int64(_word(state) >> np.uint64(12)) & mask
        while j >= i:
            j = np.int64(_word(state) >> np.uint64(12)) & mask
        order[i - 1], order[j] = order[j], order[i - 1]
    return order
