"""The shared elementwise kernel: how calls are cut, formulas in three spellings, promises on zeros and 16-bit floats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.ground.device import device
from tritensor.kernels.parts import backends
from tritensor.kernels.parts.configs import element_tiles
from tritensor.kernels.parts.copying import contiguous, write
from tritensor.kernels.parts.cpu import blocks, special
from tritensor.kernels.parts.tapes import pointwise
from tritensor.ops.array import CudaArray, from_host, to_host
from tritensor.ops.table import registry

CUDA = device("cuda", 0)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("where", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16, tt.float32, tt.float64])
def test_negation_turns_the_sign_of_zero(where: str, dtype: tt.dtype) -> None:
    x = tt.tensor([0.0, -0.0, 1.0], dtype=dtype, device=where, requires_grad=True)
    y = -x
    y.backward(tt.zeros_like(y))
    assert [math.copysign(1.0, v) for v in y.tolist()] == [-1.0, 1.0, -1.0]
    assert x.grad is not None
    assert [math.copysign(1.0, v) for v in x.grad.tolist()] == [-1.0] * 3


class TestDevice:
    @pytest.mark.parametrize("shape", [(1025,), (3, 700), (40, 40, 3), (5, 1, 33, 2)])
    def test_large_and_small_tiles_reach_every_element(self, shape: tuple[int, ...], rng: np.random.Generator) -> None:
        a = rng.standard_normal(shape).astype(np.float32)
        got = registry["mul"].forward(from_host(a, CUDA), 2.0)  # type: ignore[misc]
        assert np.array_equal(to_host(got), a * 2)

    @pytest.mark.parametrize(("kind", "large"), [(np.float64, element_tiles.HEAVY[8]), (np.float32, element_tiles.LARGE)])
    def test_long_formulas_take_smaller_tiles_in_float64(
        self, kind: Any, large: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plans, plan = [], pointwise._plan
        monkeypatch.setattr(pointwise, "_plan", lambda *given: plans.append(plan(*given)) or plans[-1])
        op = registry["airy_ai"]
        a = rng.uniform(-6, 4, (131, 127)).astype(kind)
        got = to_host(op.forward(from_host(a, CUDA)))  # type: ignore[misc]
        eps = float(np.finfo(kind).eps)
        np.testing.assert_allclose(got, op.cpu(a), rtol=16 * eps, atol=4 * eps)  # near a zero
        assert [math.prod(p.tile) for p in plans] == [large]

    def test_more_elements_than_few_take_large_tiles(self, rng: np.random.Generator) -> None:
        a = rng.standard_normal((130, 129)).astype(np.float32)
        b = rng.standard_normal((129,)).astype(np.float32)
        x = from_host(a, CUDA)
        assert np.array_equal(to_host(registry["add"].forward(x, from_host(b, CUDA))), a + b)  # type: ignore[misc]
        assert isinstance(x, CudaArray)
        assert np.array_equal(to_host(registry["copy"].forward(x.transpose((1, 0)))), a.T)  # type: ignore[misc]

    @pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "bool", "int64"])
    def test_write_fills_any_window(self, dtype: str, rng: np.random.Generator) -> None:
        host = np.zeros((4, 6), getattr(tt, dtype).numpy)
        value = rng.integers(0, 2, (2, 1)).astype(host.dtype)
        target = from_host(host, CUDA)
        assert isinstance(target, CudaArray)
        write(target[1:4:2, ::-2], from_host(value, CUDA))
        write(host[1:4:2, ::-2], value)
        assert np.array_equal(to_host(target), host)

    def test_write_casts(self) -> None:
        target = from_host(np.zeros(3, np.float16), CUDA)
        write(target, from_host(np.array([1, 2, 3], np.int64), CUDA))
        assert to_host(target).tolist() == [1.0, 2.0, 3.0]

    def test_contiguous_copies_only_what_it_must(self) -> None:
        x = from_host(np.arange(6.0).reshape(2, 3), CUDA)
        assert isinstance(x, CudaArray)
        assert contiguous(x) is x
        turned = contiguous(x.transpose((1, 0)))
        assert isinstance(turned, CudaArray)
        assert turned.is_contiguous()
        assert to_host(turned).tolist() == [[0, 3], [1, 4], [2, 5]]

    def test_one_launch_gives_both_gradients(self, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
        launches = []
        real = pointwise.launch

        def counted(*args: Any, **named: Any) -> None:
            launches.append(args)
            real(*args, **named)

        monkeypatch.setattr(pointwise, "launch", counted)
        g, a, b = (from_host(rng.standard_normal((3, 5)), CUDA) for _ in range(3))
        backward = registry["maximum"].backward
        assert backward is not None
        assert backward.joint
        (joint,) = backward.functions
        assert joint is not None
        both = joint.function(g, a, b, (True, True))  # the corner's Python, which a replay does not run
        assert len(launches) == 1
        assert both[0] is not None
        assert both[1] is not None
        assert joint(g, a, b, (False, True))[0] is None

    def test_scalars_keep_their_precision(self) -> None:
        x = from_host(np.ones(3), CUDA)
        assert to_host(registry["mul"].forward(x, 0.1)).tolist() == [0.1] * 3  # type: ignore[misc]
        i = from_host(np.ones(3, np.int64), CUDA)
        assert to_host(registry["mul"].forward(i, 2**40 + 1)).tolist() == [2**40 + 1] * 3  # type: ignore[misc]


def test_a_body_serves_numpy_and_tensors() -> None:
    from tritensor.kernels.parts.formulas.activations import tanh_grad

    on_numpy, on_tensors = (backends.translate(tanh_grad, spelling) for spelling in (backends.on_numpy, backends.on_tensors))
    g, y = np.array([1.0, 2.0]), np.array([0.5, -0.25])
    assert on_numpy(g, y).tolist() == on_tensors(tt.from_numpy(g), tt.from_numpy(y)).tolist() == [0.75, 1.875]


def test_blocks_equal_the_whole(rng: np.random.Generator) -> None:
    x = rng.standard_normal(3 * blocks.BLOCK + 17).astype(np.float32)
    assert np.array_equal(special.erf(x), np.concatenate([special.erf(x[:1000]), special.erf(x[1000:])]))
    strided = np.stack([x, x], axis=1)[:, 0]
    assert np.array_equal(special.erf(strided), special.erf(x))
    room = x.copy()
    special.erf(room, room)  # in place
    assert np.array_equal(room, special.erf(x))


def test_zeroed_drops_infinities_as_well() -> None:
    g = np.array([np.inf, np.nan, -1.0, 2.0], np.float32)
    assert blocks.zero_where(g, np.array([True, True, False, True])).tolist() == [0.0, 0.0, -1.0, 0.0]
    assert blocks.zero_where(g[::2], np.array([False, True])).tolist() == [np.inf, 0.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_scalars_meet_16_bit_floats_in_float32(dtype: str, where: str) -> None:
    x = tt.tensor([0.25, 3.0], dtype=getattr(tt, dtype), device=where)
    assert (x * 100000.0 * 1e-5).dtype == x.dtype
    assert (x * 100000.0)[0].item() == tt.tensor(25000.0, dtype=x.dtype).item()  # 100000 itself is infinite in float16
    assert (x / 3.0)[1].item() == 1.0
    assert (2 - x).tolist() == [1.75, -1.0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("where", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["sqrt", "rsqrt", "log", "log2", "log10", "reciprocal"])
def test_an_upstream_zero_wins(name: str, where: str) -> None:
    z = tt.tensor([0.0, 4.0], device=where, requires_grad=True)
    y = tt.where(z > 0, getattr(tt, name)(z), 0.0).sum()
    (first,) = tt.autograd.grad(y, z, create_graph=True)
    assert first.tolist()[0] == 0.0
    assert math.isfinite(first.tolist()[1])
    assert first.tolist()[1] != 0.0
    (second,) = tt.autograd.grad(first.sum(), z)
    assert all(math.isfinite(v) for v in second.tolist())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_upstream_zero_wins_in_quotients_and_powers() -> None:
    for f in (lambda z: 1 / z, lambda z: z / z, lambda z: z**-1.5, lambda z: z**0.5):
        z = tt.tensor([0.0, 4.0], requires_grad=True)
        tt.where(z > 0, f(z), 0.0).sum().backward()
        assert z.grad is not None
        assert z.grad.tolist()[0] == 0.0


def test_a_gradient_that_happens_to_be_zero_is_still_differentiable() -> None:
    w = tt.tensor([0.0], dtype=tt.float64, requires_grad=True)
    x = tt.tensor([4.0], dtype=tt.float64, requires_grad=True)
    (g,) = tt.autograd.grad((w * x.sqrt()).sum(), x, create_graph=True)
    (mixed,) = tt.autograd.grad(g.sum(), w)
    assert mixed.item() == 0.25  # d/dw of w / (2 sqrt(x))


@pytest.mark.parametrize(
    ("x", "y", "quotient", "rest"),
    [(5, 3, 1, 2), (-5, 3, -2, 1), (5, -3, -2, -1), (-5, -3, 1, -2), (6, 3, 2, 0), (-6, 3, -2, 0)],
)
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_division_follows_the_sign_of_the_divisor(x: int, y: int, quotient: int, rest: int, dtype: str) -> None:
    a = tt.tensor([x], dtype=getattr(tt, dtype))
    assert (a // y).item() == quotient
    assert (a % y).item() == rest
    assert tt.div(a, y, rounding_mode="trunc").item() == int(x / y)
    assert tt.fmod(a, y).item() == math.fmod(x, y)


def test_integers_divided_by_zero_raise() -> None:
    a = tt.tensor([1, 2])
    for f in (lambda: a // 0, lambda: a % 0, lambda: a // tt.tensor([1, 0]), lambda: tt.fmod(a, 0)):
        for error in (ZeroDivisionError, RuntimeError):  # Python's, and PyTorch's
            with pytest.raises(error, match="integer division by zero"):
                f()


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_no_integers_may_be_divided_by_zero(on: str, dtype: str) -> None:
    kind = getattr(tt, dtype)
    none, zero = tt.zeros(0, 3, dtype=kind, device=on), tt.zeros(3, dtype=kind, device=on)
    for f in (lambda a, b: a // b, lambda a, b: a % b, tt.fmod, lambda a, b: tt.div(a, b, rounding_mode="trunc"), tt.Tensor.floor_divide_):
        for b in (0, zero, zero[:1], zero[0]):
            assert f(none.clone(), b).shape == (0, 3)


def test_types_that_an_op_does_not_take_are_named() -> None:
    with pytest.raises(tt.DTypeError, match=r"floor: x is int64; floor takes float types; cast it with .to\(float32\)"):
        registry["floor"].shape(np.zeros(3, np.int64))
    with pytest.raises(tt.DTypeError, match="where: condition is float32, not bool"):
        tt.where(tt.tensor([1.0]), tt.tensor([1.0]), 0.0)
    with pytest.raises(RuntimeError, match="clamp: neither min nor max"):
        tt.clamp(tt.tensor([1.0]))
    with pytest.raises(ValueError, match="gelu: approximate is 'exact'"):
        registry["gelu"].shape(np.zeros(3, np.float32), approximate="exact")
    with pytest.raises(tt.ShapeError, match=r"add: input \(3,\), other \(4,\)"):
        tt.add(tt.zeros(3), tt.zeros(4))


def test_special_functions_against_the_standard_library(rng: np.random.Generator) -> None:
    x = np.concatenate([rng.uniform(-6, 6, 2000), [0.0, -0.0, np.inf, -np.inf, 27.0, -27.0]])
    for ours, exact in ((special.erf, math.erf), (special.erfc, math.erfc)):
        want = np.array([exact(v) for v in x])
        assert np.allclose(ours(x), want, rtol=3e-15, atol=0), ours
        narrow = x.astype(np.float32)
        want = np.array([exact(float(v)) for v in narrow])
        normal = np.abs(want) > 1e-37
        error = np.abs(ours(narrow) - want)[normal] / np.spacing(np.abs(want[normal]).astype(np.float32))
        assert error.max() <= 4, ours
    assert np.isnan(special.erf(np.array([np.nan], np.float32))).all()


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "expm1", "log1p", "atan", "cosh"])
def test_16_bits_go_through_float32_whatever_the_processor_has(name: str) -> None:
    """numpy's own float16 loops are 2 ULP off where the processor has AVX512-FP16: the reference is never numpy's bare function."""
    reference = registry[name].cpu
    assert not isinstance(reference, np.ufunc)
    x = np.linspace(0.01, 3.0, 500).astype(np.float16)
    want = getattr(np, {"atan": "arctan"}.get(name, name))(x.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(reference(x), want)


@pytest.mark.parametrize("bounds", [(-0.5, 0.75), (1, -1), (float("nan"), 1.0), (-0.5, None)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clamp_of_many_is_clamp_of_few(dtype, bounds):
    x = np.random.default_rng(0).standard_normal((60, 50)).astype(dtype)
    x[0, :4] = np.nan, np.inf, -np.inf, -0.0
    clamp = registry["clamp"].cpu
    wanted = np.stack([clamp(row, *bounds) for row in x])
    for given in (x, np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2]):
        np.testing.assert_array_equal(clamp(given, *bounds), wanted)
    over = x.copy()
    assert clamp(over, *bounds, out=over) is over
    np.testing.assert_array_equal(over, wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradient_of_many_through_relu_is_that_of_few(dtype):
    g, y = np.random.default_rng(0).standard_normal((2, 60, 50)).astype(dtype)
    y[0, :3], g[1, :2] = (np.nan, 0.0, -0.0), (np.nan, np.inf)
    (backward,) = registry["relu"].cpu_backward.functions
    wanted = np.stack([backward(a, b) for a, b in zip(g, y, strict=True)])
    np.testing.assert_array_equal(backward(g, y), wanted)
    np.testing.assert_array_equal(backward(g.T, y.T), wanted.T)
    np.testing.assert_array_equal(wanted, np.where(y <= 0, 0, g))


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_sums_of_equal_exponentials(on: str) -> None:
    x = np.array([-3.0, 0.0, 2.5, 800.0, -np.inf, np.inf])
    y = tt.logaddexp(tt.tensor(x, device=on), tt.tensor(x, device=on))
    np.testing.assert_allclose(y.cpu().numpy(), x + math.log(2), rtol=1e-15)
