"""Planted kernels for the static report: one in order, and the same made worse in each way that the report must see.

`python -m tests.static.planted` prints what bench static finds of each, as JSON. It needs a process without TRITON_INTERPRET.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from typing import Any

import numpy as np
import triton
import triton.language as tl

from bench.static import command as static
from bench.static import launches
from bench.static import table as static_table
from bench.static.launches import Launch
from tritensor.cuda.compiler import sass
from tritensor.cuda.compiler.arguments import Specialization
from tritensor.cuda.compiler.compile import compile
from tritensor.cuda.compiler.kernel_report import disassemble
from tritensor.tools.dry_run import Shapes


# y = x + 1, a tile at a time
@triton.jit
def _copy_kernel(y, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) + 1, mask=at < n)


# y[i] = sum over k of x[i, k], with all of the tile in registers before its first use
@triton.jit
def _hoard_kernel(y, x, n, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    tile = tl.load(x + rows * n + cols)  # (BLOCK, BLOCK)
    other = tl.load(x + cols * n + rows)
    for _ in range(n):
        tile = tl.exp(tile) * other
        other = tl.sqrt(other) + tile
    tl.store(y + rows * n + cols, tile + other)


# c = a @ b for one tile; DOT says whether tensor cores multiply
@triton.jit
def _product_kernel(c, a, b, n, BLOCK: tl.constexpr, DOT: tl.constexpr):
    rows = tl.arange(0, BLOCK)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    if DOT:
        x = tl.load(a + rows * n + cols)
        y = tl.load(b + rows * n + cols)
        tl.store(c + rows * n + cols, tl.dot(x, y))
    else:
        total = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(BLOCK):
            total += tl.load(a + rows * n + k).to(tl.float32) * tl.load(b + k * n + cols).to(tl.float32)
        tl.store(c + rows * n + cols, total)


# y[row] = sum over columns of x[row, column], a tile at a time; EXTRA makes the loop worse
@triton.jit
def _rows_kernel(y, x, n, BLOCK: tl.constexpr, EXTRA: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n, BLOCK):
        v = tl.load(x + row * n + k + i)
        if EXTRA == "scalar":
            v *= tl.load(x + k)
        if EXTRA == "work":
            v = tl.exp(v) * v + tl.sqrt(v)
        total += v
    tl.store(y + row * BLOCK + i, total)


# y = x, half of it in single elements
@triton.jit
def _halves_kernel(y, x, n, BLOCK: tl.constexpr, NARROW: tl.constexpr):
    i = tl.arange(0, BLOCK)
    first = tl.load(x + i)
    second = tl.load(x + n // 3 + i) if NARROW else tl.load(x + n + i)
    tl.store(y + i, first + second)


# does not compile: one shape does not broadcast to the other
@triton.jit
def _broken_kernel(y, x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) + tl.load(x + tl.arange(0, 2 * BLOCK)))


@triton.jit(debug=True)
def _asserting_kernel(y, n):
    tl.device_assert(n > 0, "nothing to do")
    tl.store(y, n)


@triton.jit
def _silent_kernel(y, n):
    tl.device_assert(n > 0, "nothing to do")
    tl.store(y, n)


def _spec(kernel: Any, pointers: int, aligned: bool, warps: int, kind: str = "fp32", **constants: Any) -> Specialization:
    mark = ":16" if aligned else ""
    first = "*fp32" + mark  # the result
    types = (first, *[f"*{kind}{mark}"] * (pointers - 1), "i32" + mark, *["constexpr"] * len(constants))
    values = tuple(((pointers + 1 + i,), v) for i, v in enumerate(constants.values()))
    return Specialization(kernel, types, values, tuple(type(v) for _, v in values), warps, 2)


# name: (what the table says of it, what it is now)
PLANTED = {
    "same": (_spec(_copy_kernel, 2, True, 4, BLOCK=1024), _spec(_copy_kernel, 2, True, 4, BLOCK=1024)),
    "narrow": (_spec(_copy_kernel, 2, True, 4, BLOCK=1024), _spec(_copy_kernel, 2, False, 4, BLOCK=1024)),
    "spill": (_spec(_hoard_kernel, 2, True, 8, BLOCK=32), _spec(_hoard_kernel, 2, True, 1, BLOCK=64)),
    "tensor": (_spec(_product_kernel, 3, True, 4, "bf16", BLOCK=64, DOT=True), _spec(_product_kernel, 3, True, 4, "bf16", BLOCK=64, DOT=False)),
    "scalar": (_spec(_rows_kernel, 2, True, 4, BLOCK=512, EXTRA=""), _spec(_rows_kernel, 2, True, 4, BLOCK=512, EXTRA="scalar")),
    "work": (_spec(_rows_kernel, 2, True, 4, BLOCK=512, EXTRA=""), _spec(_rows_kernel, 2, True, 4, BLOCK=512, EXTRA="work")),
    "halves": (_spec(_halves_kernel, 2, True, 4, BLOCK=512, NARROW=False), _spec(_halves_kernel, 2, True, 4, BLOCK=512, NARROW=True)),
    "broken": (_spec(_copy_kernel, 2, True, 4, BLOCK=1024), _spec(_broken_kernel, 2, True, 4, BLOCK=1024)),
}  # fmt: skip


def _launch(name: str, spec: Specialization) -> Launch:
    return Launch("add", "forward", "float32", name, 1, spec)


class _Single:
    """Draws as the recorder's generator, but float32 whatever the row is."""

    def __getattr__(self, name: str) -> Any:
        draw = getattr(Shapes(), name)
        return lambda *args: np.broadcast_to(np.float32(0.5), np.shape(draw(*args)))


