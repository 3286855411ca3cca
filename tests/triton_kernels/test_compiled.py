"""kernel[grid] on the stub driver: compiled for what Triton would compile for, launched with the right parameters, found again without being looked at."""

from __future__ import annotations

import itertools
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

import tritensor as tt
from tests.stub import control
from tests.stub.child import on_stub
from tests.triton_kernels.kernels import described_inside, mapped, scaled_sum, square, strided_copy
from tritensor.cuda.compiler.arguments import Constant, specialize
from tritensor.cuda.compiler.pack import Pack, decode
from tritensor.ground.errors import LaunchError

ROOT = Path(__file__).resolve().parents[2]


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["stride"])
def with_hints(x, n, stride, flag, ratio, wide: tl.int64, nothing, other=3, BLOCK: tl.constexpr = 16):
    i = tl.arange(0, BLOCK)
    tl.store(x + i * stride, (i + other).to(tl.float32) * ratio, mask=(i < n) & flag & (wide > 0))


def triton_says(kernel: Any, *args: Any, **named: Any) -> tuple[dict[str, str], dict[Any, Any], set[Any]]:
    """Types, constants and what divides by 16, as Triton itself binds a call."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend
    from triton.runtime.jit import create_function_from_signature

    backend = make_backend(GPUTarget("cuda", 90, 32))
    binder = create_function_from_signature(kernel.signature, kernel.params, backend)
    bound, specialization, _ = binder(*args, debug=False, **named)
    names, values = kernel.arg_names, [getattr(bound[n], "value", bound[n]) for n in kernel.arg_names]
    kinds = [{"u1": "i1", "*u1": "*i1"}.get(kind, kind) for kind, _ in specialization]
    constants = {(i,): values[i] for i, kind in enumerate(kinds) if kind == "constexpr"}
    divisible = {(i,) for i, (_, marks) in enumerate(specialization) if isinstance(marks, str) and "D" in marks}
    return dict(zip(names, kinds, strict=True)), constants, divisible


def we_say(kernel: Any, *args: Any, **named: Any) -> tuple[dict[str, str], dict[Any, Any], set[Any]]:
    """The same of the launch that our kernel[grid] makes."""
    seen: list[Any] = []
    from tritensor.triton_kernels import subscript

    start, subscript.start = subscript.start, seen.append
    try:
        kernel[(1,)](*args, **named)
    finally:
        subscript.start = start
    spec, _ = specialize(seen[0])
    types = dict(zip(kernel.arg_names, [t.removesuffix(":16") for t in spec.types], strict=True))
    divisible = {(i,) for i, t in enumerate(spec.types) if t.endswith(":16")}
    return types, dict(spec.constants), divisible


NUMBERS = (0, 1, 2, 16, 17, -1, -16, 2**31 - 1, 2**31, 2**40, -(2**31), -(2**31) - 1)


@on_stub()
def test_a_call_is_compiled_as_triton_compiles_it() -> None:
    x = tt.empty(64, device="cuda")
    odd = x[1:]
    for n, stride in itertools.product(NUMBERS, (1, 2, 16)):
        for array in (x, odd):
            call = (array, n, stride, True, 1.0, n, None)
            assert we_say(with_hints, *call, BLOCK=16) == triton_says(with_hints, *call, BLOCK=16), (n, stride)
    for other in NUMBERS:
        call = (x, 3, 1, False, 16.0, 7, None, other)
        assert we_say(with_hints, *call) == triton_says(with_hints, *call), other
    for dtype in (tt.float16, tt.bfloat16, tt.float32, tt.float64, tt.int8, tt.uint8, tt.int16, tt.int64, tt.bool):
        y = tt.empty(32, device="cuda").to(dtype)
        assert we_say(scaled_sum, y, y, y, 32, 1.0, 32) == triton_says(scaled_sum, y, y, y, 32, 1.0, 32), dtype
    ours, theirs = we_say(mapped, x, x, 64, square, BLOCK=64), triton_says(mapped, x, x, 64, square, BLOCK=64)
    assert ours[0] == theirs[0]
    assert ours[1][3,] is square


@on_stub()
def test_parameters_reach_the_driver() -> None:
    x, y = tt.ones(100, device="cuda"), tt.ones(100, device="cuda")
    out = tt.empty_like(x)
    kernel = scaled_sum[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]), 3)](x, y, out, 100, 2.5, BLOCK=64, num_warps=2)
    (launch,) = [one for one in control.launches() if one.name == "scaled_sum"]
    assert launch.grid == (2, 3, 1)
    assert launch.block == (64, 1, 1)
    assert launch.values[:4] == (x.data_ptr(), y.data_ptr(), out.data_ptr(), 100)
    assert launch.floating(4) == 2.5
    assert kernel.n_regs > 0
    assert kernel.n_spills == 0
    assert ".entry scaled_sum" in kernel.asm["ptx"]
    assert kernel.metadata.num_warps == 2


@on_stub()
def test_later_calls_carry_their_own_arguments() -> None:
    tensors = [tt.full((256,), float(i), device="cuda") for i in range(6)]
    rng = np.random.default_rng(0)
    for _ in range(200):
        x, y, out = (tensors[i] for i in rng.integers(0, 6, 3))
        n, scale = int(rng.integers(2, 257)), float(rng.standard_normal())
        before = control.launch_count()
        if rng.integers(2):
            scaled_sum[(4,)](x, y, out, n, scale, BLOCK=64)
        else:  # by name, in another order
            scaled_sum[(4,)](scale=scale, out_ptr=out, n=n, BLOCK=64, y_ptr=y, x_ptr=x)
        assert control.launch_count() == before + 1
        last = control.launches()[-1]
        assert last.values[:4] == (x.data_ptr(), y.data_ptr(), out.data_ptr(), n)
        assert last.raw[4] == struct.pack("<f", scale)
    rows = tt.ones(4, 6, device="cuda")
    for stride in (1, 2, 16, 1):  # 1 is compiled in, and no parameter
        strided_copy[(2,)](rows, tensors[0], 2, 3, 6, stride)
        last = control.launches()[-1]
        assert last.values[:4] == (rows.data_ptr(), tensors[0].data_ptr(), 2, 3)
        assert last.values[4:6][: 2 - (stride == 1)] == (6, stride)[: 2 - (stride == 1)]


@on_stub()
def test_options_are_compiled_in_and_a_wrong_one_is_named() -> None:
    x = tt.ones(256, device="cuda")
    few = scaled_sum[(1,)](x, x, x, 256, 1.0, BLOCK=256, maxnreg=24)
    many = scaled_sum[(1,)](x, x, x, 256, 1.0, BLOCK=256)
    assert ".maxnreg 24" in few.asm["ptx"]
    assert ".maxnreg" not in many.asm["ptx"]
    with pytest.raises(LaunchError, match=r"scaled_sum.* does not compile"):
        scaled_sum[(1,)](x, x, x, 256, 1.0, BLOCK=100)
    with pytest.raises(LaunchError, match="num_ctas is 3"):
        scaled_sum[(1,)](x, x, x, 256, 1.0, BLOCK=64, num_ctas=3)


@on_stub()
def test_a_kernel_that_was_warmed_up_is_launched_by_itself() -> None:
    x = tt.ones(64, device="cuda")
    kernel = scaled_sum.warmup(x, x, x, 64, 1.0, BLOCK=64, grid=(1,))
    assert "scaled_sum" not in {one.name for one in control.launches()}
    kernel._init_handles()
    assert kernel.n_regs > 0
    assert kernel.metadata.shared == 0
    kernel[(5, 1, 1)](x, x, x, 64, 1.0, 64)
    assert control.launches()[-1].grid == (5, 1, 1)
    mock = scaled_sum.warmup(tt.float32, tt.float32, tt.float32, 64, 1.0, BLOCK=64, grid=(1,))
    assert mock.asm["ptx"] == kernel.asm["ptx"]


@on_stub()
def test_memory_that_a_kernel_asks_for_is_given() -> None:
    x = tt.ones(32, 64, device="cuda")
    out = tt.empty_like(x)
    for _ in range(2):
        described_inside[(2, 4)](x, out, 32, 64, ROWS=16, COLUMNS=16)
    last = control.launches()[-1]
    assert last.pointers[-2:] == (True, True) or last.values[-2] != 0


@on_stub()
def test_a_global_that_changed_is_named() -> None:
    from tests.triton_kernels import global_constant as file

    x = tt.ones(16, device="cuda")
    file.times_factor[(1,)](x, x)
    file.FACTOR = tl.constexpr(4)
    with pytest.raises(RuntimeError, match=r"the global FACTOR was .*3.* when the kernel was compiled and is .*4.* now"):
        file.times_factor[(1,)](x, x)


@on_stub()
def test_recorded_launches_keep_constants() -> None:
    """What a recorder, or a graph, is given of a call holds the constant 1 as such."""
    from tritensor.ground.thread_state import here
    from tritensor.ops.replay.recorder import Recorder

    x = tt.ones(4, 6, device="cuda")
    here.recorder = Recorder((x._array,))
    try:
        strided_copy[(2,)](x, x, 2, 3, 6, 1)
        (call,) = here.recorder.calls
    finally:
        here.recorder = None
    assert call.args[5] == Constant(1)
    assert dict(call.options)["enable_reflect_ftz"] is True


def test_precompile_takes_them_with_all_their_configs(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import tritensor as tt, triton\n"
        "from tests.triton_kernels.kernels import scaled_sum\n"
        "x = tt.empty(1000, device='cuda')\n"
        "tuned = triton.autotune([triton.Config({'BLOCK': b}) for b in (256, 512)], key=['n'])(scaled_sum)\n"
        "kernel = tuned[lambda m: (triton.cdiv(1000, m['BLOCK']),)](x, x, x, 1000, 2.0)\n"
        "assert kernel.n_regs > 0\n"
    )
    pack = tmp_path / "kernels.ttpack"
    command = [
        sys.executable,
        "-m",
        "tritensor.tools.command_line",
        "precompile",
        "--arch",
        "sm_90",
        "--out",
        str(pack),
        "--script",
        str(script),
    ]
    where = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = [decode(key, blob).name for key, _, blob in Pack(pack).rows()]
    assert names.count("scaled_sum") == 2  # both configs, of which a search on the GPU then chooses; the others are the timer's
