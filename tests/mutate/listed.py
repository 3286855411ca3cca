"""Faults that change no answer, one by one, each with its reason; `equivalent` knows others by rule."""

from __future__ import annotations

# file -> (a function, a line of it, the same with the fault in it) -> why no answer changes
EQUIVALENT: dict[str, dict[tuple[str, str, str], str]] = {
    "autograd/engine.py": {
        (
            "_deliver",
            'and getattr(x, "storage", 0) is not getattr(g, "storage", 1)',
            'and getattr(x, "storage", 0) is not getattr(g, "storage", 2)',
        ): "any two defaults that differ",
        (
            "_walk_plain",
            "elif place >= 0 and intact:",
            "elif place >= 1 and intact:",
        ): "the first input goes the general way then, which is only slower",
    },
    "kernels/creation/numbers.py": {
        (
            "_full",
            "if out is None and value == 0 and not (type(value) is float and math.copysign(1.0, value) < 0):",
            "if out is None and value == 0 and not ((type(value) is float or math.copysign(1.0, value) < 0)):",
        ): "np.full writes the zeros, too, only slower",
        (
            "_full",
            "if out is None and value == 0 and not (type(value) is float and math.copysign(1.0, value) < 0):",
            "if out is None and value == 0 and not (type(value) is float and math.copysign(1.0, value) < 1):",
        ): "copysign is 1 or -1: every number between splits them",
        (
            "_full",
            "if out is None and value == 0 and not (type(value) is float and math.copysign(1.0, value) < 0):",
            "if out is None and value == 0 and not (type(value) is float and math.copysign(2.0, value) < 0):",
        ): "the sign alone is asked of copysign",
        (
            "_full",
            "if out is None and value == 0 and not (type(value) is float and math.copysign(1.0, value) < 0):",
            "if out is None and value == 0 and not (type(value) is float and (math.copysign(1.0, value) <= 0)):",
        ): "copysign is 1 or -1: every number between splits them",
    },
    "kernels/elementwise/activations.py": {
        (
            "_softplus_forward",
            "if beta == 1 and threshold >= 0:",
            "if beta == 1 and threshold >= 1:",
        ): "both formulas hold from there on; one is cheaper",
    },
    "kernels/indexing/gathering.py": {
        (
            "_gather_kernel",
            "k = tl.load(index + to + along * index_step, mask=mask, other=0).to(tl.int64)",
            "k = tl.load(index + to + along * index_step, mask=mask, other=1).to(tl.int64)",
        ): "what a masked load has where its mask is off is not used: every use has that mask",
        (
            "_gather_kernel",
            "tl.store(y + i, tl.load(x + at + k * x_step, mask=good, other=0), mask=mask)",
            "tl.store(y + i, tl.load(x + at + k * x_step, mask=good, other=1), mask=mask)",
        ): "what a masked load has where its mask is off is not used: every use has that mask",
        (
            "_scatter_add",
            "if not x.ndim or index.shape[dim] == 1:  # one source per line: nothing can collide",
            "if (not x.ndim and index.shape[dim] == 1):  # one source per line: nothing can collide",
        ): "the general way adds them as well, only slower",
        (
            "_scatter_add",
            "if not x.ndim or index.shape[dim] == 1:  # one source per line: nothing can collide",
            "if False:  # one source per line: nothing can collide",
        ): "the general way adds them as well, only slower",
    },
    "kernels/losses/cross_entropy/op.py": {
        (
            "_label",
            "share = tl.load(weight + label, mask=inside & known, other=0.0)",
            "share = tl.load(weight + label, mask=inside & known, other=1.0)",
        ): "the rows outside are not stored",
        (
            "_label",
            "share = tl.where(inside, 1.0, 0.0)",
            "share = tl.where(inside, 1.0, 1.0)",
        ): "the rows outside are not stored",
        (
            "_backward_kernel",
            "q = even + (1 - s) * load(target, b, row, col, t_strides, lanes, 0.0, T_UNIT)",
            "q = even + (1 - s) * load(target, b, row, col, t_strides, lanes, 1.0, T_UNIT)",
        ): "the lane is left out of the sum, and not stored",
        (
            "backward_rows",
            "on.rows, on.columns, a.strides, (0, 0, 0) if t is None else t.strides, c.strides, np.float64(smoothing),",
            "on.rows, on.columns, a.strides, (0, 1, 0) if t is None else t.strides, c.strides, np.float64(smoothing),",
        ): "without probabilities their strides are not used",
    },
    "kernels/optimizers/steps.py": {
        (
            "_in_blocks",
            "update(s[: first.size], t[: first.size], *flat, *numbers)",
            "(update(t[:first.size], s[:first.size], *flat, *numbers))",
        ): "s and t are scratch, one like the other",
        (
            "_in_blocks",
            "update(s[:n], t[:n], *blocks, *numbers)",
            "(update(t[:n], s[:n], *blocks, *numbers))",
        ): "s and t are scratch, one like the other",
        (
            "_in_blocks",
            "first = arrays[0]",
            "first = arrays[1]",
        ): "parameter and gradient are of one shape and type",
    },
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
            "layout",
            "kept, kept_steps = (kept, kept_steps) if kept else ([1], [[0] for _ in strides])",
            "kept, kept_steps = (kept, kept_steps) if kept else ([1], [[1] for _ in strides])",
        ): "of one element no step is taken",
    },
    "kernels/parts/elementwise.py": {
        (
            "run",
            "if len(numbers) and len(arrays):  # the kernel sees arrays first",
            "if (len(numbers) or len(arrays)):  # the kernel sees arrays first",
        ): "of one kind alone every operand keeps its place",
        (
            "numpy_gradient",
            "if one_rounding and len(names) == 1:",
            "if (one_rounding or len(names) == 1):",
        ): "of one rounding either way, and no formula of the gradient alone rounds more than once",
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
    "kernels/parts/indices/keyed_rows.py": {
        (
            "check_range",
            "if not negative and index.dtype == np.int64 and index.flags.c_contiguous and int(index.view(np.uint64).max()) < size:",
            "if (negative) and index.dtype == np.int64 and index.flags.c_contiguous and int(index.view(np.uint64).max()) < size:",
        ): "a short cut for what the lines below find as well",
        (
            "put_rows",
            "block_rows = max(256 // block_columns, 1)",
            "block_rows = max((256 * block_columns), 1)",
        ): "tiles of any size give the same answer",
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
    "kernels/products/matmul.py": {
        (
            "_product",
            "if b.ndim == 2 and a.ndim > 2:",
            "if b.ndim == 2 and a.ndim > 3:",
        ): "a batch of products instead of one, which is only slower",
        (
            "shape",
            "if a.shape[-1] != b.shape[-2 if len(b.shape) > 1 else 0]:",
            "if a.shape[-1] != b.shape[-2 if len(b.shape) > 2 else 0]:",
        ): "of a matrix the first size is the last but one",
        (
            "shape",
            "rows = tuple(a.shape[-2:-1]) if len(a.shape) > 1 else ()",
            "rows = tuple(a.shape[-2:-1]) if (len(a.shape) >= 1) else ()",
        ): "of a vector that slice is empty",
    },
    "kernels/random/sampling.py": {
        (
            "_chunked",
            "per_block = 128 // bits",
            "per_block = (128 * bits)",
        ): "pieces that are larger still hold whole blocks",
        (
            "_randperm_forward",
            "_draw_integers(keys, 0, 1 << 64, seed, offset)",
            "_draw_integers(keys, 1, 1 << 64, seed, offset)",
        ): "keys that are all one more have the same order",
    },
    "kernels/reductions/extrema.py": {
        (
            "_extreme",
            "while columns.shape[1] > _SHORT // 2:  # the halves may overlap: what is compared twice changes nothing",
            "while (columns.shape[1] >= _SHORT // 2):  # the halves may overlap: what is compared twice changes nothing",
        ): "halves of any size give the same answer",
        (
            "_first_larger",
            "stays = (a > b) | (a_nan & ~b_nan) | (((a == b) | (a_nan & b_nan)) & (i < j))",
            "stays = (a > b) | (a_nan & ~b_nan) | (((a == b) | (a_nan & b_nan)) & ((i <= j)))",
        ): "two elements are never at one place",
        (
            "_first_smaller",
            "stays = (a < b) | (a_nan & ~b_nan) | (((a == b) | (a_nan & b_nan)) & (i < j))",
            "stays = (a < b) | (a_nan & ~b_nan) | (((a == b) | (a_nan & b_nan)) & ((i <= j)))",
        ): "two elements are never at one place",
        (
            "_edge",
            "return int(np.iinfo(dtype).min if sign < 0 else np.iinfo(dtype).max)",
            "return int(np.iinfo(dtype).min if sign < 1 else np.iinfo(dtype).max)",
        ): "a sign is -1 or 1",
        (
            "_extreme",
            "if x.size < _MANY or dims != (x.ndim - 1,) or not 1 < x.shape[-1] <= _SHORT or not x.flags.c_contiguous:",
            "if x.size < _MANY or dims != (x.ndim - 1,) or not 1 < x.shape[-1] <= _SHORT or (x.flags.c_contiguous):",
        ): "either way finds the extreme, of memory in any order",
    },
    "tritensor/dispatch/lanes.py": {
        (
            "call",
            "elif not laid_by_numpy and not (result.flags.c_contiguous and (in_c_order or x.flags.c_contiguous)):",
            "elif (not laid_by_numpy or not (result.flags.c_contiguous and (in_c_order or x.flags.c_contiguous))):",
        ): "settled leaves what lies as it should",
        (
            "_has_plain",
            "simple = not op.attrs and not op.variadic and len(op.outputs) == 1 and op.required == 2 <= len(op.inputs) <= 3",
            "simple = not op.attrs and not op.variadic and len(op.outputs) == 1 and op.required == 2 <= len(op.inputs) <= 4",
        ): "no op of four inputs has a plain lane",
    },
    "tritensor/tensor/aliasing/views.py": {
        (
            "_like_base",
            "laid = as_strided(empty((max(high - low + 1, 0),), g.dtype, device_of(g)), shape, self.strides, -low)",
            "laid = as_strided(empty((max(high - low + 1, 1),), g.dtype, device_of(g)), shape, self.strides, -low)",
        ): "of a base without elements no memory is looked at",
    },
    "tritensor/tensor/core.py": {
        (
            "became_view_of",
            "if (n := len(fresh)) >= 32 and n & (n - 1) == 0:  # forget the dead at each doubling",
            "if (n := len(fresh)) >= 32 and (n & n - 1 != 0):  # forget the dead at each doubling",
        ): "how often the dead are forgotten changes the speed alone",
        (
            "became_view_of",
            "if (n := len(fresh)) >= 32 and n & (n - 1) == 0:  # forget the dead at each doubling",
            "if (n := len(fresh)) >= 32 and n & (n - 1) == 1:  # forget the dead at each doubling",
        ): "a dead view's entry is a few bytes that the next view at its address takes over",
    },
    "kernels/losses/cross_entropy/cpu.py": {
        (
            "_peaks",
            "step = max(CACHE // max(x.shape[1], 1), 1)",
            "step = max(CACHE // max(x.shape[1], 1), 2)",
        ): "blocks of any number of rows give the same answer",
        (
            "_powers",
            "if not 0 < rows.size <= CACHE or rows.shape[1] > _FEW or not rows.flags.c_contiguous:",
            "if not 0 < rows.size <= CACHE or (rows.shape[1] >= _FEW) or not rows.flags.c_contiguous:",
        ): "a short cut that is taken less often",
    },
    "kernels/parts/cpu/special.py": {
        (
            "_erf_block",
            "z = np.minimum(np.abs(x), 6.5)",
            "z = np.minimum(np.abs(x), 7.5)",
        ): "erf is 1 from 6 on",
        (
            "_mass_beyond",
            "d -= k",
            "pass",
        ): "half an ulp, well inside of the four that are promised",
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
    "kernels/pooling/pooling_cpu.py": {
        (
            "apart",
            "return self.sh > (self.kh - 1) * self.dh and self.sw > (self.kw - 1) * self.dw",
            "return self.sh > ((self.kh + 1)) * self.dh and self.sw > (self.kw - 1) * self.dw",
        ): "a short cut that is taken less often",
        (
            "quarters",
            "return (self.kh, self.kw, self.sh, self.sw, self.ph, self.pw, self.dh, self.dw) == (2, 2, 2, 2, 0, 0, 1, 1) and (",
            "return (self.kh, self.kw, self.sh, self.sw, self.ph, self.pw, self.dh, self.dw) == (2, 2, 2, 2, 1, 0, 1, 1) and (",
        ): "the short cut is never taken then: padded, there are more windows than the next line allows",
    },
    "kernels/convolution/conv2d/op.py": {
        (
            "weight_reference",
            "return reference_backward_weight(g, x, (g.shape[1], x.shape[1] // groups, *kernel_size), stride, padding, dilation, groups)",
            "return reference_backward_weight(g, x, (g.shape[1], x.shape[2] // groups, *kernel_size), stride, padding, dilation, groups)",
        ): "how many channels there are is read off x",
    },
    "tritensor/tensor/functions/indexing.py": {
        (
            "setitem",
            "if all(map(is_basic, entries)):",
            "if False:",
        ): "the general way writes them as well, only slower",
    },
    "kernels/convolution/conv2d/cpu.py": {
        (
            "input_gradient",
            "if s.kh == s.kw == s.sh == s.sw == 1 and not (s.ph or s.pw):",
            "if False:",
        ): "a short cut: the general way gives the same",
        (
            "weight_gradient",
            "merged = taps.shape[1] == 1 and high - low > 1",
            "merged = taps.shape[1] == 1 and (high - low >= 1)",
        ): "one row merged with no other is that row",
        (
            "correlate",
            "merged = taps.shape[1] == 1 and high - low > 1",
            "merged = taps.shape[1] == 1 and (high - low >= 1)",
        ): "one row merged with no other is that row",
    },
    "kernels/elementwise/powers.py": {
        (
            "_remainder",
            "return maths.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)",
            "return maths.where((r != 0) & ((r < 0) != ((b <= 0))), r + b, r)",
        ): "of a division by 0 the remainder is NaN either way",
        (
            "_integer_floor_divide",
            "return tl.where((r != 0) & ((r < 0) != (b < 0)), q - 1, q)",
            "return tl.where((r != 0) & ((r < 1) != (b < 0)), q - 1, q)",
        ): "a remainder is whole, and not 0 here",
        (
            "_integer_remainder",
            "return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)",
            "return tl.where((r != 0) & (((r <= 0)) != (b < 0)), r + b, r)",
        ): "a remainder of 0 is left alone before",
        (
            "_pow_a_backward",
            "return _square_a_kernel(g, a) if type(b) in (int, float) and b == 2 else _pow_a_kernel(g, a, b)",
            "return _square_a_kernel(g, a) if (type(b) not in (int, float)) and b == 2 else _pow_a_kernel(g, a, b)",
        ): "the general gradient of a square, only slower",
    },
    "tritensor/dispatch/road.py": {
        (
            "_filled",
            "if len(inputs) > len(op.inputs):",
            "if (len(inputs) >= len(op.inputs)):",
        ): "it is called where the two differ",
    },
    "tritensor/tensor/functions/linear.py": {
        (
            "nuclear_norm",
            "if m.shape[-1] > m.shape[-2]:  # the smaller product x^T x",
            "if False:  # the smaller product x^T x",
        ): "the larger product has the same factor, only slower",
        (
            "nuclear_norm",
            "if m.shape[-1] > m.shape[-2]:  # the smaller product x^T x",
            "if m.shape[-2] > m.shape[-2]:  # the smaller product x^T x",
        ): "the larger product has the same factor, only slower",
        (
            "einsum",
            "if at == len(operands) - 1 and _leads(other_labels, labels, output):  # rows before columns, and nothing is left to copy",
            "if at == len(operands) - 2 and _leads(other_labels, labels, output):  # rows before columns, and nothing is left to copy",
        ): "either operand of a product may come first",
    },
    "kernels/parts/cpu/summation.py": {
        (
            "_sum_strided",
            "if x.strides[dims[-1]] == x.itemsize or not kept:",
            "if x.strides[dims[-1]] == x.itemsize or (kept):",
        ): "either way adds pairwise: which is quicker depends on the strides",
        (
            "few",
            "return out.reshape((1,) * x.ndim) if keepdim else out",
            "return None",
        ): "the caller then sums the long way",
    },
    "kernels/parts/rows/row_softmax.py": {
        (
            "rest",
            'return x - tl.where(m == float("-inf"), 0.0, m)',
            'return x - tl.where(m == float("-inf"), 1.0, m)',
        ): "of -inf any number less is -inf",
    },
    "kernels/elementwise/selection.py": {
        (
            "_larger",
            "return maths.where(a == b, 0.5 * g, maths.where(a < b, maths.zeros(g), g))",
            "return maths.where(a == b, 0.5 * g, maths.where((a <= b), maths.zeros(g), g))",
        ): "equal ones are looked at before",
    },
    "kernels/shaping/views.py": {
        (
            "window",
            "if x.flags.c_contiguous:",
            "if False:",
        ): "as_strided makes the same view, only slower",
    },
    "tritensor/tensor/aliasing/quick_views.py": {
        (
            "attach",
            "if kin is not None and len(fresh := kin.fresh) < 32:",
            "if kin is not None and len(fresh := kin.fresh) < 33:",
        ): "one view more before the dead ones are swept",
        (
            "attach",
            "if recording and extra is not None and (above is None or x.extra is None):  # what became_view_of does where the base has views already",
            "if False:  # what became_view_of does where the base has views already",
        ): "became_view_of does it",
    },
    "kernels/normalization/layer_norm.py": {
        (
            "_backward",
            "if not (needs[1] or needs[2]):",
            "if False:",
        ): "what nobody needs is worked out and left",
    },
    "kernels/normalization/softmax.py": {
        (
            "_backward_kernel",
            "out = load(y, b, row, col, y_strides, lanes, 0.0, Y_UNIT)",
            "out = load(y, b, row, col, y_strides, lanes, 1.0, Y_UNIT)",
        ): "the lane is not stored, and meets no other: its gradient is loaded as 0",
    },
    "kernels/parts/spellings.py": {
        (
            "tame",
            "return y if g != 0 else ops.where(ops.ne(y - y, 0.0), 0.0, y)",
            "return y if g != 0 else ops.where(ops.ne(y - y, 0.0), 1.0, y)",
        ): "any finite number is multiplied by 0",
    },
    "kernels/reductions/sums.py": {
        (
            "_sum",
            "if dims and (small := few(x, dims, keepdim)) is not None:",
            "if False:",
        ): "small arrays are then summed as large ones are",
        (
            "_mean",
            "if dims and (small := few(x, dims, keepdim)) is not None:",
            "if False:",
        ): "small arrays are then summed as large ones are",
    },
    "tritensor/tensor/reading/index.py": {
        (
            "advanced_index",
            "d, at, left = d + left, at + left, 0",
            "d, at, left = d + left, at + left, 1",
        ): "a second Ellipsis is refused before",
    },
}
