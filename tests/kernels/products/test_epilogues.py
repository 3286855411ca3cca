"""Epilogues of matrix products: every kernel with every part of one, at ragged tiles, split and whole; and Linear with its activation in Sequential."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tritensor as tt
from tests.kernels.planting import planted
from tritensor import nn
from tritensor.ground.device import device
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.kernels.parts import gemm as by_pointers
from tritensor.kernels.parts.formulas import activations
from tritensor.kernels.parts.gemm import gemm
from tritensor.kernels.parts.launch_rules import Tiles, forced
from tritensor.kernels.parts.products import descriptor_kernel, epilogue, split_sums
from tritensor.kernels.parts.products.epilogue import Epilogue
from tritensor.kernels.parts.products.rules import DescribedTiles
from tritensor.nn import functional as F
from tritensor.ops.array import empty, from_host, to_host
from tritensor.ops.tuning import config_choice

GPU = device("cuda", 0)
BF16 = np.dtype(ml_dtypes.bfloat16)


def product(m: int, n: int, k: int, dtype: Any, residual: bool, kept: bool, scale: float, bias: bool = True) -> tuple[str, list[str]]:
    """What is wrong with relu(a b + bias) scale + residual against float64, each element beside the absolute values of its sum; the kernels."""
    draw = np.random.default_rng((m, n, k)).standard_normal
    a, b, r, v = (draw(s).astype(dtype) for s in ((m, k), (k, n), (m, n), (n,)))
    c, z = empty((m, n), dtype, GPU), empty((m, n), dtype, GPU) if kept else None
    finish = Epilogue(activations.relu, scale, from_host(r, GPU) if residual else None, z)  # type: ignore[arg-type]
    with config_choice.noted() as asked:
        gemm(from_host(a, GPU), from_host(b, GPU), c, from_host(v, GPU) if bias else None, finish=finish)  # type: ignore[arg-type]
    wide = np.float64
    inner = a.astype(wide) @ b.astype(wide) + (v.astype(wide) if bias else 0)
    size = np.abs(a).astype(wide) @ np.abs(b).astype(wide) + np.abs(v).astype(wide)
    exact = np.maximum(inner, 0) * scale + (r.astype(wide) if residual else 0)
    eps, unit = float(ml_dtypes.finfo(np.dtype(dtype)).eps), np.finfo(np.float32).eps
    pairs = [("result", c, exact, size * abs(scale) + np.abs(r).astype(wide)), *([("kept", z, inner, size)] if kept else [])]
    bad = [
        name
        for name, got, right, most in pairs
        if (~(np.abs(to_host(got).astype(wide) - right) <= 8 * unit * most + eps * np.abs(right))).any()  # type: ignore[arg-type]
    ]
    return ", ".join(bad), [one.kernel for one in asked]


@pytest.mark.crossed
@pytest.mark.parametrize(("residual", "kept", "scale"), list(itertools.product((False, True), (False, True), (1.0, -1.5))))
@pytest.mark.parametrize(
    "tiles",
    [
        DescribedTiles(64, 64, 16, 1, 4, 2, 3, 4, 1, True),
        DescribedTiles(64, 64, 16, 3, 4, 2, 8, 2, 0, False),
        DescribedTiles(64, 32, 16, 1, 4, 2, 2, 1, 2, False),
    ],
)
def test_by_descriptors(tiles: DescribedTiles, residual: bool, kept: bool, scale: float) -> None:
    """In pieces, split, more programs than tiles and fewer; rows of 152 elements, which are described, and of 149, which are not."""
    for n in (152, 149):
        b_is_described = n == 152
        with forced(matmul_described=tiles, sum_parts=64):
            said, kernels = product(64 * 4 + 16, n, 16 * 4 + 8, BF16, residual, kept, scale)
        assert not said, (n, said)
        assert not b_is_described or kernels == ["matmul_described", *["sum_parts"] * (tiles.split > 1)]


@pytest.mark.crossed
@pytest.mark.parametrize(("residual", "kept", "scale"), list(itertools.product((False, True), (False, True), (1.0, -1.5))))
@pytest.mark.parametrize("split", [1, 3])
@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)])
def test_by_pointers(dtype: Any, split: int, residual: bool, kept: bool, scale: float) -> None:
    with forced(matmul=Tiles(16, 16, 16, split, 4, 2), matmul_described=DescribedTiles(64, 16, 16, split, 4, 2), sum_parts=64):
        assert product(16 * 9 + 5, 16 * 2 + 3, 16 * 4 + 3, dtype, residual, kept, scale, bias=split == 1)[0] == ""


@pytest.mark.parametrize("split", [1, 3])
def test_a_scale_of_float64_keeps_its_digits(split: int) -> None:
    with forced(matmul=Tiles(16, 16, 16, split, 4, 2), sum_parts=64):
        assert product(20, 19, 70, np.dtype(np.float64), True, False, 0.1)[0] == ""
    a, c = (from_host(np.full(s, 1.0), GPU) for s in ((1, 1), (1, 1)))
    gemm(a, a, c, finish=Epilogue(scale=0.1))  # type: ignore[arg-type]
    assert to_host(c).item() == 0.1  # type: ignore[arg-type]


def test_what_is_kept_alone() -> None:
    a, c, z = (from_host(np.full((4, 4), 1.0, np.float32), GPU) for _ in range(3))
    gemm(a, a, c, finish=Epilogue(kept=z))  # type: ignore[arg-type]
    for x in (c, z):
        np.testing.assert_array_equal(to_host(x), 4)  # type: ignore[arg-type]


FAULTS = {
    "what is kept is kept too late": ("apply_epilogue", "_store_beside(more[1], z, z,", "_store_beside(more[1], z * 0, z,"),
    "the residual of another tile": ("_operand", "x + at[0] + at[1] + at[2]", "x + at[1] + at[2]"),
    "scaled after the residual": ("_scaled", "z * scale", "z + 0 * scale"),
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_fault_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    name, *change = FAULTS[fault]
    wrong = planted(epilogue, name, *change, tmp_path)
    epilogue._short.cache_clear()
    monkeypatch.setattr(epilogue, name, wrong)
    if name == "apply_epilogue":
        for module in (descriptor_kernel, by_pointers, split_sums):
            monkeypatch.setattr(module, name, wrong)
    with forced(matmul_described=DescribedTiles(64, 16, 16, 1, 4, 2)):
        assert product(80, 40, 24, BF16, True, True, -1.5)[0]
    epilogue._short.cache_clear()


LAYERS = {
    "relu": nn.ReLU,
    "relu in place": lambda: nn.ReLU(inplace=True),
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
    "silu": nn.SiLU,
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
}


@pytest.mark.parametrize("name", list(LAYERS))
def test_linear_and_its_activation_are_one_op_in_sequential(name: str) -> None:
    """On a GPU; values and gradients of the layers one by one, of two orders."""
    net = nn.Sequential(nn.Linear(5, 7), LAYERS[name](), nn.Linear(7, 3))
    x = tt.randn(4, 5)

    def grads(model: Any, on: str) -> list[Any]:
        model, at = model.to(on), x.detach().clone().to(on).requires_grad_()
        y = model(at)
        (first,) = tt.autograd.grad(y.square().sum(), at, create_graph=True)
        model.zero_grad()
        first.square().sum().backward()
        return [y, first, at.grad, *[p.grad for p in model.parameters()]]

    expected = [t.detach().cpu().numpy().copy() for t in grads(net, "cpu")]
    found = grads(net, "cuda")
    assert "LinearActivation" in net[:2](x.to("cuda")).grad_fn.name()
    for got, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(got.detach().cpu().numpy(), right, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "circular"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_convolution_and_its_relu_are_one_op_in_sequential(axes: int, padding_mode: str, bias: bool) -> None:
    layer = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1](3, 5, 3, padding=1, padding_mode=padding_mode, bias=bias)
    net, x = nn.Sequential(layer, nn.ReLU()), tt.randn(2, 3, *(5, 4, 6)[:axes])
    found = []
    for on in ("cpu", "cuda"):
        model, at = net.to(on), x.detach().clone().to(on).requires_grad_()
        y = model(at)
        model.zero_grad()
        y.square().sum().backward()
        found.append([t.detach().cpu().numpy().copy() for t in (y, at.grad, *[p.grad for p in model.parameters()])])
    assert y.grad_fn.name().startswith(f"Conv{axes}DRelu")
    for right, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, right, rtol=2e-5, atol=2e-5)


def test_what_a_convolution_with_a_relu_does_not_take() -> None:
    with pytest.raises(ShapeError, match=r"conv_relu: weight \(2, 3\) has 2 dimensions"):
        F.conv_relu(tt.ones(1, 3, 4), tt.ones(2, 3))
    with pytest.raises(DTypeError, match="conv_relu: input is"):
        F.conv_relu(tt.ones(1, 3, 4, dtype=tt.int64), tt.ones(2, 3, 1, dtype=tt.int64))
    assert F.conv_relu(tt.full((3, 4), -1.0), tt.ones(2, 3, 1)).tolist() == [[0.0] * 4] * 2


def test_what_somebody_wants_to_see_is_computed() -> None:
    """A hook, a forward of one's own, a class derived from Linear: the layers run one by one."""
    net = nn.Sequential(nn.Linear(5, 7), nn.GELU()).to("cuda")
    x, seen = tt.ones(2, 5, device="cuda"), []
    with net[0].register_forward_hook(lambda module, given, y: seen.append(y.shape)):
        net(x)
    assert seen == [(2, 7)]
    own = nn.GELU()
    own.forward = lambda y: seen.append(y.shape) or y  # type: ignore[method-assign]
    nn.Sequential(net[0], own)(x)
    assert len(seen) == 2

    class Twice(nn.Linear):
        def forward(self, given: Any) -> Any:
            return 2 * super().forward(given)

    twice = Twice(5, 7, device="cuda")
    assert tt.equal(nn.Sequential(twice, nn.ReLU())(x), tt.relu(twice(x)))


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_each_activation_scale_and_residual(on: str) -> None:
    x, w, b, r = (tt.randn(*s, dtype=tt.float64).to(on) for s in ((2, 4, 5), (7, 5), (7,), (2, 4, 7)))
    names = {
        "none": lambda z: z,
        "relu": F.relu,
        "gelu": F.gelu,
        "gelu_tanh": lambda z: F.gelu(z, approximate="tanh"),
        "silu": F.silu,
        "sigmoid": F.sigmoid,
        "tanh": F.tanh,
    }
    for (name, f), residual, scale in itertools.product(names.items(), (None, r), (1, 0.5)):
        given = [t.clone().requires_grad_() for t in (x, w, b, *([] if residual is None else [residual]))]
        y = F.linear_activation(*given, activation=name, scale=scale)
        z = f(F.linear(*given[:3])) * scale
        expected = z if residual is None else z + given[3]
        for got, right in zip([y, *tt.autograd.grad(y.sum(), given)], [expected, *tt.autograd.grad(expected.sum(), given)], strict=True):
            assert tt.allclose(got, right, atol=1e-10), (name, scale)


