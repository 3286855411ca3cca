"""The real device's road on the stub driver: what a launch hands the driver, and what a step calls once it has been seen."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl

import tritensor as tt
from tests.stub import control
from tests.stub.child import on_stub
from tritensor.cuda.compiler.arguments import LaunchCall, specialize
from tritensor.cuda.driver import kernels
from tritensor.cuda.launch import launch
from tritensor.cuda.runtime import active
from tritensor.ground.device import device
from tritensor.ground.errors import DeviceError, LaunchError
from tritensor.ops import replay
from tritensor.ops.array import CudaArray, empty, from_host, to_host
from tritensor.ops.table import Op, registry
from tritensor.testing.questions import corners
from tritensor.testing.questions.cases import Case, samples, types

GPU = device("cuda", 0)
F32 = np.dtype(np.float32)
ONE_LAUNCH = {"cuLaunchKernelEx": 1}
# Bytes of a parameter by its Triton type, as ptxas lays them out.
BYTES = {"*": 8, "*u32": 4, "*u64": 8, "*i64": 8, "i1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
         "fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8, "fp8e4nv": 1, "fp8e5": 1}  # fmt: skip


@triton.jit
def _double(x):
    return x * 2


@triton.jit
def everything(xs, y, strides, flag, small, n, big, ratio, precise, nothing, formula: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(xs[0] + i * strides[0], mask=i < n, other=0.0) + tl.load(xs[1] + i * strides[1][0], mask=i < n, other=0.0)
    if flag:
        x = (x * ratio + precise).to(tl.float32)
    if nothing is not None:
        x = x + nothing
    tl.store(y + i, formula(x) + big + small, mask=i < n)


@triton.jit
def product(a, b, c, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = i[:, None] * BLOCK + i[None, :]
    tl.store(c + p, tl.dot(tl.load(a + p), tl.load(b + p)))


@triton.jit
def shifted(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def broken(x):
    tl.store(x, no_such_name)  # noqa: F821


def on_gpu(count: int = 64) -> CudaArray:
    found = from_host(np.arange(count, dtype=np.float32), GPU)
    assert isinstance(found, CudaArray)
    return found


def tensor(*shape: int, grad: bool = False) -> Any:
    return tt.tensor(np.linspace(-2, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape), device="cuda", requires_grad=grad)


def steady(function: Callable[[], Any], warm: int = 3) -> dict[str, int]:
    """The driver calls of a call that has been made before."""
    for _ in range(warm):
        function()
    with control.counted() as calls:
        function()
    return calls


# what the driver is handed
def test_the_parameter_block() -> None:
    types = ("*", "i1", "i8", "u16", "i32", "*", "i64", "u64", "fp16", "bf16", "fp32", "fp64", "fp8e4nv")
    numbers = [True, -3, 65535, -5, -(2**40), 2**64 - 1, 1.5, ml_dtypes.bfloat16(-2.5), 0.1, np.float64(0.1), ml_dtypes.float8_e4m3fn(3.5)]
    block = kernels.Block(types, list(numbers))
    block.pack(block.memory, 0, 2**63, 7)
    addresses = (ctypes.c_void_p * len(types)).from_address(block.address)
    formats = ("Q", "?", "b", "H", "i", "Q", "q", "Q", "e", "H", "f", "d", "B")
    got = [struct.unpack("<" + f, ctypes.string_at(a, struct.calcsize("<" + f)))[0] for a, f in zip(addresses, formats, strict=True)]
    bf16 = int(np.array(-2.5, ml_dtypes.bfloat16).view(np.uint16))
    fp8 = int(np.array(3.5, ml_dtypes.float8_e4m3fn).view(np.uint8))
    assert got == [2**63, True, -3, 65535, -5, 7, -(2**40), 2**64 - 1, 1.5, bf16, float(np.float32(0.1)), 0.1, fp8]
    assert all(a % 8 == 0 for a in addresses)
    with pytest.raises(LaunchError, match="do not fit"):
        kernels.Block(("i32",), [2**31])


@on_stub()
def test_every_kind_of_argument_arrives() -> None:
    a, b, y = on_gpu(), on_gpu(), on_gpu()
    args = ((a, b[1:]), y, (1, (2,)), True, np.int8(-7), 48, 2**40, 0.25, np.float64(0.1), None)
    control.reset()
    for _ in range(2):
        launch(everything, (2,), *args, formula=_double, BLOCK=32)
    assert [control.calls(f"cu{name}") for name in ("ModuleLoadData", "ModuleGetFunction", "LaunchKernelEx")] == [1, 1, 2]
    seen = control.launches()[0]
    assert (seen.name, seen.grid, seen.block, seen.shared, seen.stream) == ("everything", (2, 1, 1), (128, 1, 1), 0, 0)
    want = struct.pack("<QQQii?bi", a.data_ptr(), b.data_ptr() + 4, y.data_ptr(), 1, 2, True, -7, 48)
    want += struct.pack("<q", 2**40) + struct.pack("<f", 0.25) + struct.pack("<d", 0.1) + bytes(16)
    assert b"".join(seen.raw) == want
    launch(everything, (0,), *args, formula=_double, BLOCK=32)
    assert control.launch_count() == 2


@on_stub()
def test_what_a_specialization_tells_apart() -> None:
    x = empty((65,), F32, GPU)

    def key(*args: Any, **constexprs: Any) -> Any:
        return specialize(LaunchCall(product, (1,), args, constexprs))[0]

    assert key(x, x, 16, BLOCK=16).types == ("*fp32:16", "*fp32:16", "i32:16", "constexpr")
    assert key(x[1:], x, 17, BLOCK=16).types == ("*fp32", "*fp32:16", "i32", "constexpr")
    assert key(x, x, 1, BLOCK=1) != key(x, x, 1, BLOCK=True)
    assert key(x, x, 1, BLOCK=1) == key(x, x, 3, BLOCK=1)


@pytest.mark.parametrize(
    ("args", "constexprs", "said"),
    [
        ("xxx", {}, "no value for parameter BLOCK"),
        ("xxx", {"BLOCK": 16, "BLOK": 16}, "no parameter is called BLOK"),
        ("xxx++", {}, "5 arguments for 4 parameters"),
        ("xxxx", {}, "BLOCK is a constexpr, compiled into the kernel, and was given an array; give a number"),
        ("xx?", {"BLOCK": 16}, "launch product: c: str is nothing a kernel takes"),
    ],
)
@on_stub()
def test_arguments_that_do_not_match(args: str, constexprs: dict[str, int], said: str) -> None:
    x = on_gpu(256)
    with pytest.raises(TypeError, match=said):
        launch(product, (1,), *[{"x": x, "+": 16, "?": "x"}[a] for a in args], **constexprs)


@on_stub()
def test_shared_memory_is_asked_for_and_too_much_is_refused() -> None:
    x, y = empty((128, 128), F32, GPU), empty((128, 128), F32, GPU)
    with control.counted() as calls:
        launch(product, (1,), x, x, y, BLOCK=128)
    assert calls["cuFuncSetAttribute"] == 1
    assert 48 * 1024 < control.launches()[-1].shared <= 227 * 1024
    big = empty((256, 256), F32, GPU)
    with pytest.raises(LaunchError, match="product: needs 524288 bytes of shared memory, a block on cuda:0 may have 232448"):
        launch(product, (1,), big, big, big, BLOCK=256, num_warps=8)


@on_stub()
def test_clusters_cooperation_and_dependent_launches() -> None:
    x, y = on_gpu(), on_gpu()
    launch(shifted, (2,), x, y, 64, BLOCK=32, num_ctas=2)
    launch(shifted, (2,), x, y, 64, BLOCK=32, launch_cooperative_grid=True)
    launch(shifted, (2,), x, y, 64, BLOCK=32, launch_pdl=True)
    clusters, cooperative, dependent = control.launches()
    assert (clusters.grid, clusters.cluster) == ((4, 1, 1), (2, 1, 1))
    assert (cooperative.cooperative, cooperative.programmatic, cooperative.cluster) == (True, False, (1, 1, 1))
    assert (dependent.cooperative, dependent.programmatic) == (False, True)


@on_stub()
def test_a_kernel_that_does_not_compile_is_named() -> None:
    with pytest.raises(LaunchError) as caught:
        launch(broken, (1,), on_gpu())
    assert re.search(r"broken\(x: \*fp32:16\).*for sm_90 does not compile.*no_such_name", str(caught.value), re.S)


# memory and devices
@on_stub(STUB_DEVICES=2)
def test_bytes_travel_to_devices_between_them_and_back() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = tt.tensor(values, device="cuda:0")
    assert (x.to("cuda:1").cpu().numpy() == values).all()
    assert (to_host(from_host(values, GPU).transpose((1, 0))) == values.T).all()
    assert to_host(empty((0, 4), F32, GPU)).shape == (0, 4)
    held = tt.cuda.memory_allocated(0)
    again = tt.tensor(values, device="cuda:0")
    assert tt.cuda.memory_allocated(0) == held + 512  # the smallest block
    del again
    assert tt.cuda.memory_allocated(0) == held
    with pytest.raises(DeviceError, match="cuda:3: no such device; this machine has 2"):
        empty((4,), F32, device("cuda", 3))


@on_stub(STUB_DEVICES=2)
def test_an_op_runs_on_the_device_of_its_inputs() -> None:
    for name in ("cuda:1", "cuda:0", "cuda:1"):
        x = tt.ones(100, device=name)
        for _ in range(3):
            assert str((x + x).device) == name
    added = [seen for seen in control.launches() if len(set(seen.values[1:3])) == 1]
    assert [seen.device for seen in added if seen.pointers[:3] == (True, True, True)] == [1] * 3 + [0] * 3 + [1] * 3
    with pytest.raises(DeviceError):
        tt.ones(3, device="cuda:0") + tt.ones(3, device="cuda:1")


@on_stub()
def test_work_goes_to_the_current_stream() -> None:
    x = tensor(100)
    stream = tt.cuda.Stream()
    with tt.cuda.stream(stream):
        calls = steady(lambda: x * x)
    assert calls == ONE_LAUNCH
    assert control.launches()[-1].stream == stream.cuda_stream
    assert steady(lambda: x * x) == ONE_LAUNCH
    assert control.launches()[-1].stream == 0


# the steady state
ELEMENTWISE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "scalar": lambda x, y: x * 2.5,
    "exp": lambda x, y: x.exp(),
    "relu": lambda x, y: x.relu(),
    "where": lambda x, y: tt.where(x > y, x, y),
    "clamp": lambda x, y: x.clamp(-1, 1),
    "compare": lambda x, y: x > y,
    "transposed": lambda x, y: x.T * y.T,
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("grad", [False, True])
@on_stub()
def test_one_launch_and_nothing_else(name: str, grad: bool) -> None:
    x, y = tensor(40, 30, grad=grad), tensor(40, 30, grad=grad)
    calls = steady(lambda: ELEMENTWISE[name](x, y))
    assert calls == {"cuLaunchKernelEx": 2 if name == "where" else 1}, calls


def model() -> tuple[Any, Any]:
    tt.manual_seed(0)
    layers = tt.nn.Sequential(tt.nn.Linear(20, 32), tt.nn.ReLU(), tt.nn.LayerNorm(32), tt.nn.Dropout(0.1), tt.nn.Linear(32, 5))
    return layers.to("cuda"), tt.nn.CrossEntropyLoss()


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: tt.optim.SGD(p, lr=0.1, momentum=0.9),
    "AdamW": lambda p: tt.optim.AdamW(p, lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@on_stub()
def test_a_training_step_launches_kernels_and_does_nothing_else(name: str) -> None:
    net, loss = model()
    optimizer = OPTIMIZERS[name](net.parameters())
    x = tensor(8, 20)
    labels = tt.tensor(np.arange(8) % 5, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        loss(net(x), labels).backward()
        optimizer.step()

    first = steady(step)
    reserved, alive = tt.cuda.memory_reserved(), control.live_allocations()
    assert set(first) == {"cuLaunchKernelEx"}, first
    for _ in range(5):
        assert steady(step, warm=0) == first
    assert (tt.cuda.memory_reserved(), control.live_allocations()) == (reserved, alive)


# the whole table
class Noted:
    """Notes every launch that is prepared, and compares what it packs with what the kernel in the driver takes."""

    def __init__(self, monkey: pytest.MonkeyPatch) -> None:
        self.launches: list[Any] = []
        before = kernels.Launch.__init__

        def note(this: Any, *args: Any) -> None:
            before(this, *args)
            self.launches.append(this)

        monkey.setattr(kernels.Launch, "__init__", note)

    def findings(self) -> Iterator[str]:
        """Kernels that are given other parameters than they take."""
        made: Any = active.runtime()
        for each in self.launches:
            function, types = each.loaded.function, each.block.types
            sizes = [int(made.driver.call("cuFuncGetParamInfo", function, i)[1]) for i in range(len(types))]
            if sizes != [BYTES[t] for t in types]:
                yield f"{each.loaded.name}: packed as {types}, takes parameters of {sizes} bytes"
            if made.driver.status("cuFuncGetParamInfo", function, len(types))[0] == "CUDA_SUCCESS":
                yield f"{each.loaded.name}: takes more than the {len(types)} parameters that are packed"
        self.launches.clear()


def _asked(op: Op, dtype: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The corners of an op, ready to be called on the device, with the first sample's inputs."""
    case = Case(op, 0, samples(op)[0], dtype, "plain", GPU)
    arrays = tuple([getattr(x, "array", x) for x in case.placed()])
    attrs = case.attrs()
    made: list[Any] = []

    def forward() -> None:
        made[:] = [op.forward(*arrays, **attrs)]  # type: ignore[misc]

    yield "forward", forward
    backward = op.backward
    if backward is None or not any(case.needs):
        return
    outputs = made[0] if isinstance(made[0], tuple | list) else (made[0],)
    gradient = tuple(outputs[: op.public]) if op.public > 1 else outputs[0]
    yield "backward", lambda: corners.call(op, backward, gradient, arrays, tuple(outputs), attrs, case.needs)


