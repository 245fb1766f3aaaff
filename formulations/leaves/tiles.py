"""Cholesky factorisation of several matrices at once, in tiles that stay in vector registers, and their layout.

Matrices, packed by rows of their lower triangle, are laid out side by side: entry (i, j) of LANES matrices is one
vector, at LANES (i (i + 1) / 2 + j). Rows and columns are divided into blocks of TILE. For rows I and columns
J <= I, in this order,

    T_IJ  <-  A_IJ - sum over c < J of L_Ic L_Jc',      L_IJ  =  T_IJ L_JJ^-T      or, for I = J, T_JJ = L_JJ L_JJ'.

The sum is accumulated in TILE x TILE registers: one step loads 2 TILE vectors for TILE^2 multiplications and additions.
Compilers do not vectorise such a loop from scalar code (its lanes would be the outermost loop), so it is written in
LLVM's vector instructions, which are translated for any processor. Measured on matrices of order 12 to 42, the same
loops in plain numba take 5 to 13 times as long side by side, and 14 to 18 times one by one; a tree of depth 5 over 20
features factors 583,366 of them, and would take about four times as long.
"""

from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from formulations.jit import compiled

# Matrices side by side: the doubles of a vector register.
LANES = 8 if llvmlite.binding.get_host_cpu_features().get("avx512f") else 4
TILE = 4

DOUBLE, INDEX = ir.DoubleType(), ir.IntType(64)
VECTOR = ir.VectorType(DOUBLE, LANES)
# numba passes the first argument of these functions itself, which their types do not tell.
_intrinsic: Any = intrinsic
# A product and the sum it is part of may be rounded once.
CONTRACT = ("contract",)


def _load(builder, pointer):  # type: ignore[no-untyped-def]
    value = builder.load(builder.bitcast(pointer, VECTOR.as_pointer()))
    value.align = 8
    return value


def _store(builder, value, pointer):  # type: ignore[no-untyped-def]
    builder.store(value, builder.bitcast(pointer, VECTOR.as_pointer())).align = 8


