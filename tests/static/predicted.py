"""Predictions of real kernels, printed as JSON: `python -m tests.static.predicted`, in a process without TRITON_INTERPRET."""

from __future__ import annotations

import json
from typing import Any

from tritensor import dtypes
from tritensor.array import CudaArray, empty
from tritensor.cuda.compiler.prediction import forecast
from tritensor.cuda.runtime import serving
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
from tritensor.device import device
from tritensor.table import registry

GPU = device("cuda", 0)


def array(*shape: int, dtype: str = "bfloat16") -> CudaArray:
    return empty(shape, dtypes.as_dtype(dtype).numpy, GPU)


def main() -> None:
    recorder = RecordingRuntime()
    serving.use(recorder)  # type: ignore[arg-type]
    calls: dict[str, tuple[str, tuple[CudaArray, ...], dict[str, Any]]] = {
        "add": ("add", (array(1 << 24), array(1 << 24)), {}),
        "matmul": ("matmul", (array(4096, 4096), array(4096, 4096)), {}),
        "matmul_small_k": ("matmul", (array(4096, 64), array(64, 4096)), {}),
        "softmax_long": ("softmax", (array(1024, 65536),), {"dim": 1}),
        "sum": ("sum", (array(4096, 8192, dtype="float32"),), {"dim": (1,)}),
    }
    found = {}
    for name, (op, inputs, attrs) in calls.items():
        recorder.calls = []
        forward = registry[op].forward
        assert forward is not None
        forward(*inputs, **attrs)
        for arch in (80, 90, 100):
            made, prediction = forecast(recorder.calls[0], arch)
            found[f"{name} {arch}"] = prediction._asdict() | {"loops": [loop._asdict() for loop in made.loops], "hot": made.loop}
    recorder.calls = None
    print(json.dumps(found))


if __name__ == "__main__":
    main()
