"""autocast: what goes down, what goes up, what stays; casts of weights that are kept; nesting, threads, decorators; gradients in their own types."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.amp import policies
from tritensor.autograd import Function
from tritensor.nn import functional as F
from tritensor.ops.table import registry
from tritensor.tensor.public_api.publish import _door_of

CPU = tt.autocast("cpu")


def both() -> tuple[tt.Tensor, tt.Tensor]:
    tt.manual_seed(0)
    return tt.randn(4, 4), tt.randn(4, 4)


LOWER = {
    "@": lambda a, b: a @ b,
    "mm": tt.mm,
    "method": lambda a, b: a.matmul(b),
    "addmm": lambda a, b: tt.addmm(a, a, b),
    "linear": lambda a, b: F.linear(a, b),
    "Linear": lambda a, b: nn.Linear(4, 2)(a),
    "conv2d": lambda a, b: F.conv2d(a.reshape(1, 1, 4, 4), b.reshape(1, 1, 4, 4)),
    "einsum": lambda a, b: tt.einsum("ij,jk->ik", a, b),
    "vecdot": tt.linalg.vecdot,
}
SINGLE = {
    "mse_loss": F.mse_loss,
    "cross_entropy": lambda a, b: F.cross_entropy(a, b.argmax(1)),
    "prod": lambda a, b: a.prod(),
    "quantile": lambda a, b: a.quantile(0.5),
    "svdvals": lambda a, b: tt.linalg.svdvals(a),
    "pad": lambda a, b: F.pad(a, (1, 1), mode="replicate"),
}
SAME = {
    "add": lambda a, b: a + b,
    "exp": lambda a, b: a.exp(),
    "softmax": lambda a, b: a.softmax(1),
    "layer_norm": lambda a, b: F.layer_norm(a, (4,)),
    "sum": lambda a, b: a.sum(),
    "power": lambda a, b: a**2,
}
ON_GPU_SINGLE = {k: SAME[k] for k in ("exp", "softmax", "layer_norm", "sum", "power")} | {
    "mean of squares": F.mse_loss,
    "reflected": lambda a, b: 2.0**a,
    "few": lambda a, b: a[:1].sum(0),
}


def test_inner_is_a_product_of_matrices_on_the_cpu_and_keeps_the_widest_type_on_the_gpu() -> None:
    a, b = both()
    with tt.autocast("cpu"), tt.autocast("cuda"):
        assert tt.inner(a, b).dtype is tt.inner(a, b[0]).dtype is tt.inner(a[0], b).dtype is tt.bfloat16
        assert tt.inner(a[0], b[0]).dtype is tt.float32
        on_gpu = [t.to("cuda") for t in (a, b)]
        assert tt.inner(*on_gpu).dtype is tt.inner(on_gpu[0], on_gpu[1].half()).dtype is tt.float32


@pytest.mark.parametrize("name", LOWER)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_products_go_down(name: str, device: str) -> None:
    a, b = (t.to(device) for t in both())
    if name == "Linear":
        return test_products_go_down("linear", device)
    plain = LOWER[name](a, b)
    with tt.autocast(device):
        y = LOWER[name](a, b)
        assert LOWER[name](a.double(), b.double()).dtype is tt.float64
        assert LOWER[name](a.bfloat16(), b.bfloat16()).dtype is (tt.bfloat16 if device == "cpu" else tt.float16)
    assert y.dtype is (tt.bfloat16 if device == "cpu" else tt.float16)
    assert plain.dtype is LOWER[name](a, b).dtype is tt.float32
    assert tt.allclose(y.float(), plain, atol=0.1, rtol=0.02)
    return None


@pytest.mark.parametrize("name", SINGLE)
def test_what_loses_by_it_goes_up(name: str) -> None:
    a, b = (t.bfloat16() for t in both())
    with CPU:
        y = SINGLE[name](a, b)
    assert y.dtype is tt.float32
    assert tt.equal(y, SINGLE[name](a.float(), b.float()))


@pytest.mark.parametrize("name", SAME)
def test_the_rest_stays(name: str) -> None:
    a, b = both()
    with CPU:
        assert SAME[name](a, b).dtype is tt.float32
        assert SAME[name](a.bfloat16(), b.bfloat16()).dtype is tt.bfloat16


@pytest.mark.parametrize("name", ON_GPU_SINGLE)
def test_a_gpu_has_a_list_of_its_own(name: str) -> None:
    a, b = (t.half().to("cuda") for t in both())
    f = ON_GPU_SINGLE[name]
    with tt.autocast("cuda"):
        y = f(a, b)
        assert tt.softmax(a, 1, dtype=tt.float16).dtype is tt.float16
        assert f(a.cpu(), b.cpu()).dtype is tt.float16
    assert y.dtype is tt.float32
    assert tt.equal(y, f(a.float(), b.float()))
    assert f(a, b).dtype is tt.float16


def test_the_widest_and_the_refused() -> None:
    a, b = both()
    with CPU:
        assert tt.cat([a, b.bfloat16()]).dtype is tt.float32
        assert tt.stack([a.bfloat16(), b.bfloat16()]).dtype is tt.bfloat16
    x = tt.rand(3, device="cuda")
    with tt.autocast("cuda"):
        assert tt.atan2(x, x.half()).dtype is tt.float32
        if hasattr(F, "binary_cross_entropy"):
            with pytest.raises(RuntimeError, match="unsafe to autocast"):
                F.binary_cross_entropy(x, x)


def test_every_op_column_and_every_name_of_the_lists_is_one() -> None:
    assert {registry[n].autocast for n in ("matmul", "linear", "conv2d")} == {"lower"}
    named = policies.policies()
    unmet = {n for n in named if policies.find_functions(n) and n not in registry and not any(_asks(f) for f in policies.find_functions(n))}
    with CPU:
        pass
    assert not unmet, "functions of the lists that have no door: nothing casts for them"


def _asks(f) -> bool:
    door = _door_of(f)
    return door is not None and "f" in door.long.__code__.co_freevars


def test_weights_are_cast_once() -> None:
    layer = nn.Linear(4, 4)
    x = tt.ones(2, 4)
    with CPU:
        a, b = layer(x), layer(x)
        assert a.grad_fn.next_functions[1][0] is b.grad_fn.next_functions[1][0]
        with tt.no_grad():
            assert layer(x).grad_fn is None
            layer.weight.add_(1)
        c = layer(x)
        assert c.grad_fn.next_functions[1][0] is not a.grad_fn.next_functions[1][0]  # another value
        assert not tt.equal(a, c)
    with tt.autocast("cpu", cache_enabled=False):
        a, b = layer(x), layer(x)
    assert a.grad_fn.next_functions[1][0] is not b.grad_fn.next_functions[1][0]


def test_gradients_have_their_parameters_type() -> None:
    tt.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    x = tt.randn(16, 4)
    grads = []
    for mode in (tt.autocast("cpu", enabled=False), CPU):
        model.zero_grad()
        with mode:
            y = model(x)
            loss = F.mse_loss(y, tt.ones(16, 1))
        loss.backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    assert y.dtype is tt.bfloat16
    assert loss.dtype is tt.float32
    for a, b in zip(*grads, strict=True):
        assert b.dtype is tt.float32
        assert tt.allclose(a, b, atol=0.05, rtol=0.1)
        assert not tt.equal(a, b)


def test_backward_inside_casts_nothing() -> None:
    a, b = (t.requires_grad_() for t in both())
    with tt.autocast("cpu", enabled=False):
        y = a @ b
    with CPU:
        y.sum().backward()
        (g,) = tt.autograd.grad((a.double() @ b.double()).sum(), a, create_graph=True)
    assert tt.equal(a.grad, (tt.ones(4, 4) @ b.detach().T))
    assert g.dtype is tt.float32


def test_nesting_threads_and_errors() -> None:
    a, b = both()
    seen = []
    with CPU:
        with tt.autocast("cpu", enabled=False):
            assert (a @ b).dtype is tt.float32
            with CPU, tt.autocast("cpu", dtype=tt.float16):
                assert (a @ b).dtype is tt.float16
                assert tt.get_autocast_dtype("cpu") is tt.float16
            assert not tt.is_autocast_enabled("cpu")
        thread = threading.Thread(target=lambda: seen.append((a @ b).dtype))
        thread.start()
        thread.join()
        with pytest.raises(ZeroDivisionError), CPU:
            raise ZeroDivisionError
        assert tt.is_autocast_enabled("cpu")
        assert not tt.is_autocast_enabled()
    assert seen == [tt.float32]
    assert (a @ b).dtype is tt.float32
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got: `int`"):
        tt.autocast(3)
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'npu'"):
        tt.autocast("npu")
    with pytest.warns(UserWarning, match="target dtype float64 is not supported"), tt.autocast("cpu", dtype=tt.float64):
        assert (a @ b).dtype is tt.float32

    @tt.autocast("cpu")
    def f(x: tt.Tensor) -> tt.Tensor:
        return x @ x

    assert f(a).dtype is tt.bfloat16
    out = tt.empty(4, 4)
    with CPU:
        tt.mm(a, b, out=out)
    assert out.dtype is tt.float32


class Product(Function):
    @staticmethod
    @tt.amp.custom_fwd(device_type="cpu")
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    @tt.amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        seen.append((g @ b.T).dtype)
        return g @ b.T, a.T @ g


class Single(Function):
    @staticmethod
    @tt.amp.custom_fwd(device_type="cpu", cast_inputs=tt.float32)
    def forward(ctx, a):
        return a @ a

    @staticmethod
    @tt.amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        seen.append((g @ g).dtype)
        return g


seen: list[tt.dtype] = []


def test_functions_of_ones_own() -> None:
    seen.clear()
    a, b = (t.requires_grad_() for t in both())
    with CPU:
        y = Product.apply(a, b)
        z = Single.apply(a.bfloat16())
    assert y.dtype is tt.bfloat16
    assert z.dtype is tt.float32
    y.float().sum().backward()
    z.sum().backward()
    assert seen == [tt.bfloat16, tt.float32]
    assert a.grad.dtype is tt.float32
    assert Single.apply(a).dtype is tt.float32  # outside of autocast nothing is cast


def test_a_checkpoint_is_computed_again_under_the_same_casts() -> None:
    from tritensor.utils.checkpoint import checkpoint

    layer = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    x = tt.randn(2, 4)
    grads = []
    for call in (layer, lambda t: checkpoint(layer, t, use_reentrant=False)):
        layer.zero_grad()
        with CPU:
            y = call(x)
        y.float().sum().backward()
        grads.append([p.grad.numpy().copy() for p in layer.parameters()])
    assert all(np.array_equal(a, b) for a, b in zip(*grads, strict=True))


def test_a_third_partys_op_says_it_itself() -> None:
    with pytest.raises(tt.RegistrationError, match="autocast is 'down'"):
        tt.op(
            "its_own", lambda x: x, shape=lambda x: tt.Spec(x.shape, x.dtype), samples=lambda rng: [], autocast="down", differentiable=False
        )
