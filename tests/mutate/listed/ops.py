"""Faults that change no answer in the files of ops."""

from __future__ import annotations

OPS: dict[str, dict[tuple[str, str, str], str]] = {
    "kernels/recurrent/time_loop.py": {
        (
            "product",
            "a if wide else a.astype(np.float32), b if b.dtype.itemsize > 2 else b.astype(np.float32), out=out if wide else None",
            "a if wide else a.astype(np.float32), b if (b.dtype.itemsize >= 2) else b.astype(np.float32), out=out if wide else None",
        ): "numpy widens the narrow operand itself",
    },
    "kernels/images/axis_maps.py": {
        (
            "adjoint_span",
            "return 3",
            "return 4",
        ): "`source` counts through one more, which is no output",
        (
            "_keys",
            "return np.where(t <= 1, near, np.where(t < 2, far, 0))",
            "return np.where(t <= 1, near, np.where(t < 3, far, 0))",
        ): "no cell of a window lies farther than 2",
    },
    "kernels/elementwise/activations.py": {
        (
            "_mish_grad",
            "low = maths.minimum(x, 20.0)",
            "low = maths.minimum(x, 21.0)",
        ): "from 20 on the result is the number itself",
        (
            "_softplus_forward",
            "if beta == 1 and threshold >= 0:",
            "if beta == 1 and threshold >= 1:",
        ): "both formulas hold from there on; one is cheaper",
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
            "return _square_kernel(g, a) if type(b) in (int, float) and b == 2 else _pow_a_kernel(g, a, b)",
            "return _square_kernel(g, a) if (type(b) not in (int, float)) and b == 2 else _pow_a_kernel(g, a, b)",
        ): "the general gradient of a square, only slower",
    },
    "kernels/elementwise/selection.py": {
        (
            "_larger",
            "return maths.where(a == b, 0.5 * g, maths.where(a < b, maths.zeros(g), g))",
            "return maths.where(a == b, 0.5 * g, maths.where((a <= b), maths.zeros(g), g))",
        ): "equal ones are looked at before",
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
            "_scatter_forward",
            "if index.shape[dim] > FEW or x.size == 0:",
            "if (index.shape[dim] >= FEW) or x.size == 0:",
        ): "either of the two ways serves any count",
    },
    "kernels/losses/cross_entropy/cpu.py": {
        (
            "_peaks",
            "step = max(CACHE // max(x.shape[1], 1), 1)",
            "step = max(CACHE // max(x.shape[1], 1), 2)",
        ): "blocks of any number of rows give the same answer",
    },
    "kernels/losses/cross_entropy/gpu.py": {
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
            "q = even + (1 - s) * row_tiles.load(target, b, row, col, t_strides, lanes, 0.0, T_UNIT)",
            "q = even + (1 - s) * row_tiles.load(target, b, row, col, t_strides, lanes, 1.0, T_UNIT)",
        ): "the lane is left out of the sum, and not stored",
    },
    "kernels/normalization/row_gradients.py": {
        (
            "gradients",
            "if not (needs[1] or needs[2]):",
            "if False:",
        ): "what nobody needs is worked out and left",
    },
    "kernels/normalization/softmax.py": {
        (
            "_backward_kernel",
            "out = load(y, b, row, col, y_strides, shift, lanes, 0.0, Y_UNIT, VECTOR)",
            "out = load(y, b, row, col, y_strides, shift, lanes, 1.0, Y_UNIT, VECTOR)",
        ): "the lane is not stored, and meets no other: its gradient is loaded as 0",
    },
    "kernels/products/matmul.py": {
        (
            "_matrices",
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
            "loser",
            "return int(np.iinfo(dtype).min if sign < 0 else np.iinfo(dtype).max)",
            "return int(np.iinfo(dtype).min if sign < 1 else np.iinfo(dtype).max)",
        ): "a sign is -1 or 1",
        (
            "_extreme",
            "if x.size < _MANY or dims != (x.ndim - 1,) or not 1 < x.shape[-1] <= _SHORT or not x.flags.c_contiguous:",
            "if x.size < _MANY or dims != (x.ndim - 1,) or not 1 < x.shape[-1] <= _SHORT or (x.flags.c_contiguous):",
        ): "either way finds the extreme, of memory in any order",
    },
    "kernels/reductions/sums.py": {
        (
            "_sum_cpu",
            "if dims and (small := few(x, dims, keepdim)) is not None:",
            "if False:",
        ): "small arrays are then summed as large ones are",
        (
            "_mean_cpu",
            "if dims and (small := few(x, dims, keepdim)) is not None:",
            "if False:",
        ): "small arrays are then summed as large ones are",
        (
            "_origin",
            "if 0 in x.shape:",
            "if False:",
        ): "a part of nothing stretches to nothing",
    },
    "kernels/elementwise/transcendental.py": {
        (
            "_logaddexp_reference",
            "first = np.real(a) >= np.real(b)",
            "first = (np.real(a) > np.real(b))",
        ): "of equal real parts either may come first",
    },
    "kernels/factorizations/qr.py": {
        (
            "_rule",
            "if m >= n:",
            "if (m > n):",
        ): "of a square matrix no columns are left over, and the two ways are one",
    },
    "kernels/images/resampling_bytes.py": {
        (
            "_bytes_kernel",
            "acc += tl.where(inside & there, value * whole, 0)",
            "acc += tl.where((inside | there), value * whole, 0)",
        ): "where either does not hold, the value is loaded as 0",
    },
    "kernels/indexing/index.py": {
        (
            "_index_get_cpu",
            "if x.flags.c_contiguous and (indices[0].ndim < 2 or indices[0].flags.c_contiguous):",
            "if False:",
        ): "it is in that order, which the longer way finds out",
    },
    "kernels/normalization/channels_cpu.py": {
        (
            "backward",
            "if dm is None and dv is None and takes_rows(planes):",
            "if False:",
        ): "numpy computes these, only slower",
    },
    "kernels/normalization/channels_llvm.py": {
        (
            "added",
            "return sums",
            "return None",
        ): "numpy computes these, only slower",
        (
            "walk_for",
            "crowded = s <= SHORT and n > MANY_PARTS and c * s % PAGE == 0",
            "crowded = s <= SHORT and n > MANY_PARTS and (c * s // PAGE) == 0",
        ): "both walks give the same sums",
    },
    "kernels/optimizers/cpu_table.py": {
        (
            "is_dense",
            "if x.flags.c_contiguous or x.flags.f_contiguous:",
            "if False:",
        ): "the strides say the same, only slower",
    },
    "kernels/reductions/histograms.py": {
        (
            "_count_kernel",
            'tl.atomic_add(counts + key, tl.full((BLOCK,), 1, tl.int64), mask=(i < n) & (key >= 0) & (key < size), sem="relaxed")',
            'tl.atomic_add(counts + key, tl.full((BLOCK,), 1, tl.int64), mask=((i <= n)) & (key >= 0) & (key < size), sem="relaxed")',
        ): "behind the last key -1 is loaded, which is not counted",
        (
            "_uniform_bin",
            "place = maths.where(place > bins - 1.0, bins - 1.0, place)",
            "place = maths.where(place > bins - 2.0, bins - 1.0, place)",
        ): "a place is a whole number: above bins - 2 is bins - 1 or more",
    },
    "kernels/special/sample_gradients.py": {
        (
            "_dirichlet_reference",
            "inside = (x > 0) & (x <= 1) & (a > 0) & (b > 0) & (total < np.inf)",
            "inside = (x > 0) & (x <= 1) & ((a >= 0)) & (b > 0) & (total < np.inf)",
        ): "of a = 0 the integral is NaN, too",
    },
    "kernels/convolution/cpu.py": {
        (
            "way_of",
            "in_tiles = not columns.are_image(plan) and tiles_llvm.fits(dtype, plan, out // groups * taps)",
            "in_tiles = not columns.are_image(plan) and (tiles_llvm.fits(plan, dtype, out // groups * taps))",
        ): "the columns give the same, only slower",
        (
            "input_gradient",
            "if dx.size == 0:",
            "if False:",
        ): "an array without elements is filled with nothing",
    },
    "kernels/convolution/depthwise_llvm.py": {
        (
            "weight_gradient",
            "threads.run_shared(function, x.shape[1], channels, g.size < _ALONE)",
            "threads.run_shared(function, x.shape[1], channels, (g.size <= _ALONE))",
        ): "whether threads share the work changes the speed alone",
    },
    "kernels/convolution/gpu/depthwise.py": {
        (
            "_depthwise_kernel",
            "good, row = inside & good_h, _offset(h, x_h, LONG)",
            "good, row = inside & good_h, (_offset(x_h, h, LONG))",
        ): "the two are multiplied",
    },
    "kernels/factorizations/exponential.py": {
        (
            "_scaled_and_squared",
            "times = np.maximum(np.ceil(np.log2(norms / reach[last])), 0).astype(np.int64) if degree == last else np.zeros(len(a), np.int64)",
            "times = np.maximum(np.ceil(np.log2((norms * reach[last]))), 0).astype(np.int64) if degree == last else np.zeros(len(a), np.int64)",
        ): "more squarings of a smaller matrix give the same",
    },
    "kernels/images/grid_sampling/gpu.py": {
        (
            "_reflect",
            "sign = tl.where(span > 0, tl.where(odd, -sign, sign), 0.0)",
            "sign = tl.where((span >= 0), tl.where(odd, -sign, sign), 0.0)",
        ): "of one cell, whose span is 0, a step of the grid is no step in the image",
    },
}
