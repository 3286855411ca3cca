"""kernel[grid](tensors): grids, options, constants, errors; inside autograd.Function, CUDA graphs and the corners of an op."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import tritensor as tt
from tests.triton_kernels.kernels import (
    accumulate,
    described_inside,
    mapped,
    scaled_product,
    scaled_sum,
    square,
    strided_copy,
    tiles_times_two,
)
from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.cuda.launch import launch
from tritensor.ground.errors import DeviceError, LaunchError
from tritensor.ops import array
from tritensor.ops.table import registry


def three(n: int = 100, dtype: Any = tt.float32) -> tuple[tt.Tensor, tt.Tensor, tt.Tensor]:
    x, y = (tt.arange(n, device="cuda").to(dtype) + i for i in range(2))
    return x, y, tt.empty_like(x)


@pytest.mark.parametrize(
    "grid",
    [
        (2,),
        (2, 1),
        [2, 1, 1],
        2,
        np.int64(2),
        lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),),
        lambda meta: [len(meta["x_ptr"]) // 50, 1],
    ],
    ids=["tuple", "two", "list", "int", "numpy", "function", "function-of-a-tensor"],
)
def test_grids(grid: Any) -> None:
    x, y, out = three()
    assert scaled_sum[grid](x, y, out, 100, 0.5, BLOCK=64) is None  # as Triton's interpreter returns
    assert out.tolist() == (x + 0.5 * y).tolist()


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16, tt.float32, tt.float64, tt.int32])
def test_types(dtype: Any) -> None:
    x, y, out = three(dtype=dtype)
    scaled_sum[(2,)](x, y, out, 100, 2, 64)  # BLOCK by position
    assert out.tolist() == (x + 2 * y).tolist()


def test_views_are_taken_from_their_first_element() -> None:
    base = tt.arange(24, dtype=tt.float32, device="cuda").reshape(4, 6)
    window, out = base[1:, 1::2], tt.empty(3, 3, device="cuda")
    strided_copy[(3,)](window, out, 3, 3, window.stride(0), window.stride(1))
    assert out.tolist() == window.tolist()
    turned = base.t()
    out = tt.empty(6, 4, device="cuda")
    strided_copy[(6,)](turned, out, 6, 4, *turned.stride(), FLIP=True)
    assert out.tolist() == (-turned).tolist()


def test_options_by_name_functions_and_constants_as_arguments() -> None:
    x, y, out = three()
    scaled_sum[(2,)](
        x_ptr=x, y_ptr=y, out_ptr=out, n=100, scale=1.0, BLOCK=tl.constexpr(64), num_warps=8, num_stages=2, maxnreg=64, num_ctas=1
    )
    assert out.tolist() == (x + y).tolist()
    mapped[(2,)](x, out, 100, square, BLOCK=64)
    assert out.tolist() == (x * x).tolist()


def test_host_descriptors_and_those_made_in_the_kernel() -> None:
    x = tt.arange(32 * 64, dtype=tt.float32, device="cuda").reshape(32, 64)
    out = tt.empty_like(x)
    tiles = [TensorDescriptor.from_tensor(t, [16, 16]) for t in (x, out)]
    tiles_times_two[(2, 4)](*tiles, ROWS=16, COLUMNS=16)
    assert tt.equal(out, x * 2)
    flat = TensorDescriptor(x, shape=[64, 32], strides=[32, 1], block_shape=[16, 16])  # another shape over the same memory
    other = TensorDescriptor(out, shape=[64, 32], strides=[32, 1], block_shape=[8, 8])
    other.block_shape = [16, 16]  # as hooks of an autotuner change it
    tiles_times_two[(4, 2)](flat, other, 16, 16)
    assert tt.equal(out, x * 2)
    triton.set_allocator(lambda size, alignment, stream: tt.empty(size, dtype=tt.int8, device="cuda"))
    described_inside[(2, 4)](x, out, 32, 64, ROWS=16, COLUMNS=16)
    assert tt.equal(out, x + 1)


@pytest.mark.skipif(
    "round_f32_to_tf32" not in TensorDescriptor.__dataclass_fields__, reason="this Triton does not round to tf32 on the way"
)
@triton.jit
def tile_of_rows(rows, out, first):
    i = tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None]
    tl.store(out + i, rows.load([first, 0]))


def test_a_descriptor_may_claim_more_than_there_is_but_not_be_read_there() -> None:
    x, out = tt.arange(64.0, device="cuda").reshape(8, 8), tt.empty(4, 8, device="cuda")
    larger = TensorDescriptor(x, [12, 8], [8, 1], [4, 8])
    tile_of_rows[(1,)](larger, out, 4)
    assert out.tolist() == x[4:].tolist()
    with pytest.raises(SanitizerError, match=r"load of rows\[11, 7\].* described as larger than the memory of its tensor is"):
        tile_of_rows[(1,)](larger, out, 8)


@pytest.mark.skipif(
    "round_f32_to_tf32" not in inspect.signature(TensorDescriptor).parameters, reason="this Triton's descriptors do not round"
)
def test_a_descriptor_that_rounds_to_tf32() -> None:
    x = tt.full((16, 16), 1 + 3 * 2.0**-11, device="cuda")
    out = tt.empty_like(x)
    tiles = TensorDescriptor.from_tensor(x, [16, 16], round_f32_to_tf32=True), TensorDescriptor.from_tensor(out, [16, 16])
    tiles_times_two[(1, 1)](*tiles, ROWS=16, COLUMNS=16)
    assert tt.equal(out, tt.full_like(x, 2 * (1 + 2.0**-9)))


def test_reinterpreted_tensors() -> None:
    x = tt.ones(32, dtype=tt.float32, device="cuda")
    bits, out = triton.reinterpret(x, tl.int32), tt.empty(32, dtype=tt.int32, device="cuda")
    mapped[(1,)](bits, out, 32, square, BLOCK=32)
    assert out.tolist() == [((0x3F800000**2 + 2**31) % 2**32) - 2**31] * 32


def test_warm_up_and_what_programs_ask_of_it() -> None:
    x, y, out = three()
    kernel = scaled_sum.warmup(x, y, out, 100, 0.5, BLOCK=64, grid=(1,), num_warps=8)
    kernel._init_handles()
    assert kernel.n_regs > 0
    assert kernel.metadata.shared > 0
    kernel[(2, 1, 1)](x, y, out, 100, 0.5, 64)
    assert out.tolist() == (x + 0.5 * y).tolist()


def test_hooks_run_before_a_kernel() -> None:
    seen: list[Any] = []
    hook: Any = lambda *args, **named: seen.append((len(args), sorted(named)))  # noqa: E731
    scaled_sum.add_pre_run_hook(hook) if hasattr(scaled_sum, "add_pre_run_hook") else setattr(scaled_sum, "pre_run_hooks", [hook])
    try:
        scaled_sum[(2,)](*three(), 100, 0.5, BLOCK=64, num_warps=2)
    finally:
        scaled_sum.pre_run_hooks = []
    assert seen == [(5, ["BLOCK", "num_warps"])]


def test_the_sanitizer_watches() -> None:
    x, y, out = three()
    with pytest.raises(SanitizerError, match=r"load of x_ptr\[1\d\d\], but x_ptr has elements 0 to 99"):
        scaled_sum[(2,)](x, y, out, 128, 0.5, BLOCK=64)


def test_launch_takes_tensors() -> None:
    x, y, out = three()
    launch(scaled_sum, (2,), x, y, out, 100, 0.5, BLOCK=64)
    assert out.tolist() == (x + 0.5 * y).tolist()
    launch(scaled_sum, (2,), tt.nn.Parameter(x), y, out_ptr=out, n=100, scale=1.0, BLOCK=64)
    assert out.tolist() == (x + y).tolist()


X, Y, OUT = three(16)
ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "cpu": (lambda k: k[(1,)](X.cpu(), Y, OUT, 16, 1.0, BLOCK=16), DeviceError, r"x_ptr is a CPU tensor, float32\[16\].*give x.cuda\(\)"),
    "numpy": (
        lambda k: k[(1,)](X, X.numpy(force=True), OUT, 16, 1.0, BLOCK=16),
        DeviceError,
        r"y_ptr is a numpy array.*tensor\(x, device='cuda'\)",
    ),
    "two GPUs": (
        lambda k: k[(1,)](X, Y.to("cuda:1"), OUT, 16, 1.0, BLOCK=16),
        DeviceError,
        "x_ptr is on cuda:0 and y_ptr on cuda:1; .* copy",
    ),
    "a fraction": (lambda k: k[(0.5,)](X, Y, OUT, 16, 1.0, BLOCK=16), LaunchError, r"a grid of \(0.5,\).*triton.cdiv"),
    "below 0": (lambda k: k[(-1,)](X, Y, OUT, 16, 1.0, BLOCK=16), LaunchError, r"a grid of \(-1,\).*none below 0"),
    "no dimension": (lambda k: k[()](X, Y, OUT, 16, 1.0, BLOCK=16), LaunchError, r"a grid of \(\); it is one to three whole numbers"),
    "four dimensions": (lambda k: k[(1, 1, 1, 1)](X, Y, OUT, 16, 1.0, BLOCK=16), LaunchError, "one to three whole numbers"),
    "too long": (lambda k: k[(1, 65536)](X, Y, OUT, 16, 1.0, BLOCK=16), LaunchError, "at most .*65535.*put the long dimension first"),
    "missing": (lambda k: k[(1,)](X, Y, OUT, 16, BLOCK=16), TypeError, r"no value for parameter scale; it takes \(x_ptr, y_ptr"),
    "unknown": (
        lambda k: k[(1,)](X, Y, OUT, 16, 1.0, BLOCKS=16),
        TypeError,
        "BLOCKS is neither a parameter nor an option.*did you mean BLOCK?",
    ),
    "twice": (lambda k: k[(1,)](X, Y, OUT, 16, 1.0, 16, BLOCK=16), TypeError, "BLOCK is given by position and by name"),
    "too many": (lambda k: k[(1,)](X, Y, OUT, 16, 1.0, 16, 17), TypeError, "7 arguments for 6 parameters"),
    "tensor as constexpr": (lambda k: k[(1,)](X, Y, OUT, 16, 1.0, BLOCK=X), TypeError, r"BLOCK is a constexpr.*give x.item\(\)"),
    "a list as constexpr": (lambda k: k[(1,)](X, Y, OUT, 16, 1.0, [16]), TypeError, "BLOCK is a constexpr.*given a list.* give a tuple"),
    "a number's tensor": (
        lambda k: k[(1,)](X, Y, OUT, tt.tensor(16), 1.0, 16),
        DeviceError,
        r"n is a CPU tensor, .* give x.item\(\) for a number",
    ),
    "a text": (lambda k: k[(1,)](X, Y, OUT, "16", 1.0, 16), TypeError, "n: str is nothing a kernel takes.*tl.constexpr"),
    "too large": (lambda k: k[(1,)](X, Y, OUT, 2**64, 1.0, 16), TypeError, "n is 18446744073709551616, which does not fit 64 bits"),
    "three warps": (lambda k: k[(1,)](X, Y, OUT, 16, 1.0, 16, num_warps=3), LaunchError, "num_warps is 3; .* 16 or 32 warps"),
    "stages": (lambda k: k[(1,)](X, Y, OUT, 16, 1.0, 16, num_stages=-1), LaunchError, "num_stages is -1; it is a whole number"),
    "registers": (lambda k: k[(1,)](X, Y, OUT, 16, 1.0, 16, maxnreg=-1), LaunchError, "maxnreg is -1; a thread has 1 to 255"),
    "a grid that asks": (lambda k: k[lambda meta: (meta["N"],)](X, Y, OUT, 16, 1.0, 16), KeyError, "the grid asks for 'N', .*x_ptr, y_ptr"),
    "lean: a function": (
        lambda k: tt.launch(k, lambda meta: (1,), X, Y, OUT, 16, 1.0, BLOCK=16),
        LaunchError,
        r"grid is a function.*scaled_sum\[grid\]",
    ),
    "lean: a fraction": (lambda k: tt.launch(k, (0.5,), X, Y, OUT, 16, 1.0, BLOCK=16), LaunchError, r"a grid of \(0.5,\).*triton.cdiv"),
    "lean: below 0": (lambda k: tt.launch(k, (-1,), X, Y, OUT, 16, 1.0, BLOCK=16), LaunchError, "none below 0"),
    "lean: an option": (
        lambda k: tt.launch(k, (1,), X, Y, OUT, 16, 1.0, BLOCK=16, maxnreg=32),
        TypeError,
        r"maxnreg.*given to scaled_sum\[grid\]",
    ),
    "lean: tuned": (
        lambda k: tt.launch(triton.autotune([triton.Config({"BLOCK": 16})], key=[])(k), (1,), X, Y, OUT, 16, 1.0),
        LaunchError,
        r"under triton.autotune.*scaled_sum\[grid\]\(...\), or .*\(scaled_sum.fn\)",
    ),
    "called": (lambda k: k(X, Y, OUT, 16, 1.0, 16), RuntimeError, r"inside of kernels only; scaled_sum\[grid\]\(...\) launches it"),
    "a list": (lambda k: k[(1,)](X, [1, 2], OUT, 16, 1.0, BLOCK=16), TypeError, "y_ptr: list is nothing a kernel takes"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_what_is_wrong_and_the_mend(case: str) -> None:
    call, kind, said = ERRORS[case]
    before = OUT.tolist()
    with pytest.raises(kind, match=f"(launch )?scaled_sum: .*{said}"):
        call(scaled_sum)
    assert np.array_equal(OUT.tolist(), before, equal_nan=True)


def test_what_is_no_kernel_is_told_what_makes_it_one() -> None:
    with pytest.raises(LaunchError, match=r"launch: len is no Triton kernel; decorate the function with @triton\.jit"):
        tt.launch(len, (1,))


def test_numpy_scalars_are_constants_too() -> None:
    x, y, out = three(16)
    scaled_sum[(1,)](x, y, out, 16, 2.0, BLOCK=np.int64(16))
    assert out.tolist() == (x + 2 * y).tolist()


def test_a_grid_may_be_a_list_or_a_number_on_the_lean_road_too() -> None:
    for grid in (2, [2], (np.int64(2), 1)):
        x, y, out = three(20)
        tt.launch(scaled_sum, grid, x, y, out, 20, 2.0, BLOCK=16)
        assert out.tolist() == (x + 2 * y).tolist()


def test_a_grid_of_nothing_warns_where_there_is_something() -> None:
    x, y, out = three(10)
    with pytest.warns(UserWarning, match=r"a grid of \(0,\) holds no program, so nothing is launched, and no tensor is empty"):
        scaled_sum[(10 // 64,)](x, y, out, 10, 1.0, BLOCK=64)
    empty = tt.empty(0, device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled_sum[(0,)](empty, empty, empty, 0, 1.0, BLOCK=64)


class Foreign:
    """A tensor of another library."""

    dtype = "float32"

    def data_ptr(self) -> int:
        return 0


def test_tensors_of_two_libraries_are_refused_and_others_go_to_triton() -> None:
    x, _, out = three(16)
    with pytest.raises(DeviceError, match=r"tensors of two libraries, tritensor's and .*Foreign; tritensor\.from_dlpack"):
        scaled_sum[(1,)](x, Foreign(), out, 16, 1.0, BLOCK=16)
    with pytest.raises(AttributeError, match="untyped_storage"):  # which Triton's own interpreter asks for
        mapped[(1,)](Foreign(), Foreign(), 16, square, BLOCK=16)


def test_inside_a_transform_a_kernel_sees_no_values() -> None:
    def f(x: tt.Tensor) -> tt.Tensor:
        out = tt.empty(4, device="cuda")
        mapped[(1,)](x, out, 4, square, BLOCK=4)
        return out

    with pytest.raises(tt.TransformError, match="x_ptr is a tensor inside a transform"):
        tt.func.vmap(f)(tt.ones(2, 4, device="cuda"))


class Squared(tt.autograd.Function):
    """x squared, by kernels of one's own."""

    @staticmethod
    def forward(ctx: Any, x: tt.Tensor) -> tt.Tensor:
        ctx.save_for_backward(x)
        out = tt.empty_like(x)
        mapped[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), square, BLOCK=32)
        return out

    @staticmethod
    def backward(ctx: Any, g: tt.Tensor) -> tt.Tensor:
        (x,) = ctx.saved_tensors
        out = tt.empty_like(x)
        scaled_sum[(triton.cdiv(x.numel(), 32),)](tt.zeros_like(x), 2 * x * g, out, x.numel(), 1.0, BLOCK=32)
        return out