def _walk(op: Op, dtype: str, noted: Noted) -> Iterator[str]:
    """What is wrong with an op's corners on the driver."""
    for corner, call in _asked(op, dtype):
        calls = steady(call, warm=2)
        if set(calls) - {"cuLaunchKernelEx"}:
            yield f"{op.name} {corner}: the third call asks the driver for more than launches: {calls}"
        for finding in [*noted.findings(), *control.complaints()]:
            yield f"{op.name} {corner}: {finding}"


def _check(names: list[str], dtype: str) -> None:
    """Walk ops in one type, or in the only one they have."""
    with pytest.MonkeyPatch.context() as monkey:
        noted = Noted(monkey)
        tt.zeros(1, device="cuda")
        asked = [(registry[name], types(registry[name])) for name in names]
        wanted = [(op, dtype if dtype in has else has[0]) for op, has in asked if dtype in has or (len(has) == 1 and dtype == "float32")]
        found = [line for op, kind in wanted for line in _walk(op, kind, noted)]
    assert not found, "\n".join(found)


@on_stub()
def test_ops_of_every_family_pack_what_their_kernels_take() -> None:
    _check(
        ["mul", "exp", "where", "cast", "sum", "softmax", "matmul", "conv2d", "layer_norm", "gather", "index_put", "rand", "sgd_step"],
        "float32",
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64"])
@on_stub(seconds=500)
def test_the_whole_table_packs_what_its_kernels_take(dtype: str, part: int) -> None:
    names = [op.name for op in registry.values() if op.forward is not None]
    assert len(names) > 100
    _check(names[part::4], dtype)


@on_stub()
def test_a_wrong_block_is_found() -> None:
    """The walk above, tested: a number packed a slot too narrow, an address that is none of the launch's."""
    with pytest.MonkeyPatch.context() as monkey:
        noted = Noted(monkey)
        launch(shifted, (1,), on_gpu(), on_gpu(), 64, BLOCK=64)
        assert list(noted.findings()) == []
        (kept,) = active.runtime().kernels._loaded.values()  # type: ignore[attr-defined]
        kernels.Launch(active.runtime().kernels, kept, (1,), ("*", "*", "i64"), [64])  # type: ignore[attr-defined]
        assert "takes parameters of [8, 8, 4, 8, 8] bytes" in next(noted.findings())
    made, arrays = active.runtime().prepare(LaunchCall(shifted, (1,), (on_gpu(), on_gpu(), 64), {"BLOCK": 64}))  # type: ignore[attr-defined]
    with pytest.raises(LaunchError, match="CUDA_ERROR_INVALID_VALUE"):
        made.fire([arrays[0].pointer, arrays[1].pointer + 2**30], 0)
    assert "parameter 1" in control.complaints()[0]


@on_stub()
def test_without_replay_the_launches_are_the_same() -> None:
    x = tensor(40, 30)
    control.reset()
    for on in (True, False):
        replay.enable(on)
        for _ in range(3):
            (x * x).sum(0)
    seen = [
        (each.name, each.grid, each.block, each.shared, [each.raw[i] for i in range(len(each.raw)) if not each.pointers[i]])
        for each in control.launches()
    ]
    assert seen == seen[:2] * 6
