"""Flops and bytes: of every op that counts them, of backward, against the roof of this machine; FlopCounterMode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.loops import each
from tritensor import nn
from tritensor.ops.table import registry
from tritensor.profiler import ProfilerActivity, profile
from tritensor.profiler.records import ArrayInfo
from tritensor.profiler.results import roofline
from tritensor.profiler.results.roofline import count_work

CPU = [ProfilerActivity.CPU]
COUNTED = sorted(n for n, op in registry.items() if op.work is not None)


@each("name", COUNTED)
def test_shapes_and_types_are_enough_to_count(name: str) -> None:
    op = registry[name]
    for sample in op.samples(np.random.default_rng(0))[:4]:
        wanted = op.work(*sample.inputs, **{**op.attrs, **sample.attrs})  # type: ignore[misc]
        given = tuple([ArrayInfo(x.shape, x.dtype) if isinstance(x, np.ndarray) else x for x in sample.inputs])
        assert count_work(op, given, sample.attrs) == (int(wanted.flops), int(wanted.bytes))


def counted(run: Any) -> dict[str, tuple[int, int]]:
    with profile(activities=CPU, with_flops=True) as prof:
        run()
    return {e.key: (e.flops, e.nbytes) for e in prof.key_averages() if e.flops}


def test_products_forward_and_backward() -> None:
    a, b = tt.rand(5, 7, requires_grad=True), tt.rand(7, 3, requires_grad=True)
    c = tt.rand(7, 3)
    n, moved = 2 * 5 * 7 * 3, 4 * (35 + 21 + 15)
    assert counted(lambda: (a @ b).sum().backward())["MmBackward0"] == (2 * n, 2 * moved)
    assert counted(lambda: (a @ c).sum().backward())["MmBackward0"] == (n, moved)
    assert counted(lambda: a @ b)["matmul"] == (n, moved)


def test_a_bias_is_no_product() -> None:
    x, layer = tt.rand(5, 7, requires_grad=True), nn.Linear(7, 3)
    found = counted(lambda: layer(x).sum().backward())
    assert found["linear"][0] == 2 * 5 * 7 * 3 + 15
    assert found["AddmmBackward0"][0] == 2 * 2 * 5 * 7 * 3


def test_the_roof_of_this_machine() -> None:
    x = tt.rand(300, 300)
    for _ in range(6):  # other programs on its cores may hold up the measurement, and leave the product alone
        roofline._measured.clear()
        with profile(activities=CPU, roofline=True) as prof:
            x @ x
            x.exp()
        rows = {e.key: e for e in prof.key_averages()}
        if rows["matmul"].roofline < 2:
            break
    assert rows["matmul"].flops == 2 * 300**3
    assert rows["matmul"].gbs == pytest.approx(rows["matmul"].nbytes / rows["matmul"].cpu_time_total / 1e3)
    assert rows["matmul"].tflops == pytest.approx(rows["matmul"].flops / rows["matmul"].cpu_time_total / 1e6)
    assert 0 < rows["matmul"].roofline < 2
    assert rows["exp"].roofline > 0
    table = prof.key_averages().table()
    assert "Roofline of cpu" in table
    assert "TFLOP/s float32" in table


def test_without_being_asked_nothing_is_counted() -> None:
    x = tt.rand(3, 3)
    with profile(activities=CPU, record_shapes=True) as prof:
        x @ x
    table = prof.key_averages().table()
    assert "Roofline" not in table
    assert "FLOPs" not in table
    assert "Bytes" not in table


def test_an_op_that_counts_nothing_shows_none() -> None:
    with profile(activities=CPU, with_flops=True) as prof:
        tt.rand(4).sort()
        tt.rand(3, 3) @ tt.rand(3, 3)
        tt.linalg.det(tt.rand(3, 3))
    table = prof.key_averages().table()
    assert next(line for line in table.splitlines() if line.startswith("det")).split()[-4:] == ["--"] * 4
