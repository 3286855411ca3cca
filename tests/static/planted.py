"""Planted kernels for the static report: one in order, and the same made worse in each way that the report must see.

`python -m tests.static.planted` prints what bench.static finds of each, as JSON. It needs a process without TRITON_INTERPRET.
"""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import triton
import triton.language as tl

from bench import static, static_table
from bench.launches import Launch
from tritensor.cuda.arguments import Specialization


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


# does not compile: one shape does not broadcast to the other
@triton.jit
def _broken_kernel(y, x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) + tl.load(x + tl.arange(0, 2 * BLOCK)))


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
    "broken": (_spec(_copy_kernel, 2, True, 4, BLOCK=1024), _spec(_broken_kernel, 2, True, 4, BLOCK=1024)),
}  # fmt: skip


def _launch(name: str, spec: Specialization) -> Launch:
    return Launch("add", "forward", "float32", name, 1, spec)


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
    print(json.dumps({"planted": found, "crash": [k["uses"] for k in survived]}))


if __name__ == "__main__":
    main()
