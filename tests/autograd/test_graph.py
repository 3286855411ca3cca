"""autograd.graph: hooks on saved tensors and on several gradients, edges, what a node shows; anomaly mode."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest

import tritensor as tt
from tritensor.autograd import Function, graph


class Exponential(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[1]


FORMS = {
    "mul": (lambda a: a * a, 2),
    "by a number": (lambda a: a * 3.0, 0),
    "exp": (lambda a: a.exp(), 1),
    "matmul": (lambda a: a.reshape(1, 3) @ a.reshape(3, 1), 2),
    "sum of squares": (lambda a: (a**2).sum(), 1),
    "softmax": (lambda a: a.softmax(0), 1),
    "cat": (lambda a: tt.cat([a, a]), 0),
    "prod of few": (lambda a: a.prod(), 2),
    "complex": (lambda a: (tt.complex(a, a) * tt.complex(a, a)).real, 4),
    "Function": (Exponential.apply, 2),
}


@pytest.mark.parametrize("form", FORMS)
def test_pack_and_unpack_see_what_is_saved(form: str) -> None:
    f, count = FORMS[form]
    packed, unpacked = [], []

    def pack(x):
        assert not tt.is_grad_enabled()
        packed.append(x)
        return x.detach().clone().numpy()

    def unpack(x):
        unpacked.append(x)
        return tt.from_numpy(x)

    a = tt.tensor([1.0, 2.0, 3.0], dtype=tt.float64, requires_grad=True)
    b = a.detach().clone().requires_grad_()
    with graph.saved_tensors_hooks(pack, unpack):
        y = f(a)
    z = f(b)
    assert len(packed) <= max(count, 2)
    assert not count or packed
    assert all(isinstance(x, tt.Tensor) for x in packed)
    weights = tt.ones_like(y)
    first, plain = (tt.autograd.grad(out, x, weights, create_graph=True)[0] for out, x in ((y, a), (z, b)))
    assert tt.equal(first, plain)
    if plain.requires_grad:
        second = [tt.autograd.grad(g.sum(), x)[0] for g, x in ((first, a), (plain, b))]
        assert tt.equal(*second)
    y2, z2 = f(a), f(b)
    assert tt.equal(y2, z2)
    assert len(unpacked) >= bool(packed)


def test_hooks_are_of_their_thread_and_their_block() -> None:
    seen = []
    x = tt.ones(3, requires_grad=True)
    with (
        graph.saved_tensors_hooks(lambda t: seen.append(1) or t, lambda t: t),
        graph.saved_tensors_hooks(lambda t: seen.append(2) or t, lambda t: t),
    ):
        x.exp()
    x.exp()
    assert seen == [2]


def test_a_kept_output_makes_no_circle() -> None:
    x = tt.ones(3, requires_grad=True)
    gc.disable()
    try:
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = x.exp()
        alive = weakref.ref(y.grad_fn)
        del y
        assert alive() is None
    finally:
        gc.enable()


def test_bad_hooks_are_named() -> None:
    x = tt.ones(3, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = (x * x).sum()
    with pytest.raises(TypeError, match="unpack hook: it returned a int"):
        y.backward()
    with graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t), pytest.raises(RuntimeError, match="pack hook: it wrote over"):
        x * x
    with graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), graph.save_on_cpu():
        pass
    with graph.save_on_cpu(), pytest.raises(RuntimeError, match="not here"), graph.disable_saved_tensors_hooks("not here"):
        pass


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_save_on_cpu(device: str) -> None:
    x = tt.tensor([1.0, 2.0], device=device, requires_grad=True)
    with graph.save_on_cpu(pin_memory=False):
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    assert x.grad.device == x.device


def test_saved_tensors_may_be_written() -> None:
    with graph.allow_mutation_on_saved_tensors() as kept:
        a = tt.ones(2, 3, requires_grad=True)
        b = a.clone()
        y = (b**2).sum()
        b.sin_()
        y.backward()
        assert tt.equal(a.grad, 2 * tt.ones(2, 3))
        z = (a * a).sum()
        assert kept.copies
    with pytest.raises(RuntimeError, match="outside of the 'allow_mutation"):
        z.backward()


def test_gradients_of_several_tensors_at_once() -> None:
    a, b = (tt.rand(2, 3).requires_grad_() for _ in range(2))
    c, d = a * b, a * b
    all_, any_ = [], []
    handles = [
        graph.register_multi_grad_hook((a, b, c, d), lambda gs: all_.append([g is not None for g in gs])),
        graph.register_multi_grad_hook((a, b, c, d), lambda g: any_.append(g.shape), mode="any"),
    ]
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    assert all_ == [[True, True, True, False], [True, False, True, False]]
    assert any_ == [(2, 3)] * 2
    for handle in handles:
        handle.remove()
    c.sum().backward()
    assert len(all_) == 2
    with pytest.raises(ValueError, match="mode 'some'"):
        graph.register_multi_grad_hook((a,), print, mode="some")


def test_edges() -> None:
    x = tt.tensor(3.0, requires_grad=True)
    y = x * x
    z = y * 2
    assert tt.autograd.grad(z, graph.get_gradient_edge(y), retain_graph=True)[0].item() == 2
    assert tt.autograd.grad(graph.get_gradient_edge(z), x, tt.tensor(1.0), retain_graph=True)[0].item() == 12
    edge = graph.get_gradient_edge(x)
    tt.autograd.backward(z, inputs=[edge])
    assert x.grad.item() == 12
    assert isinstance(edge.node, graph.Node)
    assert edge.node.variable is x
    assert edge.output_nr == 0
    values, _ = tt.tensor([1.0, 3.0], requires_grad=True).max(0)
    assert tt.autograd.grad(values * 2, graph.get_gradient_edge(values))[0].item() == 2
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(tt.ones(2))
    with pytest.raises(RuntimeError, match="give the gradient to start from"):
        tt.autograd.grad(graph.get_gradient_edge(x * x), x)


def test_hooks_on_the_node_of_a_leaf() -> None:
    seen = []
    x = tt.tensor([1.0, 2.0], requires_grad=True)
    node = x.view_as(x).grad_fn.next_functions[0][0]
    assert node is (x * 1).grad_fn.next_functions[0][0]
    node.register_hook(lambda below, above: seen.append(("after", below, above[0].tolist())))
    node.register_prehook(lambda above: seen.append(("before", above[0].tolist())) or (above[0] * 2,))
    x.register_hook(lambda g: seen.append(("tensor", g.tolist())))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(("post", t.grad.tolist())))
    x.sum().backward()
    assert seen == [("tensor", [1, 1]), ("before", [1, 1]), ("post", [2, 2]), ("after", (), [2, 2])]
    tt.autograd.grad(x.sum(), x)
    assert [name for name, *_ in seen[4:]] == ["tensor"]  # nothing is accumulated there


def test_what_a_node_shows() -> None:
    x, y = tt.tensor(2.0, requires_grad=True), tt.tensor(3.0, requires_grad=True)
    node = (x * y).grad_fn
    assert node._saved_self is x
    assert node._saved_other is y
    assert x.exp().grad_fn._saved_result.item() == pytest.approx(7.389056)
    node.metadata["mine"] = 1
    assert node.metadata == {"mine": 1}
    with pytest.raises(AttributeError, match="_saved_nothing"):
        node._saved_nothing  # noqa: B018
    graph.increment_version([x])
    assert x._version == 1


def test_callbacks_run_when_backward_has_ended() -> None:
    x, seen = tt.ones(2, requires_grad=True), []
    x.register_hook(lambda g: tt.autograd.Variable._execution_engine.queue_callback(lambda: seen.append(x.grad.tolist())))
    x.sum().backward()
    assert seen == [[1.0, 1.0]]
    assert isinstance(x, tt.autograd.Variable)
    with pytest.raises(RuntimeError, match="no backward runs"):
        tt.autograd.Variable._execution_engine.queue_callback(print)


def test_gradients_of_a_batch() -> None:
    x = tt.tensor([1.0, 2.0], requires_grad=True)
    y = x**2
    assert tt.autograd.grad(y, x, tt.eye(2), is_grads_batched=True)[0].tolist() == [[2, 0], [0, 4]]
    unused = tt.ones(1, requires_grad=True)
    got = tt.autograd.grad(x**2, [x, unused], tt.eye(2), is_grads_batched=True, allow_unused=True)
    assert got[1] is None
    with pytest.raises(ValueError, match="one more dimension"):
        tt.autograd.grad(x**2, x, tt.tensor(1.0), is_grads_batched=True)


# -- anomaly mode
@np.errstate(all="ignore")
def test_the_first_nan_names_its_function_and_the_forward_line() -> None:
    x = tt.tensor([-1.0], requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        mode = tt.autograd.detect_anomaly()
    with mode:
        y = x.sqrt()  # the line
        where = r"Function 'SqrtBackward0' returned nan values in its 0th output.*test_graph\.py:\d+"
        with (
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0. Traceback") as seen,
            pytest.raises(RuntimeError, match=where),
        ):
            (y * 2).backward()
    assert "y = x.sqrt()  # the line" in str(seen[-1].message)
    assert not tt.is_anomaly_enabled()
    (x.sqrt() * 2).backward()  # and nothing is said outside


@np.errstate(all="ignore")
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_anomaly_mode_knows_errors_and_what_was_not_watched(device: str) -> None:
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise RuntimeError("some error")

    x = tt.tensor([1.0], device=device, requires_grad=True)
    y = Fails.apply(x)
    with (
        tt.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="No forward pass information"),
        pytest.raises(RuntimeError, match="some"),
    ):
        y.backward()
    with tt.autograd.set_detect_anomaly(True, check_nan=False):
        (tt.tensor([-1.0], device=device, requires_grad=True).sqrt()).backward()
        assert tt.is_anomaly_enabled()
        assert not tt.is_anomaly_check_nan_enabled()
    with tt.autograd.set_detect_anomaly(True):
        (g,) = tt.autograd.grad(Outer.apply(x), x, tt.ones_like(x).requires_grad_(), create_graph=True)
        with (
            pytest.warns(UserWarning, match="Error detected in InnerBackward"),
            pytest.warns(UserWarning, match="Previous calculation was induced by OuterBackward"),
            pytest.raises(RuntimeError, match="nan values"),
        ):
            g.sum().backward()


class Outer(Function):
    """The identity, whose backward is one with a backward of NaN."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return Inner.apply(g)


class Inner(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * math.nan


@pytest.mark.parametrize("form", [f for f in FORMS if f != "Function"])
def test_a_node_lists_what_it_saved_and_nothing_else(form: str) -> None:
    """Programs that draw a graph ask `dir` for `_saved_...`, and each of what is listed."""
    a = tt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    node = FORMS[form][0](a).grad_fn
    seen = 0
    while node is not None:
        listed = [name for name in dir(node) if name.startswith("_saved_")]
        for name in listed:
            getattr(node, name)
        assert {"_saved_" + name for name, _ in node.saved()} >= set(listed)
        assert "next_functions" in dir(node)
        seen += len(listed)
        node = next((f for f, _ in node.next_functions if hasattr(f, "saved")), None)
    assert seen > 0
