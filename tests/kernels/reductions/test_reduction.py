"""Reductions where the table walk cannot see: how axes collapse, rows shared among programs, long rows with small tiles, errors, accuracy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tritensor as tt
import tritensor.kernels
from tritensor.autograd import engine
from tritensor.ground.device import device
from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.kernels.losses.cross_entropy import gpu as cross_entropy
from tritensor.kernels.normalization import row_kernels, softmax
from tritensor.kernels.parts import axes, reduction
from tritensor.kernels.parts.rows import row_tiles
from tritensor.ops import replay
from tritensor.ops.array import CudaArray, from_host, to_host
from tritensor.ops.table import ops, registry
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public

GPU = device("cuda", 0)


def on_device(x: np.ndarray) -> CudaArray:
    found = from_host(x, GPU)
    assert isinstance(found, CudaArray)
    return found


def forward(name: str, *inputs: CudaArray, **attrs: Any) -> Any:
    run = registry[name].forward
    assert run is not None
    return run(*inputs, **attrs)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tiles of 16 elements, two of them in sequence, rows shared among programs from 16 elements on: every loop of the kernel runs."""
    replay.forget()  # recordings with other tiles
    monkeypatch.setattr(axes, "TILE", 64)
    monkeypatch.setattr(axes, "SPLIT", 16)
    monkeypatch.setattr(axes, "LONGEST", 5)
    monkeypatch.setattr(reduction, "CHAIN", 2)
    yield
    replay.forget()


# Axes
@pytest.mark.parametrize(
    ("shape", "strides", "dims", "kept", "outer", "inner"),
    [
        ((4, 5, 6), (30, 6, 1), (0, 1, 2), (1,), (1,), 120),  # dense: one run
        ((4, 5, 6), (30, 6, 1), (1, 2), (4,), (1,), 30),
        ((4, 5, 6), (30, 6, 1), (0,), (30,), (1,), 4),
        ((4, 5, 6), (30, 6, 1), (0, 2), (5,), (4,), 6),
        ((6, 4), (1, 6), (0, 1), (1,), (1,), 24),  # transposed and dense: the order of memory
        ((6, 4), (1, 8), (0, 1), (1,), (4,), 6),  # with gaps: two axes, the dense one inside
        ((4, 1, 5), (5, 999, 1), (0, 1, 2), (1,), (1,), 20),  # a dim of 1 has no stride
        ((3, 4), (0, 0), (0, 1), (1,), (1,), 12),  # broadcast from one element
    ],
)
def test_axes_collapse(shape: Any, strides: Any, dims: Any, kept: Any, outer: Any, inner: int) -> None:
    found = axes.layout(shape, dims, (strides,), 0, False)
    assert (found.kept, found.outer, found.inner) == (kept, outer, inner)
    assert found.rows * found.count == int(np.prod(shape))


def test_an_ordered_reduction_keeps_c_order() -> None:
    found = axes.layout((6, 4), (0, 1), ((1, 6),), 0, True)
    assert (found.outer, found.inner, found.inner_strides) == ((6,), 4, (6,))


def test_offsets_past_31_bits_are_wide() -> None:
    assert axes.layout((3, 5), (1,), ((2**30, 1),), 0, False).long_offsets
    assert not axes.layout((3, 5), (1,), ((2**29, 1),), 0, False).long_offsets


# Every loop of the kernel
def strided(rng: np.random.Generator, shape: tuple[int, ...]) -> list[tuple[np.ndarray, CudaArray]]:
    """Small integers (so that sums are exact) in several layouts, as numpy and on the device."""
    x = rng.integers(-5, 6, shape).astype(np.float32)
    order = tuple(reversed(range(x.ndim)))
    flipped = on_device(x)[tuple(slice(None, None, -1) for _ in shape)]
    return [
        (x, on_device(x)),
        (x, on_device(np.ascontiguousarray(x.transpose(order))).transpose(order)),
        (x[::-1, ::-1, ::-1], flipped),
        (np.broadcast_to(x[:1], shape), on_device(x[:1]).expand(shape)),
    ]