def test_bad_input() -> None:
    x, w = tt.ones(4, 5), tt.ones(7, 5)
    with pytest.raises(ArgumentError, match=r"activation is 'elu'.*'gelu_tanh'"):
        F.linear_activation(x, w, activation="elu")
    with pytest.raises(ShapeError, match=r"residual \(7,\).*\(4, 7\)"):
        F.linear_activation(x, w, residual=tt.ones(7))
    with pytest.raises(DTypeError, match="residual"):
        F.linear_activation(x, w, residual=tt.ones(4, 7, dtype=tt.float64))
    with pytest.raises(ShapeError, match="weight"):
        F.linear_activation(x, tt.ones(7, 4), activation="relu")


def test_without_gradients_nothing_is_kept() -> None:
    x, w = tt.randn(64, 32, device="cuda"), tt.randn(512, 32, device="cuda", requires_grad=True)
    size = 64 * 512 * 4

    def most(run: Any) -> int:
        tt.cuda.reset_peak_memory_stats()
        before = tt.cuda.memory_allocated()
        run()
        return (tt.cuda.max_memory_allocated() - before) // size

    with tt.no_grad():
        assert most(lambda: F.linear_activation(x, w, activation="gelu")) == 1
    assert most(lambda: F.linear_activation(x, w, activation="gelu")) == 2
    assert most(lambda: F.linear_activation(x, w, activation="relu")) == 1