def test_inside_an_autograd_function() -> None:
    x = tt.randn(50, device="cuda", requires_grad=True)
    (Squared.apply(x) * 3).sum().backward()
    assert tt.allclose(x.grad, 6 * x.detach())


def test_inside_a_graph() -> None:
    x, y, out = three(64)
    graph = tt.cuda.CUDAGraph()
    with tt.cuda.graph(graph):
        scaled_sum[(1,)](x, y, out, 64, 2.0, BLOCK=64)
        total = tt.zeros(1, device="cuda")
        accumulate[(2,)](out, total, 64, BLOCK=32)
    x.fill_(1.0)
    y.fill_(3.0)
    graph.replay()
    assert out.tolist() == [7.0] * 64
    assert total.item() == 7.0 * 64


def test_as_an_op_of_the_table_it_is_recorded_and_replayed() -> None:
    calls = []

    def forward(x: Any) -> Any:
        calls.append(x.shape)
        out = array.empty(x.shape, x.dtype, x.device)
        mapped[(triton.cdiv(x.size, 32),)](x, out, x.size, square, BLOCK=32)
        return out

    def backward(g: Any, x: Any) -> Any:
        out = array.empty(x.shape, x.dtype, x.device)
        scaled_product[(1,)](x, g, out, x.size, 2.0, BLOCK=64)
        return out

    def subscripted_square(x: np.ndarray) -> np.ndarray:
        return x * x

    tt.op(
        "subscripted_square", subscripted_square, shape=lambda x: tt.Spec(x.shape, x.dtype), forward=forward, rule=lambda g, x: g * 2 * x, backward=backward,
        samples=lambda rng: [tt.Sample(rng.standard_normal(3))],
    )  # fmt: skip
    try:
        for i in range(4):
            x = tt.full((40,), float(i), device="cuda", requires_grad=True)
            y = tt.ops.subscripted_square(x)
            assert y.tolist() == [float(i * i)] * 40
            y.backward(tt.ones(40, device="cuda"))
            assert x.grad.tolist() == [2.0 * i] * 40
        assert len(calls) == 1  # the other three were replayed
    finally:
        registry.pop("subscripted_square", None)
        tt.ops.__dict__.pop("subscripted_square", None)
