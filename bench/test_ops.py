"""The op table under pytest-benchmark: `python -m pytest bench --benchmark-only [--op softmax] [-k "softmax and cpu"]`.

An id says what is timed: softmax-forward-float32-size0-cpu. `extra_info` in the JSON has the input, the processor, GB/s, TFLOP/s and the config;
bench/walk.py says what the times mean on each device.
"""

from __future__ import annotations

from typing import Any

from bench.walk import Call, ready


def test_op(call: Call, benchmark: Any) -> None:
    made = ready(call)
    benchmark.extra_info.update(made.facts)
    with made.lib.working():
        benchmark(made.run())
    if benchmark.disabled:  # --benchmark-disable, or workers of xdist: the call was made once
        return
    on_gpu = call.device == "cuda"
    benchmark.extra_info.update(made.on_device() if on_gpu else made.rates(benchmark.stats.stats.median))
