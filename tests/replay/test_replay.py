"""Replay of corners: what is recorded, what a key tells apart, what is never replayed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

import tritensor as tt
from tritensor.cuda.launch import launch
from tritensor.dispatch.plans import doors
from tritensor.ground.device import device
from tritensor.ops import replay
from tritensor.ops.array import CudaArray, element_strides, empty, from_host, to_host
from tritensor.ops.replay import Corner
from tritensor.ops.table import registry

GPU = device("cuda", 0)
ROOT = Path(__file__).resolve().parents[2]


@triton.jit
def _scaled(x, y, n, factor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=0.0) * factor, mask=i < n)


def on_gpu(*values: float) -> CudaArray:
    return from_host(np.array(values, np.float32), GPU)


class Counted:
    """A corner's function that counts how often its Python ran."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.runs = 0

    def __call__(self, *args: Any, **attrs: Any) -> Any:
        self.runs += 1
        return self.function(*args, **attrs)


def scaled(x: CudaArray, factor: Any = 2.0) -> CudaArray:
    assert element_strides(x) == (1,)
    y = empty(x.shape, x.dtype, GPU)
    launch(_scaled, (1,), x, y, x.size, float(factor), BLOCK=16)
    return y


@pytest.fixture
def counted() -> Iterator[Counted]:
    yield Counted(scaled)
    replay.enable(True)


def test_a_second_call_runs_no_python_of_the_corner(counted: Counted) -> None:
    corner = Corner(counted)
    assert to_host(corner(on_gpu(1, 2))).tolist() == [2, 4]
    assert to_host(corner(on_gpu(3, 5))).tolist() == [6, 10]
    assert counted.runs == 1


def test_another_shape_dtype_or_alignment_is_another_recording(counted: Counted) -> None:
    corner = Corner(counted)
    x = on_gpu(1, 2, 3, 4, 5, 6)
    for part in (x, x[:4], x[1:5], x[2:6]):
        assert to_host(corner(part)).tolist() == (2 * to_host(part)).tolist()
    assert counted.runs == 4  # the last two differ in their addresses modulo 16 only
    assert to_host(corner(on_gpu(9, 8, 7, 6, 5, 4)[1:5])).tolist() == [16, 14, 12, 10]
    assert counted.runs == 4


@pytest.mark.parametrize("numbers", [(0.0, -0.0), (1, 1.0), (1, True), (2.0, 3.0)])
def test_numbers_that_differ_are_two_keys(numbers: tuple[Any, Any], counted: Counted) -> None:
    corner = Corner(counted)
    for factor in (*numbers, *numbers):
        got = to_host(corner(on_gpu(1, 2), factor))
        want = np.array([1, 2], np.float32) * np.float32(factor)
        assert np.array_equal(got, want)
        assert np.array_equal(np.signbit(got), np.signbit(want))
    assert counted.runs == 2


def test_attributes_that_differ_are_two_keys(counted: Counted) -> None:
    corner = Corner(counted)
    for factor in (0.0, -0.0, 2.0, 3.0) * 2:
        got = to_host(corner(on_gpu(1, 2), factor=factor))
        assert np.array_equal(got, np.array([1, 2], np.float32) * np.float32(factor))
        assert np.signbit(got[0]) == np.signbit(np.float32(factor))
    assert counted.runs == 4


def test_what_python_calls_equal_is_not_one_attribute() -> None:
    numbers = [1, 1.0, True, np.float32(1), 0, 0.0, -0.0, np.float64(0.0), np.float64(-0.0)]
    values = [*numbers, *[(n,) for n in numbers], slice(0, 1), None]
    assert len({replay.attributes_part({"a": v}) for v in values}) == len(values)
    assert replay.attributes_part({"a": (1, slice(2), None)}) == replay.attributes_part({"a": (1, slice(2), None)})
    full = registry["full"].forward
    assert full is not None
    for value in (np.float64(0.0), np.float64(-0.0), 0.0, -0.0):
        got = to_host(full(shape=(2,), value=value, dtype=np.dtype(np.float32), device=GPU))
        assert np.signbit(got).all() == np.signbit(value)


def test_an_argument_left_out_is_not_one_whose_layout_nobody_asked_for(counted: Counted) -> None:
    counted.function = lambda x, other=None: scaled(x) if other is None else scaled(other)
    corner = Corner(counted)
    for _ in range(2):
        x = on_gpu(1, 2)
        x.layout()
        assert to_host(corner(x, None)).tolist() == [2, 4]
    other = on_gpu(5, 6)
    assert other.known_layout is None
    assert to_host(corner(x, other)).tolist() == [10, 12]


