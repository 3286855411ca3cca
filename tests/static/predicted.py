"""Predictions of real kernels, printed as JSON: `python -m tests.static.predicted`, in a process without TRITON_INTERPRET."""

from __future__ import annotations

import json
import math
import os
import signal
from typing import Any

from tests.static import planted
from tritensor.cuda.compiler import prediction
from tritensor.cuda.compiler.recorded_call import Call
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ops.array import CudaArray, empty
from tritensor.ops.table import registry

GPU = device("cuda", 0)


def array(*shape: int, dtype: str = "bfloat16") -> CudaArray:
    return empty(shape, dtypes.as_dtype(dtype).numpy, GPU)


def many() -> dict[str, Any]:
    """Four launches in child processes, of which three fail, each in its own way."""
    calls = {}
    for name, kernel, n, kind in (
        ("good", planted._copy_kernel, 1024, "fp32"),
        ("broken", planted._broken_kernel, 1024, "fp32"),
        ("killed", planted._silent_kernel, 1024, "fp32"),
        ("large", planted._product_kernel, 256, "bf16"),
    ):
        pointers = 1 if name == "killed" else 3 if name == "large" else 2
        constants: dict[str, Any] = {} if name == "killed" else {"BLOCK": n} | ({"DOT": True} if name == "large" else {})
        spec = planted._spec(kernel, pointers, True, 16 if name == "large" else 4, kind, **constants)
        values = (*[("*", 4 * n)] * pointers, ("i32", n))
        calls[name] = Call(spec, (1,), values)
    forecast_one = prediction.forecast

    def crash(call: Call, arch: int) -> prediction.Forecast:
        if call.spec.kernel is planted._silent_kernel:
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel's memory killer does
        return forecast_one(call, arch)

    prediction.forecast = crash
    names = list(calls)
    found = {names[n]: f for n, f in prediction.forecast_all(list(calls.values()), 90, 1)}
    prediction.forecast = forecast_one
    return {k: {"failure": f.failure, "microseconds": f.microseconds if math.isfinite(f.microseconds) else None} for k, f in found.items()}


def main() -> None:
    active.use(RecordingRuntime())  # type: ignore[arg-type]
    calls: dict[str, tuple[str, tuple[CudaArray, ...], dict[str, Any]]] = {
        "add": ("add", (array(1 << 24), array(1 << 24)), {}),
        "matmul": ("matmul", (array(4096, 4096), array(4096, 4096)), {}),
        "matmul_small_k": ("matmul", (array(4096, 64), array(64, 4096)), {}),
        "softmax_long": ("softmax", (array(1024, 65536),), {"dim": 1}),
        "sum": ("sum", (array(4096, 8192, dtype="float32"),), {"dim": (1,)}),
    }
    found = {}
    for arch in (80, 90, 100):
        recorder = RecordingRuntime((arch // 10, arch % 10))
        active.use(recorder)  # type: ignore[arg-type]
        for name, (op, inputs, attrs) in calls.items():
            recorder.calls = []
            forward = registry[op].forward
            assert forward is not None
            forward(*inputs, **attrs)
            made, predicted, failure = prediction.forecast(recorder.calls[0], arch)
            assert made is not None
            assert predicted is not None
            assert not failure
            found[f"{name} {arch}"] = predicted._asdict() | {"loops": [loop._asdict() for loop in made.loops], "hot": made.loop}
    active.use(RecordingRuntime())  # type: ignore[arg-type]
    print(json.dumps(found | {"all": many()}))


if __name__ == "__main__":
    main()