class _Tile:
    """The instructions for ``height`` rows starting at i, and columns starting at j; if these are equal, a triangle."""

    def __init__(self, builder, matrices, inverse, i, j, height, triangle):  # type: ignore[no-untyped-def]
        self.builder, self.triangle = builder, triangle
        self.inverse = [self._at(inverse, self._plus(j, b)) for b in range(height if triangle else TILE)]
        self.columns = [self._row(matrices, self._plus(j, b)) for b in range(height if triangle else TILE)]
        self.rows = self.columns if triangle else [self._row(matrices, self._plus(i, a)) for a in range(height)]
        self.j = j

    def _plus(self, index, number):  # type: ignore[no-untyped-def]
        return self.builder.add(index, INDEX(number))

    def _at(self, data, vector):  # type: ignore[no-untyped-def]
        return self.builder.gep(data, [self.builder.mul(vector, INDEX(LANES))])

    def _row(self, data, i):  # type: ignore[no-untyped-def]
        triangular = self.builder.mul(i, self._plus(i, 1))
        return self._at(data, self.builder.lshr(triangular, INDEX(1)))

    def _load(self, pointer):  # type: ignore[no-untyped-def]
        return _load(self.builder, pointer)

    def _store(self, value, pointer):  # type: ignore[no-untyped-def]
        _store(self.builder, value, pointer)

    def _minus(self, value, left, right):  # type: ignore[no-untyped-def]
        product = self.builder.fmul(left, right, flags=CONTRACT)
        return self.builder.fsub(value, product, flags=CONTRACT)

    def _entries(self):  # type: ignore[no-untyped-def]
        width = len(self.columns)
        return [(a, b) for a in range(len(self.rows)) for b in range(a + 1 if self.triangle else width)]

    def accumulated(self):  # type: ignore[no-untyped-def]
        """A_IJ, and T_IJ after a loop over the columns before j."""
        builder, entries = self.builder, self._entries()
        given = {(a, b): self._load(self._at(self.rows[a], self._plus(self.j, b))) for a, b in entries}
        before, body, after = (builder.block, builder.append_basic_block(), builder.append_basic_block())
        builder.cbranch(builder.icmp_signed(">", self.j, INDEX(0)), body, after)
        builder.position_at_end(body)
        c = builder.phi(INDEX)
        sums = {entry: builder.phi(VECTOR) for entry in entries}
        left = [self._load(self._at(row, c)) for row in self.rows]
        right = left if self.triangle else [self._load(self._at(row, c)) for row in self.columns]
        following = self._plus(c, 1)
        c.add_incoming(INDEX(0), before)
        c.add_incoming(following, body)
        reduced = {}
        for a, b in entries:
            reduced[a, b] = self._minus(sums[a, b], left[a], right[b])
            sums[a, b].add_incoming(given[a, b], before)
            sums[a, b].add_incoming(reduced[a, b], body)
        builder.cbranch(builder.icmp_signed("<", following, self.j), body, after)
        builder.position_at_end(after)
        result = {}
        for entry in entries:
            result[entry] = builder.phi(VECTOR)
            result[entry].add_incoming(given[entry], before)
            result[entry].add_incoming(reduced[entry], body)
        return given, result

    def solve(self):  # type: ignore[no-untyped-def]
        """Write L_IJ below the diagonal."""
        _, values = self.accumulated()
        for b in range(TILE):
            inverse = self._load(self.inverse[b])
            for a in range(len(self.rows)):
                values[a, b] = self.builder.fmul(values[a, b], inverse)
                self._store(values[a, b], self._at(self.rows[a], self._plus(self.j, b)))
            for later in range(b + 1, TILE):
                factor = self._load(self._at(self.columns[later], self._plus(self.j, b)))
                for a in range(len(self.rows)):
                    values[a, later] = self._minus(values[a, later], values[a, b], factor)

    def factor(self, least, otherwise):  # type: ignore[no-untyped-def]
        """Write L_JJ with pivots on its diagonal, and the reciprocal roots of these."""
        builder = self.builder
        given, values = self.accumulated()
        signature = ir.FunctionType(VECTOR, [VECTOR])
        root = cgutils.get_or_insert_function(builder.module, signature, f"llvm.sqrt.v{LANES}f64")
        for b in range(len(self.rows)):
            pivot = values[b, b]
            self._store(pivot, self._at(self.rows[b], self._plus(self.j, b)))
            positive = builder.fcmp_ordered(">", pivot, builder.fmul(least, given[b, b]))
            reciprocal = builder.fdiv(ir.Constant(VECTOR, [1.0] * LANES), builder.call(root, [pivot]))
            inverse = builder.select(positive, reciprocal, otherwise)
            self._store(inverse, self.inverse[b])
            for a in range(b + 1, len(self.rows)):
                values[a, b] = builder.fmul(values[a, b], inverse)
                self._store(values[a, b], self._at(self.rows[a], self._plus(self.j, b)))
            for a in range(b + 1, len(self.rows)):
                for later in range(b + 1, a + 1):
                    values[a, later] = self._minus(values[a, later], values[a, b], values[later, b])


@_intrinsic
def factor_tile(typing_context, T, inverse, i, j, height, least, otherwise):  # type: ignore[no-untyped-def]
    """Replace rows i .. i + height - 1 of TILE columns from j by those of L; if i = j, a triangle, keeping its pivots.

    Entries above, and left of, the tile are those of L. The reciprocal roots of pivots are written to ``inverse``; that
    of a pivot of at most ``least`` times its diagonal entry is ``otherwise``.
    """
    vectors = types.Array(types.float64, 1, "C")
    signature = types.void(vectors, vectors, types.int64, types.int64, types.int64, types.float64, types.float64)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = context.make_array(vectors)
        T, inverse = (array(context, builder, value).data for value in arguments[:2])
        i, j, height, *levels = arguments[2:]
        undefined = ir.Constant(VECTOR, ir.Undefined)
        first = builder.insert_element
        same = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        least, otherwise = (
            builder.shuffle_vector(first(undefined, level, ir.IntType(32)(0)), undefined, same) for level in levels
        )
        for rows in range(1, TILE + 1):
            in_diagonal = builder.icmp_signed("==", i, j)
            with (
                builder.if_then(builder.icmp_signed("==", height, INDEX(rows))),
                builder.if_else(in_diagonal) as (diagonal, below),
            ):
                with diagonal:
                    _Tile(builder, T, inverse, i, j, rows, True).factor(least, otherwise)
                with below:
                    _Tile(builder, T, inverse, i, j, rows, False).solve()
        return context.get_dummy_value()

    return signature, generate


@compiled
def transpose(G, rows, first, count, T, target):  # type: ignore[no-untyped-def]
    """Write ``count`` entries of LANES rows of G, from ``first``, side by side to the vectors of T, from ``target``."""
    for t in range(count):
        begin = LANES * (target + t)
        for lane in range(LANES):
            T[begin + lane] = G[rows[lane], first + t]