def test_a_call_past_promotion_teaches_the_operator_nothing() -> None:
    """The engine may add gradients of two types; x + y of those types is cast first."""
    a, b = tt.ones(3, device="cuda", dtype=tt.float16), tt.ones(3, device="cuda")
    forward = registry["add"].forward
    assert forward is not None
    for _ in range(2):
        forward(a._array, b._array)
    assert (a + b).dtype == (a.cpu() + b.cpu()).dtype == tt.float32


def test_the_default_type_is_seen_at_once() -> None:
    condition = tt.tensor([True, False], device="cuda")
    before = tt.get_default_dtype()
    try:
        for dtype in (tt.float32, tt.float64, tt.float32):
            tt.set_default_dtype(dtype)
            assert tt.where(condition, 1.0, 2.0).dtype == dtype
    finally:
        tt.set_default_dtype(before)


def test_ever_new_numbers_are_not_recorded_for_ever(counted: Counted) -> None:
    corner = Corner(counted)
    for k in range(3 * replay.corner.VARIANTS):
        assert to_host(corner(on_gpu(1), factor=float(k))).tolist() == [k]
    assert len(corner.recordings) == replay.corner.VARIANTS
    assert counted.runs == 3 * replay.corner.VARIANTS


def test_the_table_of_recordings_is_bounded(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay.corner, "KEPT", 3)
    corner = Corner(counted)
    for n in (1, 2, 3, 4, 5, 4, 5):
        assert to_host(corner(on_gpu(*range(n)))).tolist() == [2 * v for v in range(n)]
        assert len(corner.recordings) <= 3
    assert counted.runs == 5


def test_an_argument_that_cannot_be_hashed_runs_as_it_is(counted: Counted) -> None:
    corner = Corner(lambda x, *, shape: counted(x))
    for _ in range(2):
        corner(on_gpu(1, 2), shape=[2])
    assert counted.runs == 2
    assert not corner.recordings


def test_a_corner_that_looks_at_values_is_never_replayed() -> None:
    def looks(x: CudaArray) -> CudaArray:
        return scaled(x, factor=float(to_host(x)[0]))

    def writes(x: CudaArray) -> CudaArray:
        return from_host(to_host(x) + 1, GPU)

    for function, want in ((looks, [[9, 12], [16, 4]]), (writes, [[4, 5], [5, 2]])):
        counted = Counted(function)
        corner = Corner(counted)
        for values, expected in zip(((3, 4), (4, 1)), want, strict=True):
            for _ in range(2):
                assert to_host(corner(on_gpu(*values))).tolist() == expected
        assert counted.runs == 4
        assert not corner.recordings


def test_a_corner_that_keeps_memory_between_calls_is_never_replayed(counted: Counted) -> None:
    kept = on_gpu(5, 6)
    counted.function = lambda x: scaled(kept)
    corner = Corner(counted)
    for _ in range(3):
        assert to_host(corner(on_gpu(1, 2))).tolist() == [10, 12]
    assert counted.runs == 3


def test_a_corner_that_calls_finished_ops_is_never_replayed() -> None:
    """Their recordings launch past the recorder, so it must not take the memory for the corner's own."""

    def through_tensors(x: CudaArray) -> CudaArray:
        return tt.Tensor.wrap(x).abs()._array

    for _ in range(doors.BEGIN + 3):
        through_tensors(on_gpu(1, 2))
    corner = Corner(through_tensors)
    for values in ((-1, 2), (3, -4), (-5, -6)):
        assert to_host(corner(on_gpu(*values))).tolist() == [abs(v) for v in values]
    assert not corner.recordings


def test_results_that_are_inputs_or_lie_in_their_memory(counted: Counted) -> None:
    counted.function = lambda a, b: (b, a[1:], None, scaled(scaled(a)[1:]))
    corner = Corner(counted)
    for values in ((1, 2, 3), (4, 5, 6)):
        a, b = on_gpu(*values), on_gpu(7)
        same, tail, nothing, fresh = corner(a, b)
        assert same is b
        assert tail.storage is a.storage
        assert to_host(tail).tolist() == list(values[1:])
        assert nothing is None
        assert to_host(fresh).tolist() == [4 * v for v in values[1:]]
    assert counted.runs == 1


def test_inputs_that_share_memory_and_inputs_that_do_not_share_a_recording() -> None:
    corner = registry["mul"].forward
    assert isinstance(corner, Corner)
    corner.forget()
    x, y = on_gpu(1, 2, 3), on_gpu(4, 5, 6)
    for a, b, want in ((x, x, [1, 4, 9]), (x, y, [4, 10, 18]), (y, x, [4, 10, 18]), (y, y, [16, 25, 36])):
        assert to_host(corner(a, b)).tolist() == want
    assert len(corner.recordings) == 1


def test_tuples_of_arrays(counted: Counted) -> None:
    counted.function = lambda xs, needs: tuple(scaled(x) if need else None for x, need in zip(xs, needs, strict=True))
    corner = Corner(counted)
    for _ in range(2):
        first, second = corner((on_gpu(1), on_gpu(2, 3)), (True, False))
        assert to_host(first).tolist() == [2]
        assert second is None
        first, second = corner((on_gpu(1), on_gpu(2, 3)), (False, True))
        assert first is None
        assert to_host(second).tolist() == [4, 6]
    assert counted.runs == 2


