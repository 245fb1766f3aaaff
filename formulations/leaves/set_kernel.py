"""The loops that add rows to the sums over sets of missing features (:mod:`formulations.leaves.set_sums`).

A row with missing set m belongs to every U <= m: with 6 of 20 features missing, 57 sets of up to 4. The
features are divided into the first h and the last t. Rows are grouped by their pattern of the last t features; in each
group, which fits in the cache, the sets of the first h are visited depth first, with the lists of their rows, whose
moments are products of blocks of rows. These, by set and pattern of the last features, are then summed over the
supersets of the last features. So a row is multiplied once for every set of the first features only, at the speed of
matrix products, and the other sets cost additions of matrices.

*Products of rows* are summed in vector registers, in tiles of W = sum over r of z_r z_r'. A tile has HEIGHT rows and
one vector of LANES columns. Each row z_r contributes one vector, multiplied by HEIGHT numbers, to HEIGHT registers;
tiles above the diagonal are not needed. As in :mod:`formulations.leaves.tiles`, the loop is written in LLVM's vector
instructions: compilers keep its sums in memory.
"""

import numpy as np
from llvmlite import ir
from numba import types

from formulations.jit import compiled, inlined
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


# Rows that are multiplied before their moments are added to a sum.
RUN = 128
# Rows that are added to sets of more than D features one by one.
FEW = 16


@compiled
def sorted_rows(X, y, s, order, Z):  # type: ignore[no-untyped-def]
    """Write the weighted rows (1, x, y) in this order, 0 if missing, and 0 in columns beyond the last."""
    d = X.shape[1]
    for i in range(len(order)):
        row = order[i]
        root = np.sqrt(s[row])
        Z[i, 0] = root
        for j in range(d):
            x = X[row, j]
            Z[i, j + 1] = 0.0 if np.isnan(x) else x * root
        Z[i, d + 1] = y[row] * root
        for j in range(d + 2, Z.shape[1]):
            Z[i, j] = 0.0


@inlined
def add_moments(Z, rows, begin, end, W, totals, at, length):  # type: ignore[no-untyped-def]
    """Add the packed second moments of some rows to ``totals[at]``; W is workspace."""
    for first in range(begin, end, RUN):
        multiply_rows(Z, rows, first, min(first + RUN, end), W)
        entry, i = 0, 0
        while entry < length:
            for j in range(i + 1):
                totals[at, entry + j] += W[i, j]
            i += 1
            entry += i


@inlined
def add_first(Z, rows, n_rows, width, W, totals, at):  # type: ignore[no-untyped-def]
    """Add the first moments of some rows, and their number, to ``totals[at]``; W is workspace."""
    for run in range(0, n_rows, RUN):
        for j in range(width):
            W[0, j] = 0.0
        for r in range(run, min(run + RUN, n_rows)):
            row = rows[r]
            for j in range(width):
                W[0, j] += Z[row, 0] * Z[row, j]
        for j in range(width):
            totals[at, j] += W[0, j]
    totals[at, width] += n_rows


@compiled
def add_node(Z, rows, n_rows, size, rank, v, n_patterns, depth, offsets, tables, sets, W):  # type: ignore[no-untyped-def]
    """Add the rows of a set of ``size`` first features, which have the pattern v of the last ones, to its sums."""
    second, first, weights = sets
    matrices, vectors, numbers, filled, terms = tables
    d, length = first.shape[1] - 3, second.shape[1]
    if size <= depth + 1:
        filled[offsets[0, size] + rank, v] = True
    at = n_patterns * (rank if size >= depth else offsets[0, size] + rank) + v
    if size >= depth:
        terms[size - depth, rank] += (n_rows - 1) // RUN + 1
    if size < depth:
        for entry in range(length):
            matrices[at, entry] = 0.0
        add_moments(Z, rows, 0, n_rows, W, matrices, at, length - 1)
        matrices[at, length - 1] = n_rows
    elif size == depth:
        add_moments(Z, rows, 0, n_rows, W, second, offsets[1, size] + rank, length - 1)
        second[offsets[1, size] + rank, length - 1] += n_rows
        for j in range(d + 3):
            vectors[at, j] = 0.0
        add_first(Z, rows, n_rows, d + 2, W, vectors, at)
    elif size == depth + 1:
        numbers[at, 0] = 0.0
        add_first(Z, rows, n_rows, 1, W, numbers, at)
        add_first(Z, rows, n_rows, d + 2, W, first, rank)
    else:
        for run in range(0, n_rows, RUN):
            weight = 0.0
            for r in range(run, min(run + RUN, n_rows)):
                weight += Z[rows[r], 0] * Z[rows[r], 0]
            weights[rank] += weight


@compiled
def add_few(Z, rows, n_rows, rank, above, v, last, missing, start, depth, binom, terms, sets):  # type: ignore[no-untyped-def]
    """Add the rows of a set of D first features, the largest ``above``, to the larger sets, one by one."""
    _, first, weights = sets
    d = first.shape[1] - 3
    for r in range(n_rows):
        row = rows[r]
        weight, end = Z[row, 0] * Z[row, 0], start[row + 1]
        for a in range(end - 1, start[row] - 1, -1):
            if missing[a] <= above:
                break
            at = rank + binom[missing[a], depth + 1]
            for j in range(d + 2):
                first[at, j] += Z[row, 0] * Z[row, j]
            first[at, d + 2] += 1.0
            terms[1, at] += 1
            for b in range(a + 1, end):
                weights[at + binom[missing[b], depth + 2]] += weight
                terms[2, at + binom[missing[b], depth + 2]] += 1
            for i in range(last):
                if v >> i & 1:
                    weights[at + binom[d - last + i, depth + 2]] += weight
                    terms[2, at + binom[d - last + i, depth + 2]] += 1


