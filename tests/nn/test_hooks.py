"""Hooks of a Module: forward, backward, state."""

import copy

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.errors import CheckpointError, ShapeError


class Double(nn.Module):
    def forward(self, x, *, scale=2.0):
        return x * scale


class Product(nn.Module):
    def forward(self, a, b):
        return a * b


def test_forward_hooks_see_and_replace():
    m = Double()
    seen = []
    pre = m.register_forward_pre_hook(lambda mod, args: seen.append(args[0].item()))
    change = m.register_forward_pre_hook(lambda mod, args: args[0] + 1)
    post = m.register_forward_hook(lambda mod, args, out: out + args[0])
    assert m(tt.tensor(1.0)).item() == 6.0
    assert seen == [1.0]
    for handle in (pre, change, post):
        handle.remove()
    assert m(tt.tensor(1.0)).item() == 2.0


def test_forward_hooks_with_kwargs_and_order():
    m = Double()
    order = []
    m.register_forward_pre_hook(lambda mod, args, kw: (args, {"scale": kw["scale"] + 1}), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, kw, out: order.append(kw["scale"]), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, out: order.append("first"), prepend=True)
    assert m(tt.tensor(1.0), scale=3.0).item() == 4.0
    assert order == ["first", 4.0]
    m.register_forward_pre_hook(lambda mod, args, kw: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"None or \(args, kwargs\)"):
        m(tt.tensor(1.0), scale=3.0)


def test_handle_as_context_and_always_call():
    m = nn.Linear(2, 2)
    calls = []
    with m.register_forward_hook(lambda mod, args, out: calls.append(out), always_call=True):
        with pytest.raises(ShapeError):
            m(tt.ones(1, 3))
        assert calls == [None]
        m(tt.ones(1, 2))
        assert len(calls) == 2
    m(tt.ones(1, 2))
    assert len(calls) == 2


def test_hooks_travel_with_a_copy():
    m = Double()
    m.register_forward_hook(lambda mod, args, out: out + 1)
    again = copy.deepcopy(m)
    assert again(tt.tensor(1.0)).item() == 3.0
    again.register_forward_hook(lambda mod, args, out: out * 10)
    assert m(tt.tensor(1.0)).item() == 3.0


def test_full_backward_hook_sees_all_inputs_at_once():
    m = Product()
    a, b = tt.tensor(3.0, requires_grad=True), tt.tensor(5.0, requires_grad=True)
    seen = []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append(([g.item() for g in gi], [g.item() for g in go])))
    (m(a, b) * 2 + a * 100).backward()  # the use of a outside the module is not the module's gradient
    assert seen == [([10.0, 6.0], [2.0])]
    assert a.grad.item() == 110.0
    assert b.grad.item() == 6.0


def test_full_backward_hooks_replace_gradients():
    m = Product()
    a, b = tt.tensor(3.0, requires_grad=True), tt.tensor(5.0)
    m.register_full_backward_pre_hook(lambda mod, go: (go[0] * 10,))
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0] + go[0], None))
    m(a, b).backward()
    assert a.grad.item() == 60.0  # 5 * 10 + 10


def test_full_backward_hook_without_gradient_of_the_input():
    m = nn.Linear(2, 1)
    seen = []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go[0].tolist())))
    m(tt.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])]
    assert m.weight.grad.tolist() == [[1.0, 1.0]]


def test_backward_hooks_leave_second_derivatives():
    m = Product()
    m.register_full_backward_hook(lambda mod, gi, go: None)
    a = tt.tensor(3.0, requires_grad=True)
    y = m(a, a * a)  # a^3
    (g,) = tt.autograd.grad(y, a, create_graph=True)
    (h,) = tt.autograd.grad(g, a)
    assert (g.item(), h.item()) == (27.0, 18.0)


def test_backward_hook_of_the_wrong_length_is_refused():
    m = Product()
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0],))
    a = tt.tensor(3.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="1 gradients for 2"):
        m(a, a).backward()


def test_state_hooks():
    m = nn.Linear(1, 1)
    calls = []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: calls.append(prefix))
    m.register_state_dict_post_hook(lambda mod, state, prefix, meta: state.update({prefix + "more": tt.zeros(1)}))
    outer = nn.Sequential(m)
    assert list(outer.state_dict()) == ["0.weight", "0.bias", "0.more"]
    assert calls == ["0."]


def test_load_pre_hook_renames():
    m = nn.Linear(1, 1)

    def rename(mod, state, prefix, meta, strict, missing, unexpected, errors):
        if prefix + "kernel" in state:
            state[prefix + "weight"] = state.pop(prefix + "kernel")

    m.register_load_state_dict_pre_hook(rename)
    given = {"0.kernel": tt.tensor([[7.0]]), "0.bias": tt.zeros(1)}
    nn.Sequential(m).load_state_dict(given)
    assert m.weight.item() == 7.0
    assert "0.kernel" in given  # the caller's dictionary is left alone


def test_load_post_hook_forgives_and_failure_undoes():
    m = nn.Linear(1, 1)
    nn.init.constant_(m.weight, 5.0)
    with m.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.remove("bias")):
        m.load_state_dict({"weight": tt.tensor([[2.0]])})
    assert m.weight.item() == 2.0
    m.register_load_state_dict_post_hook(lambda mod, keys: None)
    with pytest.raises(CheckpointError, match="bias"):
        m.load_state_dict({"weight": tt.tensor([[9.0]])})
    assert m.weight.item() == 2.0
