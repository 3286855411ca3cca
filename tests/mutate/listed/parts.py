"""Faults that change no answer in kernels/parts."""

from __future__ import annotations

PARTS: dict[str, dict[tuple[str, str, str], str]] = {
    "kernels/parts/axes.py": {
        (
            "blocks",
            "if along_rows:",
            "if False:",
        ): "tiles of either form give the same answer",
        (
            "blocks",
            "tile_rows = min(next_power_of_2(rows), tile // tile_columns)",
            "tile_rows = min(next_power_of_2(rows), (tile * tile_columns))",
        ): "tiles of any size give the same answer",
        (
            "along_host",
            "if math.prod(shape) <= 1024:",
            "if False:",
        ): "a view of the same values instead of a copy",
        (
            "_merged",
            "return (sizes, steps) if sizes else ((1,), [(0,) for _ in strides])",
            "return (sizes, steps) if sizes else ((1,), [(1,) for _ in strides])",
        ): "of one element no step is taken",
    },
    "kernels/parts/cpu/summation.py": {
        (
            "_sum_strided",
            "if x.strides[dims[-1]] == x.itemsize or not kept:",
            "if x.strides[dims[-1]] == x.itemsize or (kept):",
        ): "either way adds pairwise: which is quicker depends on the strides",
        (
            "summed",
            "if dims and (small := few(x, dims, keepdim)) is not None:",
            "if False:",
        ): "small arrays are then summed as large ones are",
        (
            "few",
            "return out.reshape((1,) * x.ndim) if keepdim else out",
            "return None",
        ): "the caller then sums the long way",
    },
    "kernels/parts/cpu/strided_views.py": {
        (
            "window",
            "if x.flags.c_contiguous:",
            "if False:",
        ): "as_strided makes the same view, only slower",
    },
    "kernels/parts/elementwise.py": {
        (
            "run",
            "mixed = tuple([isinstance(x, CudaArray) for x in operands]) if len(numbers) and len(arrays) else ()",
            "mixed = tuple([isinstance(x, CudaArray) for x in operands]) if (len(numbers) or len(arrays)) else ()",
        ): "of one kind alone every operand keeps its place",
    },
    "kernels/parts/indices/rows_by_key.py": {
        (
            "put_rows",
            "block_rows = max(256 // block_columns, 1)",
            "block_rows = max((256 * block_columns), 1)",
        ): "tiles of any size give the same answer",
    },
    "kernels/parts/maths.py": {
        (
            "maximum",
            "return tl.where((a > b) | (a != a), a, b)",
            "return tl.where(((a >= b)) | (a != a), a, b)",
        ): "of two equal numbers either is the larger; which zero of two signs comes out nobody promises",
        (
            "minimum",
            "return tl.where((a < b) | (a != a), a, b)",
            "return tl.where(((a <= b)) | (a != a), a, b)",
        ): "of two equal numbers either is the smaller",
    },
    "kernels/parts/products/rules.py": {
        (
            "_resident",
            "stored = 4 if t.split > 1 else 2",
            "stored = 4 if t.split > 1 else 3",
        ): "a stage or a program less where memory is nearly full: any number gives this answer",
    },
    "kernels/parts/random_words/philox.py": {
        (
            "ahead",
            "words, start = np.empty((8 * AHEAD if key == seed else AHEAD, 4), np.uint32), 0  # a seed's first draw may be its last",
            "words, start = np.empty((8 * AHEAD if (key != seed) else AHEAD, 4), np.uint32), 0  # a seed's first draw may be its last",
        ): "how many words are drawn ahead changes none of them",
    },
    "kernels/parts/random_words/normal.py": {
        (
            "_polar64",
            "t = v + 0x2000000000000000",
            "t = v + 2305843009213693953",
        ): "its last bits are beyond those that float64 keeps of t",
        (
            "_polar64",
            "x = _times(((t & 0x3FFFFFFFFFFFFFFF).to(tl.int64) - 0x2000000000000000).to(tl.float64), _TURN64)",
            "x = _times(((t & 0x3FFFFFFFFFFFFFFF).to(tl.int64) - 2305843009213693953).to(tl.float64), _TURN64)",
        ): "its last bits are beyond those that float64 keeps of t",
    },
    "kernels/parts/reduction.py": {
        (
            "fold",
            "BRANCH=view.rows == 1 and len(view.outer) == 1, LONG_OFFSETS=view.long_offsets, CHAIN=CHAIN, BM=tile_rows, BN=tile_columns,",
            "BRANCH=view.rows == 1 and (len(view.outer) != 1), LONG_OFFSETS=view.long_offsets, CHAIN=CHAIN, BM=tile_rows, BN=tile_columns,",
        ): "a tile read with or without its mask: how wide the reads are the static table watches",
        (
            "_read",
            "if KIND == 0:",
            "if False:",
        ): "of an array that does not vary along the columns every column reads the same number, which is only slower",
        (
            "fold",
            "if view.rows == 0:",
            "if False:",
        ): "a launch of no programs does nothing",
    },
    "kernels/parts/rows/row_softmax.py": {
        (
            "by_rows",
            "step = max(CACHE // max(math.prod(out.shape[1:]), 1), 1)",
            "step = max(CACHE // max(math.prod(out.shape[2:]), 1), 1)",
        ): "rows at a time, which change the speed alone",
        (
            "rest",
            'return x - tl.where(m == float("-inf"), 0.0, m)',
            'return x - tl.where(m == float("-inf"), 1.0, m)',
        ): "of -inf any number less is -inf",
    },
    "kernels/parts/backends.py": {
        (
            "tame",
            "return y if g != 0 else ops.where(ops.ne(y - y, 0.0), 0.0, y)",
            "return y if g != 0 else ops.where(ops.ne(y - y, 0.0), 1.0, y)",
        ): "any finite number is multiplied by 0",
    },
    "kernels/parts/gemm.py": {
        (
            "_integer",
            "if bound < 1 << 53:",
            "if (bound <= 1 << 53):",
        ): "float64 holds 2^53, too",
    },
    "kernels/parts/grid_indices.py": {
        (
            "long_offsets",
            "return any(sum(abs(s) * (n - 1) for s, n in zip(a.strides, a.shape, strict=True)) >= 1 << 31 for a in arrays)",
            "return any(sum(abs(s) * (n - 1) for s, n in zip(a.strides, a.shape, strict=True)) >= (1 >> 31) for a in arrays)",
        ): "offsets of 64 bits give the same, only slower",
    },
    "kernels/parts/tapes/pointwise.py": {
        (
            "_plan",
            "crossed = len(sizes) > 1 and any(s[-2] == 1 and s[-1] != 0 for s in strides)",
            "crossed = len(sizes) > 1 and any(s[-2] == 1 and s[-1] != 1 for s in strides)",
        ): "the shape of a tile, of which any is right",
        (
            "_kernel",
            "if (top + ROWS <= rows) & (left + COLS <= cols):",
            "if (top + ROWS <= rows) & ((left + COLS < cols)):",
        ): "the last whole tile is written under its mask",
    },
}