@compiled
def divide(rows, n_rows, missing, start, above, lists, counts):  # type: ignore[no-untyped-def]
    """For each feature j > ``above`` the rows in which it is missing, and their number."""
    counts[:] = 0
    for r in range(n_rows):
        row = rows[r]
        at, first = start[row + 1] - 1, start[row]
        while at >= first and missing[at] > above:
            j = missing[at]
            lists[j, counts[j]] = row
            counts[j] += 1
            at -= 1


@compiled
def add_group(Z, begin, end, v, last, missing, start, h, depth, offsets, binom, tables, sets):  # type: ignore[no-untyped-def]
    """Add consecutive rows with the pattern v of the last features to all sets of the first h features."""
    n, levels, W = end - begin, min(depth + 2, h), np.empty((Z.shape[1], Z.shape[1]))
    everything = np.arange(begin, end).astype(np.int32)
    add_node(Z, everything, n, 0, 0, v, 1 << last, depth, offsets, tables, sets, W)
    if levels == 0:
        return
    # on each level, the rows of every child of a node
    lists, counts = np.empty((levels, h, n), dtype=np.int32), np.zeros((levels, h), dtype=np.int64)
    chosen, ranks, level = np.full(levels, -1), np.zeros(levels, dtype=np.int64), 0
    divide(everything, n, missing, start, -1, lists[0], counts[0])
    while level >= 0:
        chosen[level] += 1
        j = chosen[level]
        if j == h:
            level -= 1
            continue
        n_rows = counts[level, j]
        if n_rows == 0:
            continue
        rank, rows = ranks[level] + binom[j, level + 1], lists[level, j]
        add_node(Z, rows, n_rows, level + 1, rank, v, 1 << last, depth, offsets, tables, sets, W)
        if level + 1 == depth and n_rows <= FEW:
            add_few(Z, rows, n_rows, rank, j, v, last, missing, start, depth, binom, tables[4], sets)
        elif level + 1 < levels:
            divide(rows, n_rows, missing, start, j, lists[level + 1], counts[level + 1])
            level += 1
            ranks[level], chosen[level] = rank, j


@compiled
def add_over_supersets(table, base, filled, node, last, length):  # type: ignore[no-untyped-def]
    """Row base + v of the table = the sum of rows base + u over all u that contain v; rows not filled count as 0."""
    for bit in range(last):
        for v in range(1 << last):
            u = v | (1 << bit)
            if u != v and filled[node, u]:
                if filled[node, v]:
                    for entry in range(length):
                        table[base + v, entry] += table[base + u, entry]
                else:
                    for entry in range(length):
                        table[base + v, entry] = table[base + u, entry]
                    filled[node, v] = True


@compiled
def last_rank(v, size, first_last, last, binom):  # type: ignore[no-untyped-def]
    """The share of the last features in v in the rank of a set with ``size`` first ones, and the size of the set."""
    rank, held = 0, size
    for i in range(last):
        if v >> i & 1:
            held += 1
            rank += binom[first_last + i, held]
    return rank, held


@compiled
def add_tables(size, rank, table, base, filled, node, last, depth, offsets, binom, sets):  # type: ignore[no-untyped-def]
    """Add the sums of a set of first features, by the pattern of the last ones, to those of all sets with these."""
    second, first, weights = sets
    d = first.shape[1] - 3
    add_over_supersets(table, base, filled, node, last, table.shape[1])
    for v in range(1 << last):
        if not filled[node, v]:
            continue
        more, held = last_rank(v, size, d - last, last, binom)
        at = rank + more
        if held <= depth and size < depth:
            for entry in range(table.shape[1]):
                second[offsets[1, held] + at, entry] += table[base + v, entry]
        elif held == depth + 1 and size < depth:
            for j in range(d + 2):
                first[at, j] += table[base + v, j * (j + 1) // 2]
            first[at, d + 2] += table[base + v, table.shape[1] - 1]
        elif held == depth + 1 and size == depth:
            for j in range(d + 3):
                first[at, j] += table[base + v, j]
        elif held == depth + 2:
            weights[at] += table[base + v, 0]


@compiled
def add_sorted(Z, groups, missing, start, last, depth, offsets, binom, tables, sets):  # type: ignore[no-untyped-def]
    """Add rows that are sorted by their pattern v of the last features, from groups[v] to groups[v + 1].

    ``missing`` lists their other missing features, from start[row] to start[row + 1]; ``tables`` are workspace, and
    ``offsets`` the numbers of smaller sets of the first features, and of all.
    """
    h = sets[1].shape[1] - 3 - last
    matrices, vectors, numbers, filled, _ = tables
    filled[:] = False
    for v in range(1 << last):
        if groups[v] < groups[v + 1]:
            add_group(Z, groups[v], groups[v + 1], v, last, missing, start, h, depth, offsets, binom, tables, sets)
    for size in range(min(depth + 1, h) + 1):
        for rank in range(binom[h, size]):
            node = offsets[0, size] + rank
            if size < depth:
                add_tables(size, rank, matrices, node << last, filled, node, last, depth, offsets, binom, sets)
            elif size == depth:
                add_tables(size, rank, vectors, rank << last, filled, node, last, depth, offsets, binom, sets)
            else:
                add_tables(size, rank, numbers, rank << last, filled, node, last, depth, offsets, binom, sets)
