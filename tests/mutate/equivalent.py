"""Faults that change no answer, each with its reason: they are not planted."""

from __future__ import annotations

import ast
import re

from tests.mutate.faults import Fault

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
    },
    "kernels/parts/elementwise.py": {
        (
            "run",
            "if len(numbers) and len(arrays):  # the kernel sees arrays first",
            "if (len(numbers) or len(arrays)):  # the kernel sees arrays first",
        ): "of one kind alone every operand keeps its place",
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
    },
    "tritensor/dispatch/lanes.py": {
        (
            "call",
            "elif not laid_by_numpy and not (result.flags.c_contiguous and (in_c_order or x.flags.c_contiguous)):",
            "elif (not laid_by_numpy or not (result.flags.c_contiguous and (in_c_order or x.flags.c_contiguous))):",
        ): "settled leaves what lies as it should",
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
    },
    "kernels/losses/cross_entropy/cpu.py": {
        (
            "_peaks",
            "step = max(CACHE // max(x.shape[1], 1), 1)",
            "step = max(CACHE // max(x.shape[1], 1), 2)",
        ): "blocks of any number of rows give the same answer",
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
            "_integer_floor_divide",
            "return tl.where((r != 0) & ((r < 0) != (b < 0)), q - 1, q)",
            "return tl.where((r != 0) & ((r < 1) != (b < 0)), q - 1, q)",
        ): "a remainder is whole, and not 0 here",
    },
}


# Functions of two arguments that may be exchanged: numpy's, Triton's, Python's and the ops' of these names.
COMMUTING = (
    "add", "mul", "multiply", "maximum", "minimum", "max", "min", "equal", "not_equal", "eq", "ne", "logical_and", "logical_or", "logical_xor",
    "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "hypot", "_times", "_words", "blocks_used",
)  # fmt: skip
# What a launch may be given in any number: it changes the speed alone.
SPEED = ("num_warps", "num_stages", "warps", "stages", "group", "GROUP")


def commutes(fault: Fault, old: ast.expr | None) -> str:
    if fault.kind == "arguments swapped" and isinstance(old, ast.Call):
        called = old.func.attr if isinstance(old.func, ast.Attribute) else old.func.id if isinstance(old.func, ast.Name) else ""
        if called in COMMUTING:
            return f"{called} does not ask for the order of its arguments"
    return ""


def speed(fault: Fault, source: bytes) -> str:
    """A number given as the warps or stages of a launch."""
    line = source[: fault.start].rpartition(b"\n")[2].decode()
    keyword = re.search(r"(\w+)(?:: int = |=)$", line)
    if fault.kind == "constant" and keyword and keyword.group(1) in SPEED:
        return f"{keyword.group(1)} of a launch changes its speed alone"
    return ""


def added_zero(fault: Fault, old: ast.expr | None) -> str:
    """Kernels add a `zero` of the wanted type to promote; taken away it promotes as well."""
    sum_ = (
        isinstance(old, ast.BinOp) and isinstance(old.op, ast.Add | ast.Sub) and isinstance(old.right, ast.Name) and old.right.id == "zero"
    )
    return "zero is added for its type alone" if sum_ and fault.kind == "arithmetic" else ""


_TOGETHER = re.compile(
    r"\b(sum|max|min|reduce|associative_scan|dot|cumsum|fold|first|report|online|sort\w*|histogram|argm\w+|atomic_\w+)\("
)


def masked_lane(fault: Fault, source: bytes) -> str:
    """What a load gives where its mask is off, in a kernel that never brings elements together and stores by the same mask."""
    load = re.search(r"tl\.load\(.*mask=(\w+), other=-?$", source[: fault.start].rpartition(b"\n")[2].decode())
    node = next((n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == fault.function), None)
    if fault.kind != "constant" or load is None or node is None:
        return ""
    text = ast.unparse(node)
    masks = [re.search(r"mask=(\w+)\)$", line) for line in text.splitlines() if "tl.store(" in line]
    alone = masks and all(m is not None and m.group(1) == load.group(1) for m in masks) and not _TOGETHER.search(text)
    return "the lane is not stored, and no element meets another" if alone else ""