def test_memory_that_overlaps_reaches_a_mutating_corner_as_it_is(counted: Counted) -> None:
    seen = []

    def shift(target: CudaArray, source: CudaArray) -> None:
        seen.append(target.storage is source.storage)

    corner = Corner(shift, mutates=True)
    x = on_gpu(1, 2, 3)
    corner(x[1:], on_gpu(1, 2))
    corner(x[1:], x[:2])
    corner(x[1:], on_gpu(1, 2))
    assert seen == [False, True]


def test_views_are_learnt_too() -> None:
    for _ in range(3):
        x = tt.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device="cuda", requires_grad=True)
        part = x[:, 1:].t()
        y = part.reshape(4).view(2, 2)
        assert part._array.storage is x._array.storage
        assert part.shape == (2, 2)
        assert part.tolist() == [[2.0, 5.0], [3.0, 6.0]]
        assert y.tolist() == [[2.0, 5.0], [3.0, 6.0]]
        (part * part).sum().backward()
        assert x.grad.tolist() == [[0.0, 4.0, 6.0], [0.0, 10.0, 12.0]]
        base = tt.zeros(2, 3, device="cuda")
        base.t().add_(1.0)
        assert base.sum().item() == 6.0


def test_a_refused_view_is_refused_each_time() -> None:
    x = tt.zeros(2, 3, device="cuda").t()
    for _ in range(2):
        with pytest.raises(ValueError, match="view"):
            x.view(6)


def test_a_failure_while_recording_leaves_nothing_behind(counted: Counted) -> None:
    def fails(x: CudaArray) -> CudaArray:
        raise ValueError("no")

    corner = Corner(fails)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            corner(on_gpu(1))
    assert not corner.recordings
    assert to_host(Corner(counted)(on_gpu(1))).tolist() == [2]


def test_a_setting_that_corners_depend_on_is_seen_at_once() -> None:
    a = tt.rand(16, 16, device="cuda")
    corner = registry["matmul"].forward
    assert isinstance(corner, Corner)
    a @ a
    assert corner.recordings
    before = tt.get_float32_matmul_precision()
    try:
        tt.set_float32_matmul_precision("medium")
        assert not corner.recordings
    finally:
        tt.set_float32_matmul_precision(before)


def test_turned_off_every_call_runs_its_corner(counted: Counted) -> None:
    corner = Corner(counted)
    assert replay.enable(False)
    for _ in range(3):
        corner(on_gpu(1))
    assert counted.runs == 3


def test_random_ops_draw_anew() -> None:
    tt.manual_seed(1)
    x = tt.ones(64, device="cuda")
    drawn = [tt.nn.functional.dropout(x, 0.5, training=True).cpu().numpy() for _ in range(3)]
    assert not np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[1], drawn[2])


def test_gradients_are_the_same_recorded_replayed_and_plain() -> None:
    rng = np.random.default_rng(0)

    def gradient(values: np.ndarray) -> np.ndarray:
        x = tt.tensor(values, device="cuda", requires_grad=True)
        y = tt.softmax((x * x + 1.0).tanh() @ x.t(), dim=-1)
        (y * y).sum().backward()
        return x.grad.cpu().numpy()

    draws = [rng.standard_normal((3, 5)).astype(np.float32) for _ in range(3)]
    recorded = [gradient(v) for v in draws]
    again = [gradient(v) for v in draws]
    try:
        replay.enable(False)
        plain = [gradient(v) for v in draws]
    finally:
        replay.enable(True)
    for a, b, c in zip(recorded, again, plain, strict=True):
        assert np.array_equal(a, c)
        assert np.array_equal(b, c)


def test_no_kernel_file_handles_addresses() -> None:
    """An address in an integer argument would be baked into a recording.

    Its rest by 16 is part of the layout, for which a recording is made; `address_of` tells the recorder. What the optimizers' table keeps lies in
    the device's memory.
    """
    for path in (ROOT / "kernels").rglob("*.py"):
        tree = ast.parse(path.read_text())
        free: set[ast.AST] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and ast.unparse(node.right) == "16":
                free.add(node.left)
            elif isinstance(node, ast.ClassDef) and node.name == "GpuTable":
                free.update(ast.walk(node))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node not in free:
                assert node.attr not in ("data_ptr", "pointer", "GpuTable"), f"{path.name}:{node.lineno}: {node.attr}"
            elif isinstance(node, ast.Name | ast.alias):
                named = node.id if isinstance(node, ast.Name) else node.name
                assert named != "GpuTable", f"{path.name}:{node.lineno}: a kernel file calls it"
