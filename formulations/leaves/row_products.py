"""Products of rows, summed in vector registers: tiles of  W = sum over r of z_r z_r'.

A tile has HEIGHT rows and one vector of LANES columns. Each row z_r contributes one vector, multiplied by HEIGHT
numbers, to HEIGHT registers; tiles above the diagonal are not needed. As in :mod:`formulations.leaves.tiles`, the loop
is written in LLVM's vector instructions: compilers keep its sums in memory.
"""

from llvmlite import ir
from numba import types

from formulations.jit import inlined
from formulations.leaves.tiles import CONTRACT, INDEX, LANES, VECTOR, _intrinsic, _load, _store

HEIGHT = 8


@_intrinsic
def multiply_tile(typing_context, Z, rows, begin, end, i, j, W):  # type: ignore[no-untyped-def]
    """W[i + a, j + b] = sum of Z[r, i + a] Z[r, j + b] over the rows r listed from ``begin`` to ``end``, not empty."""
    matrix, numbers = types.Array(types.float64, 2, "C"), types.Array(types.int32, 1, "C")
    signature = types.void(matrix, numbers, *[types.int64] * 4, matrix)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        Z, W = (context.make_array(matrix)(context, builder, arguments[at]) for at in (0, 6))
        rows = context.make_array(numbers)(context, builder, arguments[1])
        begin, end, i, j = arguments[2:6]
        widths = [builder.extract_value(array.shape, 1) for array in (Z, W)]
        before, body, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.branch(body)
        builder.position_at_end(body)
        at = builder.phi(INDEX)
        sums = [builder.phi(VECTOR) for _ in range(HEIGHT)]
        row = builder.sext(builder.load(builder.gep(rows.data, [at])), INDEX)
        z = builder.gep(Z.data, [builder.mul(row, widths[0])])
        vector = _load(builder, builder.gep(z, [j]))
        following = builder.add(at, INDEX(1))
        at.add_incoming(begin, before)
        at.add_incoming(following, body)
        added = []
        for a in range(HEIGHT):
            number = builder.load(builder.gep(z, [builder.add(i, INDEX(a))]))
            product = builder.fmul(_broadcast(builder, number), vector, flags=CONTRACT)
            added.append(builder.fadd(sums[a], product, flags=CONTRACT))
            sums[a].add_incoming(ir.Constant(VECTOR, [0.0] * LANES), before)
            sums[a].add_incoming(added[a], body)
        builder.cbranch(builder.icmp_signed("<", following, end), body, after)
        builder.position_at_end(after)
        for a in range(HEIGHT):
            target = builder.add(builder.mul(builder.add(i, INDEX(a)), widths[1]), j)
            _store(builder, added[a], builder.gep(W.data, [target]))
        return context.get_dummy_value()

    return signature, generate


def _broadcast(builder, number):  # type: ignore[no-untyped-def]
    single = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), number, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(single, ir.Constant(VECTOR, ir.Undefined), zeros)


@inlined
def multiply_rows(Z, rows, begin, end, W):  # type: ignore[no-untyped-def]
    """The lower triangle of W = sum of z_r z_r'; the width of Z and W is a multiple of HEIGHT."""
    for i in range(0, Z.shape[1], HEIGHT):
        for j in range(0, i + HEIGHT, LANES):
            multiply_tile(Z, rows, begin, end, i, j, W)
