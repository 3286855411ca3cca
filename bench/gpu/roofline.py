"""Limits of the GPU at hand, measured in the same run: copy bandwidth and matrix rates, with our kernels and with torch's."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bench.gpu.clock import Ours, measure
from bench.gpu.sizes import Tiled

COPY_BYTES = 512 << 20  # of one of the two arrays: ten times any second-level cache
MATRIX = {"bfloat16": 8192, "tf32": 4096, "float32": 4096}  # side of the square product that is timed


class Roof(NamedTuple):
    """GB/s of a copy (bytes read and written), and TFLOP/s of matrix products by type; the better of ours and torch's."""

    gbs: float
    tflops: dict[str, float]

    def least_ms(self, nbytes: float, flops: float, dtype: str) -> float:
        """The time below which a call with so much to move and to compute cannot come."""
        rate = self.tflops.get("bfloat16" if dtype in ("float16", "bfloat16") else "float32", 0.0)
        compute = flops / rate / 1e9 if rate and dtype in ("float16", "bfloat16", "float32") else 0.0
        return max(nbytes / self.gbs / 1e6 if self.gbs else 0.0, compute)


def copy_rate(lib: Ours, nbytes: int, seconds: float) -> float:
    """GB/s of a copy from one array to a new one."""
    x = lib.t.from_numpy(np.resize(Tiled().standard_normal(1 << 18), nbytes // 4)).to(lib.device)
    return 2 * nbytes / measure(lib, [lambda: x.clone()], seconds).ms / 1e6


def matrix_rate(lib: Ours, kind: str, side: int, seconds: float) -> float:
    """TFLOP/s of a square product of random matrices (zeros would let the clock rise) in bfloat16, tf32 or full float32."""
    before = lib.t.get_float32_matmul_precision()
    lib.t.set_float32_matmul_precision("high" if kind == "tf32" else "highest")
    try:
        a, b = (lib.t.from_numpy(Tiled(i).standard_normal((side, side))).to(lib.device) for i in range(2))
        if kind == "bfloat16":
            a, b = a.to(lib.t.bfloat16), b.to(lib.t.bfloat16)
        return 2 * side**3 / measure(lib, [lambda: lib.t.matmul(a, b)], seconds).ms / 1e9
    finally:
        lib.t.set_float32_matmul_precision(before)


def measure_roof(libs: list[Ours], seconds: float, nbytes: int = COPY_BYTES, sides: dict[str, int] | None = None) -> dict[str, Any]:
    """{"copy_gbs": {library: GB/s}, "tflops": {type: {library: TFLOP/s}}, "failed": [message]}."""
    found: dict[str, Any] = {"copy_gbs": {}, "tflops": {}, "failed": []}
    sides = sides or MATRIX

    def attempt(what: str, into: dict[str, float], lib: Ours, run: Any) -> None:
        try:
            into[lib.name] = round(run(), 2)
        except Exception as error:  # the rest of the run is worth having without it; the report says what is missing
            found["failed"].append(f"{what}, {lib.name}: {type(error).__name__}: {error}")
        lib.free()

    for lib in libs:
        attempt("copy", found["copy_gbs"], lib, lambda lib=lib: copy_rate(lib, nbytes, seconds))  # type: ignore[misc]
        for kind, side in sides.items():
            rates = found["tflops"].setdefault(kind, {})
            attempt(f"{kind} matmul", rates, lib, lambda lib=lib, k=kind, n=side: matrix_rate(lib, k, n, seconds))  # type: ignore[misc]
    return found


def best(measured: dict[str, Any]) -> Roof:
    """The roof that rows are held against: the better library's figure of each kind."""
    return Roof(max(measured["copy_gbs"].values(), default=0.0), {k: max(v.values(), default=0.0) for k, v in measured["tflops"].items()})
