"""Faults that change no answer, by rule or listed, each with its reason: they are not planted."""

from __future__ import annotations

import ast
import re

from tests.mutate.faults import Fault
from tests.mutate.listed import EQUIVALENT

# Functions of two arguments that may be exchanged: numpy's, Triton's, Python's and the ops' of these names.
COMMUTING = (
    "add", "mul", "multiply", "maximum", "minimum", "max", "min", "equal", "not_equal", "eq", "ne", "logical_and", "logical_or", "logical_xor",
    "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "hypot", "_times", "broadcast_shapes",
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


def masked_row(fault: Fault, source: bytes) -> str:
    """What a load gives for the rows outside of the array, in a kernel that stores by the rows inside and sums along rows alone."""
    load = re.search(r"load\(.*mask=inside, other=-?$", source[: fault.start].rpartition(b"\n")[2].decode())
    node = next((n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == fault.function), None)
    if fault.kind != "constant" or load is None or node is None:
        return ""
    lines = ast.unparse(node).splitlines()
    stored = all("inside" in line or "lanes" in line for line in lines if "store(" in line)
    return "the row is not stored, and no row meets another" if stored and not any("axis=0" in line for line in lines) else ""


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


_SCALE = "a scale that tests hold errors against is no answer"  # functions given as condition=
# (file, function): why nothing that it returns changes an answer.
FUNCTIONS = {
    ("kernels/losses/cross_entropy/cpu.py", "gradient_scales"): _SCALE,
    ("kernels/normalization/batch_norm.py", "_given_scales"): _SCALE,
    ("kernels/normalization/batch_norm.py", "_gradient_scales"): _SCALE,
    ("kernels/normalization/group_norm.py", "_gradient_scales"): _SCALE,
    ("kernels/normalization/activated/batch_norm.py", "_gradient_scales"): _SCALE,
    ("kernels/normalization/activated/batch_norm.py", "_by_scales"): _SCALE,
    ("kernels/normalization/activated/group_norm.py", "_gradient_scales"): _SCALE,
    ("kernels/normalization/layer_norm.py", "scales"): _SCALE,
    ("kernels/normalization/softmax.py", "_log_condition"): _SCALE,
    ("tritensor/tensor/functions/linear/einsum.py", "_comes_first"): "either operand of a product may come first",
}


def no_machine_code(fault: Fault, source: bytes) -> str:
    """None in place of a compiled loop: numpy computes where there is no machine code."""
    dropped = fault.kind == "return value dropped" and b"nest.compile(" in source[fault.start : fault.end]
    return "numpy computes where there is no machine code" if dropped else ""


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
    "kernels/convolution/columns.py": ("_blocks",),
    "kernels/convolution/gpu/rules.py": ("weight_tiles", "cut"),
    "kernels/parts/cpu/blocks.py": ("evaluate",),
    "kernels/parts/gemm.py": ("gemm",),
    "kernels/normalization/row_gradients.py": ("row_walk", "_partial_sums"),
    "kernels/parts/tapes/pointwise.py": ("_plan", "_tile_shape"),
    "kernels/parts/axes.py": ("along_host", "blocks", "splits_of"),
    "kernels/parts/configs/spaces.py": ("tiles_space", "rows_space", "blocks_space", "numbers_space"),
    "kernels/parts/products/rules.py": ("product_tiles", "_resident"),
    "kernels/parts/products/spaces.py": ("described_space",),
    "kernels/reductions/distances.py": ("_by_coordinates",),
    "kernels/sorting/rows.py": ("_space",),
}
CUTS = re.compile(
    r"PROGRAMS|< 264 and|<= 1024|first.size <= 2 \* BLOCK|SHARED|LONGEST|_BLOCK|> 16\b|block_[mn] >|\bwarps = |\bstages = |\bsplit = |\bshare = |\barea = |\baligned = |\bper_access = |\blimit, tile = |\bcrossed = |\brule = Blocks|\bbesides = |\bheld = |\bstep = |\blarge = |\bstages=s\)|\bgroup=g\)|\bsome = |\bchanged = |return \[[nt] for [nt] in "
)


def cut(fault: Fault, source: bytes) -> str:
    """A comparison or a number by which a launch rule, or a loop over blocks, picks one of several allowed sizes."""
    begin, end = source.rfind(b"\n", 0, fault.start) + 1, source.find(b"\n", fault.end)
    line = source[begin:end].decode()
    if (
        fault.kind in ("constant", "comparison", "arithmetic", "arguments swapped")
        and fault.function in SIZES.get(fault.path, ())
        and CUTS.search(line)
    ):
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
    by_text = listed or FUNCTIONS.get((fault.path, fault.function), "") or commutes(fault, old) or added_zero(fault, old)
    return (
        by_text
        or unknown_size(fault, source)
        or zero_added(fault, source)
        or masked_lane(fault, source)
        or masked_row(fault, source)
        or speed(fault, source)
        or cut(fault, source)
        or no_machine_code(fault, source)
        or attribute_default(fault, source)
    )