def _other_type() -> dict[str, list[str]]:
    """The faults of softmax's bfloat16 rows on timed sizes, drawn as they should be and in float32."""
    found = {}
    for name, generator in (("right", Shapes), ("wrong", _Single)):
        launches.Shapes = generator  # type: ignore[attr-defined]
        rows = [one for one in launches.collect(["softmax"], ["bfloat16"])[0] if one.timed]
        found[name] = [fault for one in rows[:1] for fault in static.faults(static.measure(one, 90))]
    return found


def _decoded() -> list[bool]:
    """Whether what is read off machine code is what the disassembler shows, on each architecture."""
    said = []
    for arch in (80, 90, 100):
        for spec in (
            PLANTED["scalar"][1],
            PLANTED["halves"][1],
            PLANTED["tensor"][0],
            _spec(_copy_kernel, 2, False, 4, "bf16", BLOCK=1024),
        ):
            cubin = compile(spec, arch).asm["cubin"]
            found, text = sass.read(cubin, arch), disassemble(cubin)
            code = re.findall(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)((?:\.[A-Z0-9_]+)*)([^;]*);", text)
            real = [(int(at, 16) // 16, name, f"{parts}.", rest) for at, name, parts, rest in code if name != "NOP"]
            for names, counted in ((("LDG", "LD", "LDGSTS"), found.loads), (("STG", "ST"), found.stores)):
                widths = [
                    next((w for w in ("8", "16", "64", "128") if re.search(rf"\.[US]?{w}\.", parts)), "32")
                    for _, n, parts, _ in real
                    if n in names
                ]
                said.append(dict(Counter(widths)) == counted)
            jumps = [(int(rest.rpartition("0x")[2], 16) // 16, at) for at, name, _, rest in real if name == "BRA"]
            ends = [int(at, 16) // 16 for at in re.findall(r"/\*([0-9a-f]{4,})\*/\s+EXIT\b", text)]
            first, last = sass.hot_loop(sass.nested([(to, at + 1) for to, at in jumps if to < at], ends))
            said.append(found.loop == sum(first <= at < last for at, *_ in real) and found.instructions == len(real))
    return said


def _asserts() -> list[bool]:
    """Whether the machine code of a kernel compiled for debugging, and of one that is not, holds an assertion."""
    return ["__assertfail" in compile(_spec(k, 1, True, 1), 90).asm["ptx"] for k in (_asserting_kernel, _silent_kernel)]


def main() -> None:
    """Each pair through the report, then a run in which one compiler process dies."""
    found = {}
    for name, specs in PLANTED.items():
        before, after = static.run([_launch(name, s) for s in specs], [(0, 90), (1, 90)], 1)
        was, now = (static_table.parse(k["uses"]) for k in (before, after))
        found[name] = {"was": str(was), "now": str(now), "worse": static_table.regressions(90, was, now), "faults": static.faults(after)}
    compile_one = static.measure

    def crash(launch: Launch, arch: int) -> dict[str, Any]:
        if launch.call == "crash":
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel's memory killer does
        return compile_one(launch, arch)

    static.measure = crash
    good, bad = PLANTED["narrow"]
    survived = static.run(
        [_launch("size0", good), _launch("crash", bad), _launch("sample0", PLANTED["spill"][0])], [(0, 90), (1, 90), (2, 90)], 1
    )
    static.measure = compile_one
    print(
        json.dumps(
            {"planted": found, "crash": [k["uses"] for k in survived], "type": _other_type(), "asserts": _asserts(), "decoded": _decoded()}
        )
    )


if __name__ == "__main__":
    main()