def zero_added(fault: Fault, source: bytes) -> str:
    """`sum(s * n for ... if s > 0)`: what is 0 adds nothing on either side."""
    begin = source.rfind(b"\n", 0, fault.start) + 1
    summed = re.search(r"sum\((\w)[^()]*(?:\([^()]*\)[^()]*)* for .* if $", source[begin : fault.start].decode())
    old = source[fault.start : fault.end].decode()
    same = (
        summed
        and fault.kind == "comparison"
        and old in (f"{summed.group(1)} < 0", f"{summed.group(1)} > 0")
        and "=" in fault.new
        and "==" not in fault.new
    )
    return "what is 0 adds nothing" if same and "!=" not in fault.new else ""


def unknown_size(fault: Fault, source: bytes) -> str:
    """numpy takes any negative number in reshape for the size that it is to find."""
    before = source[: fault.start].rpartition(b"\n")[2].decode()
    size = fault.kind == "constant" and "reshape(" in before and (before + fault.new).replace("(", "").endswith("-2")
    return "numpy finds the size for any negative number" if size else ""


# (file, function): what tests hold errors against, and no answer: functions given as condition=.
SCALES = {
    ("kernels/losses/cross_entropy/cpu.py", "gradient_scales"), ("kernels/normalization/layer_norm.py", "_gradient_scales"),
    ("kernels/normalization/softmax.py", "_log_condition"),
}  # fmt: skip


def attribute_default(fault: Fault, source: bytes) -> str:
    """The default of an attribute in a corner over CudaArrays: a call has all attributes filled in from the reference's signature."""
    tree = ast.parse(source)
    node = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == fault.function), None)
    if fault.kind != "constant" or node is None or fault.function.lstrip("_") != "backward":
        return ""
    lines = source.splitlines(keepends=True)
    starts = {sum(map(len, lines[: d.lineno - 1])) + d.col_offset for d in node.args.kw_defaults if d is not None}
    first = node.args.args[0].annotation if node.args.args else None
    if fault.start in starts and first is not None and "CudaArray" in ast.unparse(first):
        return "dispatch hands a corner every attribute"
    return ""


# What the launch rules, and numpy in blocks, are free to choose: any size that is allowed gives the same answer (tests/kernels/test_tiles.py forces others).
SIZES = {
    "kernels/parts/launch_rules.py": ("gemm_tiles",),
    "kernels/parts/rows/row_tiles.py": ("row_tiles",),
    "kernels/convolution/conv2d/cpu.py": ("_gathered",),
    "kernels/parts/cpu/blocks.py": ("_evaluate",),
    "kernels/parts/axes.py": ("along_host", "blocks", "splits_of"),
}
CUTS = re.compile(
    r"PROGRAMS|< 264 and|<= 1024|first.size <= 2 \* BLOCK|SHARED|LONGEST|_BLOCK|> 16\b|block_[mn] >|\bwarps = |\bstages = |\bsplit = |\bshare = |\barea = "
)


def cut(fault: Fault, source: bytes) -> str:
    """A comparison or a number by which a launch rule, or a loop over blocks, picks one of several allowed sizes."""
    begin, end = source.rfind(b"\n", 0, fault.start) + 1, source.find(b"\n", fault.end)
    line = source[begin:end].decode()
    if fault.kind in ("constant", "comparison", "arithmetic") and fault.function in SIZES.get(fault.path, ()) and CUTS.search(line):
        return "it picks one of several sizes that all give this answer"
    return ""


def lines(fault: Fault, source: bytes) -> tuple[str, str, str]:
    """The function in which a fault begins, and its line, without and with it."""
    planted = fault.planted(source)
    begin = source.rfind(b"\n", 0, fault.start) + 1
    without, with_it = (
        source[begin : source.find(b"\n", fault.start)],
        planted[begin : planted.find(b"\n", fault.start + len(fault.new.encode()))],
    )
    return fault.function, without.decode().strip(), with_it.decode().strip()


def reason(fault: Fault, source: bytes) -> str:
    """Why a fault changes no answer; "" where it does."""
    text = source[fault.start : fault.end].decode()
    try:
        old = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        old = None
    listed = EQUIVALENT.get(fault.path, {}).get(lines(fault, source), "")
    if (fault.path, fault.function) in SCALES:
        return "a scale that tests hold errors against is no answer"
    by_text = listed or commutes(fault, old) or added_zero(fault, old)
    return (
        by_text
        or unknown_size(fault, source)
        or zero_added(fault, source)
        or masked_lane(fault, source)
        or speed(fault, source)
        or cut(fault, source)
        or attribute_default(fault, source)
    )