@pytest.mark.parametrize("dims", [d for n in range(4) for d in itertools.combinations(range(3), n)])
def test_any_axes_of_any_layout(tiny: None, dims: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    for x, d in strided(rng, (5, 9, 7)):
        assert np.array_equal(to_host(forward("sum", d, dim=dims, keepdim=False)), x.sum(dims))
        assert np.array_equal(to_host(forward("amax", d, dim=dims, keepdim=True)), x.max(dims, keepdims=True))


def test_first_index_among_equals_across_programs(tiny: None) -> None:
    rng = np.random.default_rng(1)
    for x, d in strided(rng, (4, 6, 11)):
        assert to_host(forward("argmax", d, dim=None, keepdim=False)) == x.argmax()
        for dim in range(3):
            values, indices = forward("min_dim", d, dim=dim, keepdim=False)
            assert np.array_equal(to_host(indices), x.argmin(dim))
            assert np.array_equal(to_host(values), x.min(dim))


def test_nan_wins_across_programs(tiny: None) -> None:
    x = np.arange(300, dtype=np.float32)
    x[[77, 201]] = np.nan
    assert np.isnan(to_host(forward("amax", on_device(x), dim=(0,), keepdim=False)))
    assert to_host(forward("argmax", on_device(x), dim=0, keepdim=False)) == 77
    assert to_host(forward("argmin", on_device(x), dim=0, keepdim=False)) == 77


def test_variance_across_programs_far_from_zero(tiny: None) -> None:
    x = np.random.default_rng(2).normal(size=(2, 500)) + 1e6
    found = to_host(forward("var", on_device(x), dim=(1,), correction=1, keepdim=False))
    np.testing.assert_allclose(found, x.var(1, ddof=1), rtol=1e-9)


def test_a_split_sum_is_the_same_every_time() -> None:
    x = on_device(np.random.default_rng(3).normal(size=20_000).astype(np.float32))
    first = to_host(forward("sum", x, dim=(0,), keepdim=False))
    assert all(to_host(forward("sum", x, dim=(0,), keepdim=False)).tobytes() == first.tobytes() for _ in range(3))


# Long rows with small tiles
@pytest.mark.parametrize(("shape", "dim"), [((3, 37), 1), ((37, 5), 0), ((2, 37, 3), 1)])
@pytest.mark.parametrize("log", [False, True])
def test_softmax_walks_long_rows(shape: tuple[int, ...], dim: int, log: bool) -> None:
    rng = np.random.default_rng(4)
    name = "log_softmax" if log else "softmax"
    x, g = rng.normal(size=shape) * 3, rng.normal(size=shape)
    x[(0,) * len(shape)] = -np.inf
    on = row_tiles.row_tiles(shape, dim, 4, limit=8, tile=16)
    assert not on.whole
    want = registry[name].cpu(x, dim=dim)
    got = softmax.forward_rows(on_device(x), dim, log, on)
    np.testing.assert_allclose(to_host(got), want, rtol=1e-12)
    x[(0,) * len(shape)] = 0
    y = registry[name].cpu(x, dim=dim)
    down = softmax.backward_rows(on_device(g), on_device(y), dim, log, on)
    backward = registry[name].cpu_backward
    assert backward is not None
    np.testing.assert_allclose(to_host(down), backward.functions[0](g, y, dim), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("shape", [(4, 37), (2, 37, 3)])
def test_cross_entropy_walks_long_rows(shape: tuple[int, ...], probabilities: bool) -> None:
    rng = np.random.default_rng(5)
    x, weight = rng.normal(size=shape), 0.5 + rng.random(37)
    target = rng.random(shape) if probabilities else rng.integers(0, 37, (shape[0], *shape[2:]))
    on = row_tiles.row_tiles(shape, 1, 4, limit=8, tile=16)
    given = tuple(on_device(a) for a in (x, target, weight))
    loss, lse, total = cross_entropy.forward_rows(*given, "mean", -100, 0.1, on)
    want = registry["cross_entropy"].cpu(x, target, weight, reduction="mean", label_smoothing=0.1)
    np.testing.assert_allclose(to_host(loss), want[0], rtol=1e-12)
    np.testing.assert_allclose(to_host(lse), want[1], rtol=1e-12)
    needs = (True, probabilities, False)
    got = cross_entropy.backward_rows(on_device(np.asarray(2.0)), *given, lse, total, "mean", -100, 0.1, needs, on)
    backward = registry["cross_entropy"].cpu_backward
    assert backward is not None
    expected = backward.functions[0](np.asarray(2.0), x, target, weight, want[0], want[1], "mean", -100, 0.1, needs)
    for a, b in zip(got, expected, strict=False):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(to_host(a), b, rtol=1e-9, atol=1e-14)


def test_layer_norm_walks_long_rows() -> None:
    rng = np.random.default_rng(6)
    x, w, b, g = rng.normal(size=(3, 37)) + 5, rng.normal(size=37), rng.normal(size=37), rng.normal(size=(3, 37))
    on = row_tiles.row_tiles((3, 37), 1, 4, limit=8, tile=16)
    y, mean, rstd = row_kernels.forward_rows(on_device(x), on_device(w), on_device(b), 1e-5, 1, on)
    want = registry["layer_norm"].cpu(x, w, b)
    for got, expected in zip((y, mean, rstd), want, strict=True):
        np.testing.assert_allclose(to_host(got), expected, rtol=1e-10, atol=1e-12)
    dx = row_kernels.backward_rows(on_device(g), on_device(x), on_device(w), mean, rstd, 1, on)
    backward = registry["layer_norm"].cpu_backward
    assert backward is not None
    expected = backward.functions[0](g, x, w, b, want[1], want[2], 1, (True, False, False))[0]
    np.testing.assert_allclose(to_host(dx), expected, rtol=1e-9, atol=1e-12)


def test_rms_norm_walks_long_rows() -> None:
    rng = np.random.default_rng(6)
    x, w, g = rng.normal(size=(3, 37)) + 5, rng.normal(size=37), rng.normal(size=(3, 37))
    on = row_tiles.row_tiles((3, 37), 1, 4, limit=8, tile=16)
    y, mean, rstd = row_kernels.forward_rows(on_device(x), on_device(w), None, 1e-5, 1, on, centred=False)
    want = registry["rms_norm"].cpu(x, w)
    assert mean is None
    for got, expected in zip((y, rstd), want, strict=True):
        np.testing.assert_allclose(to_host(got), expected, rtol=1e-10, atol=1e-12)
    dx = row_kernels.backward_rows(on_device(g), on_device(x), on_device(w), None, rstd, 1, on)
    backward = registry["rms_norm"].cpu_backward
    assert backward is not None
    np.testing.assert_allclose(to_host(dx), backward.functions[0](g, x, w, want[1], 1, (True, False))[0], rtol=1e-9, atol=1e-12)


# Labels that are no class
def test_a_label_out_of_range_is_named() -> None:
    x, t = np.zeros((3, 4), np.float32), np.array([1, 7, 0])
    with pytest.raises(IndexError, match=r"label 7 at position 1 is no class; there are 4"):
        registry["cross_entropy"].cpu(x, t)
    with pytest.raises(IndexError, match=r"label 7 at position 1 is no class; there are 4"):
        to_host(forward("cross_entropy", on_device(x), on_device(t))[0])
    with pytest.raises(IndexError, match=r"label -1 at position \(1, 0\)"):
        registry["cross_entropy"].cpu(np.zeros((2, 3, 2), np.float32), np.array([[0, 1], [-1, 2]]))


def test_the_kernel_does_not_follow_a_label_out_of_range() -> None:
    x, t = np.zeros((3, 4), np.float32), np.array([1, 10**6, -1])
    on = row_tiles.row_tiles((3, 4), 1, 4)
    losses, lse, total = cross_entropy.forward_rows(on_device(x), on_device(t), None, "none", -100, 0.0, on)
    assert list(np.isnan(to_host(losses))) == [False, True, True]
    mean = cross_entropy.forward_rows(on_device(x), on_device(t), None, "mean", -100, 0.0, on)[0]
    assert np.isnan(to_host(mean))
    needs = (True, False, False)
    dx, _ = cross_entropy.backward_rows(
        on_device(np.ones(3, np.float32)), on_device(x), on_device(t), None, lse, total, "none", -100, 0.0, needs, on
    )
    assert list(np.isnan(to_host(dx)).all(1)) == [False, True, True]


def test_a_mean_over_ignored_rows_only_is_nan() -> None:
    x, t = np.zeros((2, 3), np.float32), np.full(2, -100)
    assert np.isnan(registry["cross_entropy"].cpu(x, t)[0])
    assert np.isnan(to_host(forward("cross_entropy", on_device(x), on_device(t))[0]))


@pytest.mark.parametrize("where", ["cpu", "cuda"])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("shape", [(1, 130), (5, 130), (40, 30), (300, 7), (7, 300), (3, 40, 5), (900,)])
def test_every_dim_of_few_and_of_many_elements(where: str, keepdim: bool, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(9).uniform(-1, 1, shape)
    laid = {"in C order": values, "turned": np.asfortranarray(values), "with gaps": np.repeat(values, 2, axis=-1)[..., ::2]}
    sets = [dims for n in range(1, len(shape) + 1) for dims in itertools.combinations(range(len(shape)), n)]
    for (name, x), dims in itertools.product(laid.items(), sets):
        given = on_device(x) if where == "cuda" else x
        for op, exact in (("sum", np.sum), ("mean", np.mean), ("amax", np.max)):
            run = registry[op].forward if where == "cuda" else registry[op].cpu
            found = np.asarray(to_host(run(given, dim=dims, keepdim=keepdim)))  # type: ignore[misc]
            want = exact(x, axis=dims, keepdims=keepdim)
            assert found.shape == want.shape, (op, name, dims)
            np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12, err_msg=f"{op} {name} {dims}")


@pytest.mark.parametrize("where", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "prod", "var"])
@pytest.mark.parametrize(("dim", "axis"), [(1, 1), (-1, 2), ((0, -1), (0, 2)), (None, None)])
def test_an_op_takes_its_dims_in_every_form(where: str, name: str, dim: Any, axis: Any) -> None:
    values = np.random.default_rng(3).uniform(0.5, 1.5, (3, 4, 5))
    found = getattr(ops, name)(Tensor.wrap(on_device(values) if where == "cuda" else values), dim=dim)
    want = values.var(axis, ddof=1) if name == "var" else getattr(np, name)(values, axis=axis)
    np.testing.assert_allclose(to_host(found._array), want, rtol=1e-12)


# Accuracy
@pytest.mark.parametrize(
    ("shape", "dims"),
    [((300_000, 3), (0,)), ((1_000_000,), (0,)), ((40, 3000, 7), (0, 1)), ((7, 3000, 40), (1,)), ((1001, 999), (0, 1)), ((4, 320), (1,))],
)
def test_sums_on_the_cpu_lose_at_most_8_eps(shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    for x in (np.random.default_rng(7).random(shape, np.float32), np.full(shape, 0.1, np.float32)):
        for view in (x, np.asfortranarray(x), x[::-1]):
            error = np.abs(registry["sum"].cpu(view, dim=dims).astype(np.float64) - view.sum(dims, dtype=np.float64))
            assert np.all(error <= 8 * np.finfo(np.float32).eps * np.abs(view).sum(dims, dtype=np.float64))


@pytest.mark.parametrize(("shape", "dims"), [((60_000, 2), (0,)), ((300_000,), (0,))])
def test_sums_on_the_device_lose_at_most_8_eps(shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    for x in (np.random.default_rng(8).random(shape, np.float32), np.full(shape, 0.1, np.float32)):
        error = np.abs(to_host(forward("sum", on_device(x), dim=dims, keepdim=False)).astype(np.float64) - x.sum(dims, dtype=np.float64))
        assert np.all(error <= 8 * np.finfo(np.float32).eps * x.sum(dims, dtype=np.float64))


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_16_bit_floats_accumulate_in_float32(kind: Any) -> None:
    x = np.ones(3000, kind)
    for found in (registry["sum"].cpu(x, dim=(0,)), to_host(forward("sum", on_device(x), dim=(0,), keepdim=False))):
        assert found.dtype == kind
        assert float(found) == float(np.asarray(3000, kind))


def test_integers_and_bools_are_summed_in_int64() -> None:
    for x in (np.full(300, 127, np.int8), np.ones(300, np.bool_), np.full(3, 2**31 - 1, np.int32)):
        for found in (registry["sum"].cpu(x, dim=(0,)), to_host(forward("sum", on_device(x), dim=(0,), keepdim=False))):
            assert np.asarray(found).dtype == np.int64
            assert int(found) == int(x.sum(dtype=np.int64))


# Public functions
def tensor(x: Any, grad: bool = False) -> Tensor:
    found = Tensor.wrap(np.asarray(x))
    found.requires_grad = grad
    return found


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "var", "amax", "any"])
def test_a_repeated_dim_is_refused_wherever_the_op_is_entered(name: str) -> None:
    attrs: dict[str, Any] = {"correction": 1} if name == "var" else {}
    for x in (np.ones((2, 3), np.float32), on_device(np.ones((2, 3), np.float32))):
        for dim in ((0, 0), (0, -2), [1, 1]):
            with pytest.raises(ShapeError, match=f"{name}: dim .* names a dimension twice"):
                registry[name].shape(x, dim=dim, **attrs)
    assert registry[name].shape(np.ones((2, 3, 4), np.float32), dim=(-1, 0), **attrs).shape == (3,)


def test_refusals_name_op_and_cure() -> None:
    empty = tensor(np.zeros((2, 0), np.float32))
    with pytest.raises(ShapeError, match=r"amax: input \(2, 0\) has no element along dim 1"):
        public["amax"](empty, 1)
    with pytest.raises(ShapeError, match="argmin"):
        public["argmin"](empty)
    with pytest.raises(DTypeError, match="mean: input is int64"):
        public["mean"](tensor([1, 2]))
    with pytest.raises(IndexError, match="dim 2 is out of range"):
        public["sum"](empty, 2)
    with pytest.raises(ShapeError, match="twice"):
        public["sum"](empty, (0, -2))
    with pytest.raises(TypeError, match="two names"):
        public["sum"](empty, 0, axis=1)
    with pytest.raises(TypeError, match="dim is missing"):
        public["softmax"](empty)
    with pytest.raises(ShapeError, match=r"mse_loss: x \(3, 1\) and target \(3,\) differ"):
        registry["mse_loss"].shape(np.zeros((3, 1)), np.zeros(3))


def test_empty_reductions() -> None:
    empty = tensor(np.zeros((2, 0), np.float32))
    assert public["sum"](empty, 1).tolist() == [0, 0]
    assert public["prod"](empty, 1).tolist() == [1, 1]
    assert np.isnan(public["mean"](empty, 1).numpy()).all()
    assert public["all"](empty).item() is True
    assert public["any"](empty).item() is False


def test_max_in_all_its_forms() -> None:
    x = tensor([[1.0, 5.0, 5.0], [4.0, 2.0, 4.0]])
    assert public["max"](x).item() == 5
    values, indices = public["max"](x, 1)
    assert (values.tolist(), indices.tolist()) == ([5, 4], [1, 0])
    assert public["max"](x, dim=-1).indices.tolist() == [1, 0]
    assert public["max"](x, tensor([3.0, 3.0, 3.0])).tolist() == [[3, 5, 5], [4, 3, 4]]
    assert public["min"](x, 0, keepdim=True).values.tolist() == [[1, 2, 4]]
    assert public["amax"](x, (0, 1)).item() == 5


def test_who_gets_the_gradient_of_a_tie() -> None:
    x = tensor([1.0, 5.0, 5.0], grad=True)
    (shared,) = engine.grad(public["max"](x), x)
    assert shared.tolist() == [0, 0.5, 0.5]
    (chosen,) = engine.grad(public["max"](x, 0).values, x)
    assert chosen.tolist() == [0, 1, 0]


def test_six_derivatives_of_a_norm() -> None:
    x = tensor([4.0, 3.0], grad=True)
    found = public["norm"](x)
    for want in (0.8, 0.072, -0.03456, 0.019008, -0.01022976, 0.0033260544):  # of sqrt(x^2 + 9) at x = 4
        (gradient,) = engine.grad(found, x, create_graph=True)
        found = public["sum"](gradient * tensor([1.0, 0.0]))
        assert found.item() == pytest.approx(want, rel=1e-9)


def test_norms() -> None:
    x = np.array([[3.0, -4.0], [0.0, 2.0]])
    for p in (1, 2, 3, np.inf, -np.inf, 0):
        np.testing.assert_allclose(public["norm"](tensor(x), p, dim=1).numpy(), np.linalg.norm(x, p, axis=1), rtol=1e-12)
    assert public["norm"](tensor(x)).item() == pytest.approx(np.sqrt(29))
    zero = tensor(np.zeros(3), grad=True)
    assert engine.grad(public["norm"](zero), zero)[0].tolist() == [0, 0, 0]


def test_spread_and_its_signatures() -> None:
    x = np.random.default_rng(9).normal(size=(4, 5))
    t = tensor(x)
    assert public["std"](t).item() == pytest.approx(x.std(ddof=1))
    assert public["std"](t, False).item() == pytest.approx(x.std())
    np.testing.assert_allclose(public["var"](t, 0, unbiased=False).numpy(), x.var(0))
    np.testing.assert_allclose(public["var"](t, axis=1, correction=2, keepdims=True).numpy(), x.var(1, ddof=2, keepdims=True))
    variance, mean = public["var_mean"](t, 1)
    np.testing.assert_allclose((variance.numpy(), mean.numpy()), (x.var(1, ddof=1), x.mean(1)))


def test_logsumexp_does_not_overflow() -> None:
    x = np.array([[1000.0, 1000.0], [np.inf, 0.0], [-1000.0, 0.0]])
    np.testing.assert_allclose(public["logsumexp"](tensor(x), 1).numpy(), [1000 + np.log(2), np.inf, 0], rtol=1e-12)
    nothing = tensor(np.full(3, -np.inf))
    with np.errstate(divide="ignore"):
        assert public["logsumexp"](nothing).item() == -np.inf


@pytest.mark.parametrize("where", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["sum", "mean", "sum_of_squares", "amax", "amin", "prod"])
def test_ops_take_dims_counted_from_the_end(name: str, where: str) -> None:
    """A rule names `dim=(-1,)`, as its author thinks of it; the public functions count from the front before they call."""
    x = tt.randn(2, 130, device=where)
    call = getattr(tt.ops, name)
    assert call(x, dim=(-1,), keepdim=True).tolist() == call(x, dim=(1,), keepdim=True).tolist()
    assert call(x, dim=(-1, 0), keepdim=True).shape == (1, 1)
